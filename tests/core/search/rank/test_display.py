"""Choice of displayed matches, and their display scores, with values computed by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import InvalidRequestError
from gateway.options import Options, SearchOptions
from gateway.search import server_tools
from gateway.search.rank.display import cap_per_kind, display_depth, scale_scores, select, spread
from gateway.testing import HashingEmbedder
from gateway.types import Entity, RankingPolicy, SearchResult
from tests.conftest import OpenGateway
from tests.core.search.conftest import RANKINGS
from tests.fakes import entity, tool

kinds = st.lists(st.sampled_from(["server", "agent", "tool"]), max_size=40)


@pytest.mark.parametrize(("limit", "expected"), [(1, 30), (10, 30), (15, 30), (16, 32), (50, 100)])
def test_display_depth_is_twice_the_limit_but_at_least_thirty(limit: int, expected: int) -> None:
    assert expected == display_depth(limit)


def test_scale_scores_maps_the_best_score_to_one_and_the_worst_to_zero() -> None:
    """The score between them: (0.026 - 0.022) / (0.032 - 0.022) = 0.4."""
    assert [1.0, 0.4, 0.0] == scale_scores([0.032, 0.026, 0.022])


@pytest.mark.parametrize("scores", [[], [0.3], [0.3, 0.3]])
def test_scale_scores_maps_equal_scores_to_one(scores: list[float]) -> None:
    assert [1.0] * len(scores) == scale_scores(scores)


def test_select_mixes_the_kinds_of_a_ranking_as_computed_by_hand() -> None:
    """Ten ranks for three kinds: six servers, two agents, two tools, in their original order."""
    ranked = [
        ("s", 0.95), ("s", 0.93), ("s", 0.91), ("a", 0.88), ("s", 0.87), ("t", 0.85),
        ("s", 0.83), ("a", 0.80), ("s", 0.78), ("t", 0.75), ("a", 0.72), ("s", 0.70),
    ]  # fmt: skip

    displayed = select([kind for kind, _ in ranked], [score for _, score in ranked], limit=10)

    # (0.75 - 0.70) / (0.95 - 0.70) = 0.2 is not below the minimum.
    scores = [1.0, 0.92, 0.84, 0.72, 0.68, 0.6, 0.52, 0.4, 0.32, 0.2]
    assert [*enumerate(scores)] == displayed


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        # (0.2 - 0.1) / (0.9 - 0.1) = 0.125 and 0 are below 0.2, so two of three ranks are used.
        ([0.9, 0.8, 0.2, 0.1], [(0, 1.0), (1, 0.875)]),
        # Reciprocal ranks: 1/61 + 1/61 and 1/62. The second is the last one, so it gets 0.
        ([0.0328, 0.0161], [(0, 1.0)]),
        ([0.3, 0.3], [(0, 1.0), (1, 1.0)]),
    ],
)
def test_select_leaves_out_low_scores_even_if_ranks_stay_free(
    scores: list[float], expected: list[tuple[int, float]]
) -> None:
    assert expected == select(["s"] * len(scores), scores, limit=3)


def test_select_keeps_exempt_entities_with_low_scores() -> None:
    """Exempt entities compete like others: the agent and the last server take two of eight
    ranks.
    """
    scores = [0.9 - place / 100 for place in range(9)] + [0.15, 0.1]
    kinds = ["server"] * 9 + ["agent", "server"]

    displayed = select(kinds, scores, limit=8, exempt={9, 10})

    assert [*range(6), 9, 10] == [place for place, _ in displayed]
    assert [*range(10)] == [place for place, _ in select(kinds, scores, limit=11, exempt={9})]
    assert 0.0 == select(kinds, scores, limit=11, exempt={9, 10})[-1][1]


def test_select_considers_only_the_best_thirty_entities_of_a_kind() -> None:
    """The number is `display_depth(limit)`, so the thirty-first server is ignored."""
    kinds = ["s"] * 31 + ["a"]
    scores = [100.0 - number for number in range(32)]

    displayed = select(kinds, scores, limit=1)

    assert [(0, 1.0)] == displayed
    # The agent is the last of 32 entities and gets 0; 25 of the 31 steps are at 0.2 or above.
    far = select(kinds, scores, limit=40)
    assert 25 == len(far)
    assert (24, 0.2258) == far[-1]


def count_kinds(listed: str, *, limit: int) -> Counter[str]:
    """Return the number of chosen ranks for each kind. *listed* has one letter for each entity's
    kind.
    """
    return Counter(listed[place] for place in cap_per_kind(listed, limit=limit))


@pytest.mark.parametrize(
    ("listed", "limit", "expected"),
    [
        ("", 10, {}),
        ("sss", 0, {}),
        ("s" * 12, 10, {"s": 10}),  # without another kind there is no maximum
        ("s" * 8 + "aa" + "tt", 10, {"s": 6, "a": 2, "t": 2}),
        ("s" * 40 + "aaa" + "tt", 50, {"s": 40, "a": 3, "t": 2}),
        ("sa", 1, {"s": 1}),
        ("s" * 9 + "a", 10, {"s": 9, "a": 1}),
        ("s" * 9 + "a", 8, {"s": 7, "a": 1}),
    ],
)
def test_cap_per_kind_limits_a_kind_while_others_follow(
    listed: str, limit: int, expected: dict[str, int]
) -> None:
    """The maximum is ceil(0.6 x limit) for each kind. Free ranks go back to the limited kind."""
    assert expected == count_kinds(listed, limit=limit)


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        # The maximum is ceil(0.6 x 5) = 3. The fourth server is skipped for the agent. No other
        # kind follows the agent, so the fifth server is taken.
        ("sssssass", "0 1 2 5 6"),
        # Two kinds follow one after the other: the agent, then the tool.
        ("ssssast", "0 1 2 4 6"),
        # Only the skipped server is left for the last rank.
        ("ssssa", "0 1 2 3 4"),
    ],
)
def test_cap_per_kind_does_not_limit_the_only_kind(listed: str, expected: str) -> None:
    assert expected == " ".join(map(str, cap_per_kind(listed, limit=5)))


@pytest.mark.parametrize("agent", [0.3, 0.27])
def test_select_includes_a_kind_whose_best_score_is_above_the_minimum(agent: float) -> None:
    """Nine servers score from 0.90 down to 0.82; one agent and a tenth server, at 0.1, follow.

    The minimum display score of 0.2 is at 0.1 + 0.2 x 0.8 = 0.26. Of eight ranks, five go to
    servers at first, one to the agent, and the rest to the best two left.
    """
    scores = [0.9 - place / 100 for place in range(9)] + [agent, 0.1]
    kinds = ["server"] * 9 + ["agent", "server"]

    assert [0, 1, 2, 3, 4, 5, 6, 9] == spread(kinds, scores, limit=8)
    assert [0, 1, 2, 3, 4, 5, 6, 9] == [place for place, _ in select(kinds, scores, limit=8)]


def test_select_leaves_out_an_entity_below_the_minimum_score() -> None:
    """One agent at 0.10 after nine servers from 0.90 down gets the display score 0."""
    scores = [0.9 - place / 100 for place in range(9)] + [0.1]
    kinds = ["server"] * 9 + ["agent"]

    assert list(range(8)) == spread(kinds, scores, limit=8)
    assert list(range(8)) == [place for place, _ in select(kinds, scores, limit=8)]
    # `spread` has no minimum, so the agent fills the last rank.
    assert list(range(10)) == spread(kinds, scores, limit=10)


@given(kinds, st.integers(0, 30))
def test_chosen_ranks_are_complete_ordered_and_distinct(listed: list[str], limit: int) -> None:
    scores = [1 / (1 + place) for place in range(len(listed))]

    for places in (cap_per_kind(listed, limit=limit), spread(listed, scores, limit=limit)):
        assert min(limit, len(listed)) == len(places)
        assert sorted(set(places)) == places
        assert not places or 0 == places[0]


def entity_about(server: str, name: str, *about: str) -> Entity:
    return entity(tool(name, " ".join(about)), server=server)


def names_and_scores(chosen: list[tuple[Entity, float]]) -> list[tuple[str, float]]:
    return [(chosen_tool.name, score) for chosen_tool, score in chosen]


def servers_of(chosen: list[tuple[Entity, float]]) -> list[str]:
    return [chosen_tool.server for chosen_tool, _ in chosen]


def test_tools_of_matched_servers_are_scored_by_words_of_the_query() -> None:
    """The query has two words. Both in the name: 0.7 x 1 + 0.3 x 1. One in the name, one in the
    description: 0.7 x 0.8 + 0.3. One in the description: 0.7 x 0.3 + 0.3 x 0.5. Neither: left out.
    """
    tools = [
        entity_about("a", "send_letter"),
        entity_about("a", "send_parcel", "letter"),
        entity_about("b", "stamp", "letter"),
        entity_about("b", "weigh"),
    ]

    chosen = server_tools(tools, "send letter", limit=10)

    assert [("send_letter", 1.0), ("send_parcel", 0.86), ("stamp", 0.36)] == names_and_scores(
        chosen
    )


def test_server_tools_limits_each_server_to_its_equal_share() -> None:
    """At limit 10, six tools are chosen: three of each server, although all ten tools of the first
    server have higher scores.
    """
    tools = [entity_about("a", f"send_{number}") for number in range(10)]
    tools += [entity_about("b", f"tell_{number}", "send") for number in range(10)]

    assert ["a", "a", "a", "b", "b", "b"] == servers_of(server_tools(tools, "send", limit=10))
    assert 6 == len(server_tools(tools[:10], "send", limit=10))


def test_server_tools_allows_two_tools_of_each_server() -> None:
    """At limit 1, three tools are chosen: two of the first server and one of the next, although the
    equal share of each server is one tool.
    """
    tools = [
        entity_about(server, f"send_{server}{number}") for server in "abcdef" for number in range(3)
    ]

    assert ["a", "a", "b"] == servers_of(server_tools(tools, "send", limit=1))
    assert [] == server_tools([], "send", limit=1)


def test_server_tools_matches_only_whole_words() -> None:
    tools = [entity_about("mail", "menu", "A mention.")]

    assert [] == server_tools(tools, "men", limit=3)
    assert [] == server_tools(tools, "", limit=3)


async def search_similar(open_gateway: OpenGateway, query: str, **arguments: Any) -> SearchResult:
    """Search for up to 50 matches in a catalog of similar tools."""
    catalog = [tool(f"send_{letter}{letter}", "Send it.") for letter in "abcdefghijkl"]
    gateway = open_gateway(catalog, strategy="auto", embedder=HashingEmbedder())
    return await gateway.search(query, limit=50, diversify=True, **arguments)


@pytest.mark.parametrize("ranking", RANKINGS)
async def test_search_with_display_limit_returns_only_displayed_matches(
    open_gateway: OpenGateway, ranking: RankingPolicy
) -> None:
    all_matches = await search_similar(open_gateway, "send it", ranking=ranking)
    scores = [match.score for match in all_matches.matches]
    expected = select(["tool"] * len(scores), scores, limit=4)

    displayed = await search_similar(open_gateway, "send it", ranking=ranking, display_limit=4)

    assert [all_matches.matches[place] for place, _ in expected] == list(displayed.matches)
    assert tuple(score for _, score in expected) == displayed.display_scores
    assert () == displayed.related == displayed.next_steps == displayed.prerequisites
    assert () == all_matches.display_scores


async def test_search_without_a_good_match_displays_nothing(open_gateway: OpenGateway) -> None:
    gateway = open_gateway(
        [tool("send_mail", "Send it.")],
        strategy="auto",
        embedder=HashingEmbedder(),
        options=Options(search=SearchOptions(no_match_confidence=0.99, min_confidence=0.99)),
    )

    result = await gateway.search("qwxz vbnm", display_limit=4)

    assert ((), ()) == (result.matches, result.display_scores)
    assert result.nearest is not None


async def test_display_limit_applies_if_the_graph_ranks(open_gateway: OpenGateway) -> None:
    gateway = open_gateway([tool("send_mail", "Send it."), tool("send_fax", "Send it.")])

    result = await gateway.search("send it", display_limit=1)

    assert (1, (1.0,)) == (len(result.matches), result.display_scores)


async def test_display_limit_applies_to_browsing_which_has_no_scores(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway([tool(f"send_{letter}", "Send it.") for letter in "abcd"])

    result = await gateway.search(None, display_limit=3)

    assert (3, ()) == (len(result.matches), result.display_scores)


@pytest.mark.parametrize("places", [-1, True, 2.5, "3", None])
async def test_invalid_display_limit_is_rejected(open_gateway: OpenGateway, places: Any) -> None:
    with pytest.raises(InvalidRequestError, match="display_limit must be"):
        await search_similar(open_gateway, "send", display_limit=places)


async def test_display_limit_with_several_queries_is_rejected(open_gateway: OpenGateway) -> None:
    """Scores of two queries are on different scales."""
    gateway = open_gateway([tool("send_mail", "Send it.")])

    with pytest.raises(InvalidRequestError, match="one query"):
        await gateway.search(queries=["send", "mail"], display_limit=2)
