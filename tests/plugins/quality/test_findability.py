"""Reports on single tools, and confusions."""

from __future__ import annotations

from gateway.plugins.quality import EvalRequest, Outcome, find_confusions, report_tools


def outcome(
    found: str, *places: int | None, tools: str = "a", words: tuple[str, ...] = ()
) -> Outcome:
    """Make an outcome. Each letter of *found* and *tools* is a tool id."""
    return Outcome(
        request=EvalRequest(text=found, wanted=tuple((tool,) for tool in tools)),
        found=tuple(found),
        places=places,
        tools=tuple(tools),
        figures={"mrr": 0.0},
        missing_words={"a": words} if words else {},
    )


def test_tool_report_counts_requests_that_find_the_tool() -> None:
    """Higher ranked tools count up to the limit, and only if the tool ranks below them."""
    outcomes = [
        outcome("axyz", 1),
        outcome("xya", 3, words=("owe",)),
        outcome("xyzvwua", 7, words=("owe", "bill")),
    ]
    (report,) = report_tools(outcomes, limit=5)

    assert (3, 2, True, 3) == (report.requests, report.found, report.findable, report.median_place)
    assert (1, 2) == (report.first, report.top_five)
    assert {"x": 2, "y": 2, "v": 1, "w": 1, "z": 1} == report.outranked_by
    assert ("owe", "bill") == report.missing_words


def test_median_rank_is_none_if_half_of_the_requests_miss_the_tool() -> None:
    nowhere = [outcome("x", None), outcome("x", None), outcome("a", 1)]
    never, other = report_tools([*nowhere, outcome("xb", None, tools="b")], limit=5)

    assert ("b", None, False) == (never.id, never.median_place, never.findable)
    assert ("a", None, True) == (other.id, other.median_place, other.findable)


def test_higher_rank_of_another_wanted_tool_does_not_count_as_outranking() -> None:
    both = outcome("bax", 2, 1, tools="ab")

    assert [{}, {}] == [tool.outranked_by for tool in report_tools([both], limit=5)]
    assert () == find_confusions([both], {})


def test_confusions_are_counted_and_twins_are_marked() -> None:
    outcomes = [outcome("xa", 2), outcome("xa", 2), outcome("ya", 1)]
    pairs = find_confusions(outcomes, {"a": frozenset("y")})

    assert [("a", "x", 2, False), ("a", "y", 1, True)] == [
        (pair.wanted, pair.first, pair.requests, pair.are_twins) for pair in pairs
    ]
