"""Tests of the cases in Markdown files: documents with the expected facts, notices or errors."""

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
    """One case of a Markdown file: title, documents and expected results."""

    title: str
    documents: tuple[str, ...]
    expected: tuple[tuple[str, ...], ...]


def cases(name: str) -> list[Case]:
    """Read the cases of the Markdown file *name*."""
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
def test_parse_restores_the_parsed_and_rendered_documents_of_a_case(case: Case) -> None:
    documents = [parse(text) for text in case.documents]

    assert documents == [parse(render(document)) for document in documents]


@pytest.mark.parametrize("case", cases("hostile.md"), ids=lambda case: case.title)
def test_hostile_document_is_refused_with_the_line_of_the_problem(case: Case) -> None:
    ((line, detail),) = case.expected

    with pytest.raises(DocumentError) as caught:
        parse(case.documents[0])

    assert (int(line), detail) == (caught.value.line, caught.value.detail)


@pytest.mark.parametrize("case", cases("notices.md"), ids=lambda case: case.title)
def test_rule_that_cannot_be_read_is_skipped_with_a_notice(case: Case) -> None:
    """One mistake must not make a whole document unusable."""
    document = parse(case.documents[0])

    assert case.expected == tuple((str(n.line), n.code, n.detail) for n in document.notices)
    assert document == parse(render(document))
