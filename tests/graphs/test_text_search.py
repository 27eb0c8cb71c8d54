"""Focused search."""

from __future__ import annotations

import pytest

from graphs.facts.extraction import extract_facts
from graphs.graph_builder import compile_facts
from graphs.markdown.document import Document, Link
from graphs.text_search import search_text


def tool(name: str, summary: str = "", group: str = "", title: str = "") -> Document:
    groups = (Link(target=group),) if group else ()
    return Document(id=f"urn:t:{name}", title=title or name, summary=summary, groups=groups)


INDEX = compile_facts(
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
    assert [best] == names(*search_text(INDEX, text, limit=1))


def test_the_matched_words_and_their_share_are_told() -> None:
    """Evidence is what makes a rank believable."""
    (found,) = search_text(INDEX, "send unicorns", limit=5)

    assert ("send",) == found.words
    assert 0 < found.coverage < 1 < found.score


def test_a_group_passes_a_share_to_its_members() -> None:
    """A tool can be found by what it belongs to, after those that say it themselves."""
    found = search_text(INDEX, "development", limit=5)

    assert ["create_issue", "list_issues"] == names(*found)
    assert {("development",)} == {each.words for each in found}


def test_equal_scores_are_ordered_by_label_and_id() -> None:
    """The same question always gets the same answer, also where the limit cuts."""
    assert ["a", "b"] == names(*search_text(INDEX, "same", limit=2))
    assert ["a"] == names(*search_text(INDEX, "same", limit=1))


def test_a_question_decides_before_the_limit_and_is_asked_no_more_than_needed() -> None:
    """The host's question may be dear."""
    asked: list[str] = []

    def allowed(node: str) -> bool:
        asked.append(node)
        return node != "urn:t:a"

    assert ["b"] == names(*search_text(INDEX, "same", limit=1, allowed=allowed))
    assert ["a", "b"] == names(*asked)
    assert ["create_issue", "list_issues"] == sorted(
        names(*search_text(INDEX, "issues", limit=9, allowed=lambda _: True))
    )


@pytest.mark.parametrize(("text", "limit"), [("", 5), ("→", 5), ("issues", 0), ("qqqqqq", 5)])
def test_nothing_asked_or_nothing_known_is_nothing_found(text: str, limit: int) -> None:
    """Nobody guesses."""
    assert () == search_text(INDEX, text, limit=limit)


def test_an_empty_graph_finds_nothing() -> None:
    """An empty catalog is a catalog."""
    assert () == search_text(compile_facts([]), "issues", limit=5)
