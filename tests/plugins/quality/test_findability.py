"""Which tools are found, and which stand in their place."""

from __future__ import annotations

from gateway.plugins.quality import EvalRequest, Outcome, find_confusions, report_tools


def outcome(
    found: str, *places: int | None, tools: str = "a", words: tuple[str, ...] = ()
) -> Outcome:
    """What a request found; ids are letters."""
    return Outcome(
        request=EvalRequest(text=found, wanted=tuple((tool,) for tool in tools)),
        found=tuple(found),
        places=places,
        tools=tuple(tools),
        figures={"mrr": 0.0},
        missing_words={"a": words} if words else {},
    )


def test_a_tool_is_found_by_some_requests_and_not_by_others() -> None:
    """What stood above it counts up to what a search gives, and only where it is beaten."""
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


def test_without_a_place_in_half_of_the_requests_there_is_no_median() -> None:
    nowhere = [outcome("x", None), outcome("x", None), outcome("a", 1)]
    never, other = report_tools([*nowhere, outcome("xb", None, tools="b")], limit=5)

    assert ("b", None, False) == (never.id, never.median_place, never.findable)
    assert ("a", None, True) == (other.id, other.median_place, other.findable)


def test_what_is_wanted_too_outranks_nothing() -> None:
    """Nor is it a confusion."""
    both = outcome("bax", 2, 1, tools="ab")

    assert [{}, {}] == [tool.outranked_by for tool in report_tools([both], limit=5)]
    assert () == find_confusions([both], {})


def test_pairs_are_counted_and_twins_are_marked() -> None:
    outcomes = [outcome("xa", 2), outcome("xa", 2), outcome("ya", 1)]
    pairs = find_confusions(outcomes, {"a": frozenset("y")})

    assert [("a", "x", 2, False), ("a", "y", 1, True)] == [
        (pair.wanted, pair.first, pair.requests, pair.are_twins) for pair in pairs
    ]
