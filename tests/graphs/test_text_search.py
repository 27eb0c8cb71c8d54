"""Focused search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphs.facts.extraction import extract_facts
from graphs.graph_builder import compile_facts
from graphs.markdown.document import Document, Link
from graphs.text_search import kth_score, score_documents, search_text, top_documents


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


def test_who_does_not_ask_for_words_gets_the_same_ranking_without_them() -> None:
    """Explaining costs more than searching, so it can be left out."""
    told = search_text(INDEX, "open issues", limit=3)

    plain = search_text(INDEX, "open issues", limit=3, explain=False)

    assert [replace(each, words=()) for each in told] == list(plain)


def test_a_group_passes_a_share_to_its_members() -> None:
    """A tool can be found by what it belongs to, after those that say it themselves."""
    found = search_text(INDEX, "development", limit=5)

    assert ["create_issue", "list_issues"] == names(*found)
    assert {()} == {each.words for each in found}


def test_equal_scores_are_ordered_by_label_and_id() -> None:
    """The same question always gets the same answer, also where the limit cuts."""
    assert ["a", "b"] == names(*search_text(INDEX, "same", limit=2))
    assert ["a"] == names(*search_text(INDEX, "same", limit=1))


def test_a_mask_decides_before_the_limit() -> None:
    """A filter after truncation loses answers."""
    mask = np.ones(len(INDEX.documents), dtype=bool)
    mask[INDEX.rows["urn:t:list_issues"]] = False

    assert ["create_issue"] == names(*search_text(INDEX, "issues", limit=1, allowed=mask))


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


@pytest.mark.parametrize("size", [0, 3, 40, 500, 20_000, 300_001])
@pytest.mark.parametrize("met", [0, 5, 400, 10_000])
def test_the_last_place_is_that_of_a_sorted_list(size: int, met: int) -> None:
    """However long the list is, and however few documents were met at all."""
    rng = np.random.default_rng(size + met)
    scores = np.zeros(size, dtype=np.float32)
    scores[:met] = rng.integers(1, 900, min(met, size))
    rng.shuffle(scores)
    expected = sorted(scores.tolist(), reverse=True)[39] if size >= 40 else 0.0

    assert expected == kth_score(scores, 40)


@pytest.mark.parametrize("group", ["", "development"])
def test_asked_about_a_few_documents_the_answer_is_the_same(group: str) -> None:
    """Whether nobody else is looked at, or all are, because groups have a say."""
    index = compile_facts(
        extract_facts(
            [tool("create_issue", "Create an issue", group), tool("send", "A mail", group)]
        )
    )
    query = "create a development mail"
    found = top_documents(index, query, limit=2)

    scores, coverage = score_documents(index, query, found.rows)

    assert found.scores == scores
    assert found.coverage == coverage
