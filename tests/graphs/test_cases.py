"""Cases in Markdown: documents with their facts, notices or errors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphs import parse, render
from graphs.errors import DocumentError
from graphs.facts import extract_facts

FOLDER = Path(__file__).parent.parent / "cases" / "graph"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case: title, documents and expected results."""

    title: str
    documents: tuple[str, ...]
    expected: tuple[tuple[str, ...], ...]


def cases(name: str) -> list[Case]:
    """Read the cases of one file."""
    parts = re.split(r"^## (.+)$", (FOLDER / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [_case(title, text) for title, text in zip(parts[1::2], parts[2::2], strict=True)]


def _case(title: str, text: str) -> Case:
    blocks = _BLOCK.findall(text)
    rows = (row for kind, body in blocks if kind != "markdown" for row in body.splitlines())
    return Case(
        title=title,
        documents=tuple(body for kind, body in blocks if kind == "markdown"),
        expected=tuple(tuple(row.replace("\\n", "\n").split(" | ")) for row in rows),
    )


GOOD = [*cases("statements.md"), *cases("labels.md"), *cases("properties.md")]


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.title)
def test_document_has_the_facts_of_the_case(case: Case) -> None:
    documents = [parse(text) for text in case.documents]

    stated = [(f.subject, f.predicate, f.object, str(f.line)) for f in extract_facts(documents)]

    assert [] == [row for row in case.expected if row not in stated]


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.title)
def test_parsed_document_is_unchanged_after_rendering_and_parsing(case: Case) -> None:
    documents = [parse(text) for text in case.documents]

    assert documents == [parse(render(document)) for document in documents]


@pytest.mark.parametrize("case", cases("hostile.md"), ids=lambda case: case.title)
def test_hostile_document_is_refused_with_its_line(case: Case) -> None:
    ((line, detail),) = case.expected

    with pytest.raises(DocumentError) as caught:
        parse(case.documents[0])

    assert (int(line), detail) == (caught.value.line, caught.value.detail)


@pytest.mark.parametrize("case", cases("notices.md"), ids=lambda case: case.title)
def test_invalid_rule_leaves_a_notice(case: Case) -> None:
    """One mistake must not invalidate a whole file."""
    document = parse(case.documents[0])

    assert case.expected == tuple((str(n.line), n.code, n.detail) for n in document.notices)
    assert document == parse(render(document))
