"""Documents by a text; nodes by words, by what the schema says, and by both."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphs import Document, compile_facts, extract_facts, find, parse, search_text
from graphs.markdown import Link

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
    kinds = {node: kind for node, kind in INDEX.kinds.items() if node != "urn:t:2"}

    for mode in ("words", "schema", "hybrid"):
        found = find(replace(INDEX, kinds=kinds), "send an invoice", mode=mode, limit=5)
        assert "urn:t:2" not in {each.node for each in found}


def tool(name: str, summary: str = "", group: str = "", title: str = "") -> Document:
    groups = (Link(target=group),) if group else ()
    return Document(id=f"urn:t:{name}", title=title or name, summary=summary, groups=groups)


TOOLS = compile_facts(
    extract_facts(
        [
            tool("send_mail", "Send a message", "office"),
            tool("create_issue", "Create an issue on GitHub", "development"),
            tool("list_issues", "List the open issues", "development"),
            tool("b", title="same"),
            tool("a", title="same"),
            tool("погода", "Прогноз погоды в городе"),
        ]
    )
)


def names(*found: object) -> list[str]:
    return [str(getattr(each, "node", each)).rpartition(":")[2] for each in found]


@pytest.mark.parametrize(
    ("text", "best"),
    [
        ("open issue listing", "list_issues"),
        ("crate issue", "create_issue"),
        ("github", "create_issue"),
        ("прогнозы", "погода"),
    ],
)
def test_the_document_that_was_meant_is_first(text: str, best: str) -> None:
    """Without any model, in every language of the texts."""
    assert [best] == names(*search_text(TOOLS, text, limit=1))


def test_the_matched_words_and_their_share_are_told() -> None:
    """Evidence is what makes a rank believable."""
    (found,) = search_text(TOOLS, "send unicorns", limit=5)

    assert ("send",) == found.words
    assert 0 < found.coverage < 1 < found.score


def test_a_group_passes_a_share_to_its_members() -> None:
    """A tool can be found by what it belongs to, after those that say it themselves."""
    found = search_text(TOOLS, "development", limit=5)

    assert ["create_issue", "list_issues"] == names(*found)
    assert {("development",)} == {each.words for each in found}


def test_equal_scores_are_ordered_by_label_and_id() -> None:
    """The same question always gets the same answer, also where the limit cuts."""
    assert ["a", "b"] == names(*search_text(TOOLS, "same", limit=2))
    assert ["a"] == names(*search_text(TOOLS, "same", limit=1))


def test_a_question_decides_before_the_limit_and_is_asked_no_more_than_needed() -> None:
    """The host's question may be dear."""
    asked: list[str] = []

    def allowed(node: str) -> bool:
        asked.append(node)
        return node != "urn:t:a"

    assert ["b"] == names(*search_text(TOOLS, "same", limit=1, allowed=allowed))
    assert ["a", "b"] == names(*asked)
    assert ["create_issue", "list_issues"] == sorted(
        names(*search_text(TOOLS, "issues", limit=9, allowed=lambda _: True))
    )


@pytest.mark.parametrize(("text", "limit"), [("", 5), ("→", 5), ("issues", 0), ("qqqqqq", 5)])
def test_nothing_asked_or_nothing_known_is_nothing_found(text: str, limit: int) -> None:
    """Nobody guesses."""
    assert () == search_text(TOOLS, text, limit=limit)


def test_an_empty_graph_finds_nothing() -> None:
    """An empty catalog is a catalog."""
    assert () == search_text(compile_facts([]), "issues", limit=5)
