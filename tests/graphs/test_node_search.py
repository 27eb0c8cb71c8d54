"""Nodes by words, by what the schema says, and by both."""

from __future__ import annotations

from dataclasses import replace

from graphs import Document, compile_facts, extract_facts, find, parse

NOTES = """---
id: billing
title: Billing
about: Invoices
---
Money that customers owe.
"""
INDEX = compile_facts(
    extract_facts(
        [
            parse(NOTES, path="billing.md"),
            Document(id="urn:t:2", title="Send an invoice", summary="By mail", path="send.md"),
            Document(id="urn:t:3", title="Play a song"),
        ]
    )
)


def test_hybrid_lists_a_node_once_with_its_place() -> None:
    """What both ways find is one node, whatever its id looks like, and stands first."""
    found = find(INDEX, "billing", mode="hybrid", limit=5)

    assert ["billing"] == [each.label.casefold() for each in found]
    (node,) = found
    assert ("billing.md", True, True) == (node.path, bool(node.words), bool(node.evidence))
    assert node.line > 0


def test_the_schema_says_why() -> None:
    """A topic is a text of what is about it; the statement is named with file and line."""
    topic, *_ = [
        each for each in find(INDEX, "invoices", mode="schema", limit=5) if each.label == "Billing"
    ]
    best, *others = find(INDEX, "send an invoice", mode="schema", limit=5)

    (evidence,) = topic.evidence
    assert ("about", "Invoices", "billing.md") == (evidence.predicate, evidence.text, evidence.path)
    assert evidence.line > 0
    assert ("urn:t:2", ()) == (best.node, best.words)
    assert best.score > max(each.score for each in others)


def test_the_place_is_that_of_the_document_that_names_a_node() -> None:
    """What is derived names it too, and stands nowhere."""
    stated = extract_facts([parse(NOTES, path="billing.md")])
    derived = [replace(fact, path="", line=0, declared=False) for fact in stated]

    for facts in ([*stated, *derived], [*derived, *stated]):
        (found, *_) = find(compile_facts(facts), "billing", mode="hybrid", limit=5)
        assert "billing.md" == found.path


def test_bounds_hold_in_every_mode() -> None:
    """At most as many as wanted, only what is allowed, and nothing for nothing."""
    for mode in ("words", "schema", "hybrid"):
        assert 1 == len(find(INDEX, "invoice", mode=mode, limit=1))
        assert () == find(INDEX, "invoice", mode=mode, limit=5, allowed=lambda _: False)
        assert () == find(INDEX, "", mode=mode, limit=5)
        assert () == find(INDEX, "invoice", mode=mode, limit=0)


def test_what_an_excerpt_leaves_out_is_not_found() -> None:
    """Its texts are still in the index of words."""
    hidden = INDEX.rows["urn:t:2"]
    kinds = ["" if row == hidden else kind for row, kind in enumerate(INDEX.kinds)]

    for mode in ("words", "schema", "hybrid"):
        found = find(replace(INDEX, kinds=kinds), "send an invoice", mode=mode, limit=5)
        assert "urn:t:2" not in {each.node for each in found}
