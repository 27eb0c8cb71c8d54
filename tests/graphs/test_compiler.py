"""A graph that changes."""

from __future__ import annotations

from dataclasses import replace

from graphs.compiler import Compiler
from graphs.facts.build import extract_facts
from graphs.graph import GraphIndex
from graphs.markdown.document import Document
from graphs.markdown.parts import Link
from graphs.text_search import focused

DOCUMENTS = [
    Document(id=f"urn:t:{n}", title=f"tool {n}", related=(Link(target="tool 0"),)) for n in range(5)
]


def test_a_changed_document_costs_a_changed_document_and_answers_like_a_new_build() -> None:
    """Counted, not timed."""
    compiler = Compiler()
    before = compiler.compile(DOCUMENTS)
    changed = [replace(DOCUMENTS[0], summary="Sends an invoice"), *DOCUMENTS[1:]]

    after = compiler.compile(changed)

    fresh = GraphIndex.compile(extract_facts(changed))
    assert 1 == compiler.changed
    assert fresh.facts == after.facts
    assert focused(fresh, "invoices", limit=5) == focused(after, "invoices", limit=5)
    assert () == focused(before, "invoices", limit=5)
    assert dict(fresh.backward) == dict(after.backward)
