"""Tests of docs/markdown-ld.md, which is itself a Markdown-LD document and must be complete."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from graphs import parse, render
from graphs.errors import Code
from graphs.facts import NAMESPACES, PREDICATES, extract_facts
from graphs.markdown import KEYS

PAGE = Path(__file__).parents[2] / "docs" / "markdown-ld.md"
TEXT = PAGE.read_text(encoding="utf-8")
DOCUMENT = parse(TEXT, path=PAGE.name)


def test_documentation_page_is_a_valid_document() -> None:
    stated = {(fact.predicate, fact.object, fact.language) for fact in extract_facts([DOCUMENT])}

    assert () == DOCUMENT.notices
    assert ("name", "Markdown-LD", "en") in stated
    assert ("memberOf", "urn:tool-gateway:concept:documentation", "") in stated
    assert DOCUMENT == parse(render(DOCUMENT), path=PAGE.name)


def test_example_in_the_documentation_has_no_notices() -> None:
    """Users copy the example."""
    (example,) = re.findall(r"```markdown\n(.*?)```", TEXT, re.DOTALL)

    document = parse(example)

    assert () == document.notices
    assert [("send_invoice", "requires"), ("create_invoice", "mentions")] == [
        (edge.subject, edge.predicate) for edge in document.edges
    ]


def test_documentation_lists_every_key_predicate_prefix_and_code() -> None:
    words = set(re.findall(r"`([^`\s]+)`", TEXT))
    keys = {key for names in KEYS.values() for key in names}

    assert set() == (keys | {*PREDICATES} | {*NAMESPACES} | {*get_args(Code)}) - words
