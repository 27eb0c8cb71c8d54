"""The registry's view of a ranking, computed by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import InvalidRequestError
from gateway.options import Options, SearchOptions
from gateway.search.rank.display import (
    cap_per_kind,
    display_depth,
    scale_scores,
    select,
    server_tools,
)
from gateway.testing import HashingEmbedder
from gateway.types import Entity, RankingPolicy, SearchResult
from tests.conftest import OpenGateway
from tests.fakes import entity, tool

kinds = st.lists(st.sampled_from(["server", "agent", "tool"]), max_size=40)


@pytest.mark.parametrize(("limit", "expected"), [(1, 30), (10, 30), (15, 30), (16, 32), (50, 100)])
def test_twice_the_places_compete_and_thirty_at_least(limit: int, expected: int) -> None:
    """Of each kind."""
    assert expected == display_depth(limit)


def test_display_scores_go_from_one_to_zero() -> None:
    """(0.026 - 0.022) / (0.032 - 0.022) = 0.4."""
    assert [1.0, 0.4, 0.0] == scale_scores([0.032, 0.026, 0.022])


@pytest.mark.parametrize("scores", [[], [0.3], [0.3, 0.3]])
def test_equal_scores_are_all_one(scores: list[float]) -> None:
    """Nothing tells them apart, and none is a zero."""
    assert [1.0] * len(scores) == scale_scores(scores)


def test_the_worked_example_of_two_passes() -> None:
    """Ten places over three kinds: six servers, two agents, two tools, none out of order."""
    ranked = [
        ("s", 0.95), ("s", 0.93), ("s", 0.91), ("a", 0.88), ("s", 0.87), ("t", 0.85),
        ("s", 0.83), ("a", 0.80), ("s", 0.78), ("t", 0.75), ("a", 0.72), ("s", 0.70),
    ]  # fmt: skip

    shown = select([kind for kind, _ in ranked], [score for _, score in ranked], limit=10)

    # 0.75: (0.75 - 0.70) / (0.95 - 0.70) = 0.2, which is not below the floor.
    scores = [1.0, 0.92, 0.84, 0.72, 0.68, 0.6, 0.52, 0.4, 0.32, 0.2]
    assert [*enumerate(scores)] == shown


def test_the_floor_leaves_enough() -> None:
    """Three are wanted and only two stand above it: the third is shown, with what it is worth."""
    shown = select(["s", "s", "s", "s"], [0.9, 0.8, 0.2, 0.1], limit=3)

    assert [(0, 1.0), (1, 0.875), (2, 0.125)] == shown


def test_only_the_first_of_each_kind_compete() -> None:
    """The thirty-first server measures nothing: display is 0 at the thirtieth and at the agent's
    own place by its score."""
    kinds = ["s"] * 31 + ["a"]
    scores = [100.0 - each for each in range(32)]

    shown = select(kinds, scores, limit=1)

    assert [(0, 1.0)] == shown
    far = select(kinds, scores, limit=40)
    assert 32 == len(far)
    assert (31, 0.0) == far[-1]


def count_kinds(listed: str, *, limit: int, floor: float = 0.0) -> Counter[str]:
    """Count the kinds of a ranking, by letters."""
    scores = [1 - place / 100 for place in range(len(listed))]
    return Counter(
        listed[place] for place in cap_per_kind(listed, scores, limit=limit, floor=floor)
    )


@pytest.mark.parametrize(
    ("listed", "limit", "expected"),
    [
        ("", 10, {}),
        ("sss", 0, {}),
        ("s" * 12, 10, {"s": 10}),  # no competition: the cap is lifted
        ("s" * 8 + "aa" + "tt", 10, {"s": 6, "a": 2, "t": 2}),
        ("s" * 40 + "aaa" + "tt", 50, {"s": 40, "a": 3, "t": 2}),
        ("sa", 1, {"s": 1}),
        ("s" * 9 + "a", 10, {"s": 9, "a": 1}),
        ("s" * 9 + "a", 8, {"s": 7, "a": 1}),
    ],
)
def test_a_kind_stands_back_while_others_wait(
    listed: str, limit: int, expected: dict[str, int]
) -> None:
    """ceil(0.6 x limit) each, then what is free goes back."""
    assert expected == count_kinds(listed, limit=limit)


def test_nobody_takes_a_place_who_is_far_worse() -> None:
    """Nine servers from 0.90 down and one agent at 0.10: eight servers are shown."""
    scores = [0.9 - place / 100 for place in range(9)] + [0.1]

    assert list(range(8)) == cap_per_kind(["server"] * 9 + ["agent"], scores, limit=8)
    assert 9 in cap_per_kind(["server"] * 9 + ["agent"], scores, limit=8, floor=0)
    assert 9 in cap_per_kind(["server"] * 9 + ["agent"], [*scores[:9], 0.5], limit=8)


@given(kinds, st.integers(0, 30), st.floats(0, 1))
def test_a_page_is_full_in_order_and_without_repeats(
    listed: list[str], limit: int, floor: float
) -> None:
    """As many as are wanted, if there are so many; the best comes first."""
    scores = [1 / (1 + place) for place in range(len(listed))]

    places = cap_per_kind(listed, scores, limit=limit, floor=floor)

    assert min(limit, len(listed)) == len(places)
    assert sorted(set(places)) == places
    assert not places or 0 == places[0]


def worded(server: str, name: str, *about: str) -> Entity:
    return entity(tool(name, " ".join(about)), server=server)


def scored(found: list[tuple[Entity, float]]) -> list[tuple[str, float]]:
    return [(each.name, score) for each, score in found]


def servers(found: list[tuple[Entity, float]]) -> list[str]:
    return [each.server for each, _ in found]


def test_tools_of_matched_servers_are_scored_by_hand() -> None:
    """Two words asked. Both in the name: 0.7 x 1 + 0.3 x 1. One there, one told: 0.7 x 0.8 + 0.3.
    One told: 0.7 x 0.3 + 0.3 x 0.5. None: left out."""
    tools = [
        worded("a", "send_letter"),
        worded("a", "send_parcel", "letter"),
        worded("b", "stamp", "letter"),
        worded("b", "weigh"),
    ]

    found = server_tools(tools, "send letter", limit=10)

    assert [("send_letter", 1.0), ("send_parcel", 0.86), ("stamp", 0.36)] == scored(found)


def test_no_server_takes_all_places_of_tools() -> None:
    """Six places and two servers: three each, though all ten of the first are as good."""
    tools = [worded("a", f"send_{each}") for each in range(10)]
    tools += [worded("b", f"tell_{each}", "send") for each in range(10)]

    assert ["a", "a", "a", "b", "b", "b"] == servers(server_tools(tools, "send", limit=10))
    assert 6 == len(server_tools(tools[:10], "send", limit=10))


def test_many_servers_have_two_places_each_at_least() -> None:
    """Of three places for one entity, the best two of one server and the next one."""
    tools = [worded(server, f"send_{server}{each}") for server in "abcdef" for each in range(3)]

    assert ["a", "a", "b"] == servers(server_tools(tools, "send", limit=1))
    assert [] == server_tools([], "send", limit=1)


def test_words_are_whole() -> None:
    """`the` is not in `theme`."""
    tools = [worded("mail", "menu", "A mention.")]

    assert [] == server_tools(tools, "men", limit=3)
    assert [] == server_tools(tools, "", limit=3)


async def searched(open_gateway: OpenGateway, query: str, **asked: Any) -> SearchResult:
    """Ask for up to 50 of a catalog whose tools lead to each other."""
    catalog = [tool(f"send_{letter}{letter}", "Send it.") for letter in "abcdefghijkl"]
    gateway = open_gateway(catalog, strategy="auto", embedder=HashingEmbedder())
    return await gateway.search(query, limit=50, diversify=True, **asked)


@pytest.mark.parametrize("ranking", get_args(RankingPolicy))
async def test_a_search_gives_those_alone_who_are_displayed(
    open_gateway: OpenGateway, ranking: RankingPolicy
) -> None:
    """As they are chosen out of all; what is said of them is the same."""
    whole = await searched(open_gateway, "send it", ranking=ranking)
    scores = [match.score for match in whole.matches]
    expected = select(["tool"] * len(scores), scores, limit=4)

    few = await searched(open_gateway, "send it", ranking=ranking, display_limit=4)

    assert [whole.matches[place] for place, _ in expected] == list(few.matches)
    assert tuple(score for _, score in expected) == few.display_scores
    assert () == few.related == few.next_steps == few.prerequisites
    assert () == whole.display_scores


async def test_what_nothing_serves_displays_nothing(open_gateway: OpenGateway) -> None:
    """Nor do scores remain of matches that were taken out."""
    gateway = open_gateway(
        [tool("send_mail", "Send it.")],
        strategy="auto",
        embedder=HashingEmbedder(),
        options=Options(search=SearchOptions(no_match_confidence=0.99, min_confidence=0.99)),
    )

    found = await gateway.search("qwxz vbnm", display_limit=4)

    assert ((), ()) == (found.matches, found.display_scores)
    assert found.nearest is not None


async def test_the_graph_may_display_its_own(open_gateway: OpenGateway) -> None:
    """Without vectors, too."""
    gateway = open_gateway([tool("send_mail", "Send it."), tool("send_fax", "Send it.")])

    found = await gateway.search("send it", display_limit=1)

    assert (1, (1.0,)) == (len(found.matches), found.display_scores)


async def test_a_browse_gives_the_first_places(open_gateway: OpenGateway) -> None:
    """Nothing is ranked, so nobody has a score for display."""
    gateway = open_gateway([tool(f"send_{letter}", "Send it.") for letter in "abcd"])

    found = await gateway.search(None, display_limit=3)

    assert (3, ()) == (len(found.matches), found.display_scores)


@pytest.mark.parametrize("places", [-1, True, 2.5, "3", None])
async def test_the_display_limit_is_a_number(open_gateway: OpenGateway, places: Any) -> None:
    """And none below none."""
    with pytest.raises(InvalidRequestError, match="display_limit must be"):
        await searched(open_gateway, "send", display_limit=places)


async def test_places_are_chosen_from_one_ranking(open_gateway: OpenGateway) -> None:
    """Scores of two queries are on two scales."""
    gateway = open_gateway([tool("send_mail", "Send it.")])

    with pytest.raises(InvalidRequestError, match="one query"):
        await gateway.search(queries=["send", "mail"], display_limit=2)
