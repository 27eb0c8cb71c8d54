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


def test_find_in_hybrid_mode_returns_each_node_once_with_its_line() -> None:
    nodes = find(INDEX, "billing", mode="hybrid", limit=5)

    assert ["billing"] == [item.label.casefold() for item in nodes]
    (node,) = nodes
    assert ("billing.md", True, True) == (node.path, bool(node.words), bool(node.evidence))
    assert node.line > 0


def test_find_in_schema_mode_returns_matching_statements_as_evidence() -> None:
    topic, *_ = [
        node for node in find(INDEX, "invoices", mode="schema", limit=5) if node.label == "Billing"
    ]
    best, *others = find(INDEX, "send an invoice", mode="schema", limit=5)

    (evidence,) = topic.evidence
    assert ("about", "Invoices", "billing.md") == (evidence.predicate, evidence.text, evidence.path)
    assert evidence.line > 0
    assert ("urn:t:2", ()) == (best.node, best.words)
    assert best.score > max(node.score for node in others)


def test_found_node_has_the_line_of_its_declared_name() -> None:
    """A name derived by a rule has no line."""
    stated = extract_facts([parse(NOTES, path="billing.md")])
    derived = [replace(fact, path="", line=0, declared=False) for fact in stated]

    for facts in ([*stated, *derived], [*derived, *stated]):
        (node, *_) = find(compile_facts(facts), "billing", mode="hybrid", limit=5)
        assert "billing.md" == node.path


def test_find_applies_its_limit_and_filter_in_every_mode() -> None:
    for mode in ("words", "schema", "hybrid"):
        assert 1 == len(find(INDEX, "invoice", mode=mode, limit=1))
        assert () == find(INDEX, "invoice", mode=mode, limit=5, allowed=lambda _: False)
        assert () == find(INDEX, "", mode=mode, limit=5)
        assert () == find(INDEX, "invoice", mode=mode, limit=0)


def test_find_ignores_nodes_outside_the_excerpt_of_a_caller() -> None:
    """The text index still contains the texts of these nodes."""
    kinds = {node: kind for node, kind in INDEX.kinds.items() if node != "urn:t:2"}

    for mode in ("words", "schema", "hybrid"):
        nodes = find(replace(INDEX, kinds=kinds), "send an invoice", mode=mode, limit=5)
        assert "urn:t:2" not in {item.node for item in nodes}


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


def names(*matches: object) -> list[str]:
    return [str(getattr(match, "node", match)).rpartition(":")[2] for match in matches]


@pytest.mark.parametrize(
    ("text", "best"),
    [
        ("open issue listing", "list_issues"),
        ("crate issue", "create_issue"),
        ("github", "create_issue"),
        ("прогнозы", "погода"),
    ],
)
def test_search_text_returns_the_best_document_first(text: str, best: str) -> None:
    assert [best] == names(*search_text(TOOLS, text, limit=1))


def test_text_match_has_its_matched_words_and_coverage() -> None:
    (match,) = search_text(TOOLS, "send unicorns", limit=5)

    assert ("send",) == match.words
    assert 0 < match.coverage < 1 < match.score


def test_search_text_finds_the_members_of_a_group_by_its_name() -> None:
    """Members rank below documents that contain the words of the query themselves."""
    matches = search_text(TOOLS, "development", limit=5)

    assert ["create_issue", "list_issues"] == names(*matches)
    assert {("development",)} == {match.words for match in matches}


def test_search_text_orders_equal_scores_by_label_and_id() -> None:
    assert ["a", "b"] == names(*search_text(TOOLS, "same", limit=2))
    assert ["a"] == names(*search_text(TOOLS, "same", limit=1))


def test_search_text_filters_before_the_limit_with_few_calls_of_the_filter() -> None:
    """The host's filter may be slow."""
    checked: list[str] = []

    def allowed(node: str) -> bool:
        checked.append(node)
        return node != "urn:t:a"

    assert ["b"] == names(*search_text(TOOLS, "same", limit=1, allowed=allowed))
    assert ["a", "b"] == names(*checked)
    assert ["create_issue", "list_issues"] == sorted(
        names(*search_text(TOOLS, "issues", limit=9, allowed=lambda _: True))
    )


@pytest.mark.parametrize(("text", "limit"), [("", 5), ("→", 5), ("issues", 0), ("qqqqqq", 5)])
def test_search_text_finds_nothing_for_empty_and_unknown_queries(text: str, limit: int) -> None:
    assert () == search_text(TOOLS, text, limit=limit)


def test_search_text_finds_nothing_in_an_empty_graph() -> None:
    assert () == search_text(compile_facts([]), "issues", limit=5)
