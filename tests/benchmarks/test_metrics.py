"""Figures of runs: next steps, and the figures of a whole set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.data import read, rows
from benchmarks.metrics import COLUMNS, NextGold, next_gold, score_next, summary, to_json
from gateway.plugins.quality import score

FIXTURE = Path(__file__).parent / "fixture"


def test_columns_of_figures_describe_one_ranking() -> None:
    assert {*COLUMNS} == score("a", [frozenset("a")]).keys()


def test_expected_next_step_is_the_second_tool_of_a_sequence() -> None:
    """The first tool is given, so repeating it is not a suggestion."""
    gold = next_gold({"sequence": ["a", "a", "b", "c"]})

    assert gold == NextGold(first="a", following="b", others=("b", "c"))
    assert {"next_hit@5": 1.0, "next_rec@5": 0.5} == score_next("axyxb", gold)
    assert {"next_hit@5": 0.0, "next_rec@5": 0.5} == score_next("ac", gold)


def test_any_other_tool_of_a_task_is_an_expected_next_step_of_its_main_tool() -> None:
    """The data do not say in which order the tools depend on each other."""
    gold = next_gold({"main": "a", "relevant": ["b", "a", "c"], "sequence": ["b", "a"]})

    assert gold == NextGold(first="a", following="", others=("b", "c"))
    assert {"next_hit@5": 1.0, "next_rec@5": 0.5} == score_next("xc", gold)


@pytest.mark.parametrize("query", [{}, {"sequence": ["a", "a"]}, {"main": "a", "relevant": ["a"]}])
def test_task_with_one_tool_has_no_expected_next_step(query: dict[str, object]) -> None:
    assert next_gold(query) is None


def test_queries_without_relevant_tools_are_omitted() -> None:
    result = summary([{"id": "1", "lang": "en", "relevant": []}], [{"id": "1", "ranked": ["a"]}])

    assert (0, {}, {}) == (result.queries, result.figures, result.by_language)


def test_run_without_suggestions_has_no_figures_for_suggestions() -> None:
    """Missing suggestions are not wrong suggestions."""
    queries = read(FIXTURE).queries
    run = [{key: line[key] for key in ("id", "ranked")} for line in rows(FIXTURE / "run.jsonl")]

    assert "next" not in to_json(summary(queries, run))


def test_figures_equal_the_figures_of_the_reference_scorer() -> None:
    """The reference scorer wrote expected.json for this folder and this run."""
    expected = json.loads((FIXTURE / "expected.json").read_text(encoding="utf-8"))
    result = to_json(summary(read(FIXTURE).queries, list(rows(FIXTURE / "run.jsonl"))))
    languages = result.pop("per_lang")

    assert isinstance(languages, dict)
    assert {"de": 2, "en": 3} == {name: language.pop("n") for name, language in languages.items()}
    assert expected == {**result, "per_lang": languages}
