"""The score of `auto`, interleaving and exact names, by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import Gateway
from gateway.index.candidates import Candidates, VectorQuery
from gateway.index.vectors import VectorIndex
from gateway.runtime.vectors import unit_rows
from gateway.search.rank.fusion import (
    RankedList,
    clause_gains,
    fuse,
    group_scores,
    interleave,
    pin_exact_names,
)
from gateway.testing import HashingEmbedder
from tests.fakes import ListSource, tool

positions = st.lists(st.integers(0, 12), max_size=10, unique=True)
evidence = st.lists(st.tuples(st.floats(-1, 1, width=16), st.floats(0, 9, width=16)), max_size=30)


def ranked(order: Sequence[int]) -> RankedList:
    scores = np.linspace(2, 1, len(order), dtype=np.float32)
    return RankedList(positions=np.asarray(order, np.intp), scores=scores)


def candidates(cosines: Sequence[float], *, pool: int = 200) -> Candidates:
    rows = unit_rows([[value, (1 - value * value) ** 0.5] for value in cosines] or [[1, 0]])
    rows = rows[: len(cosines)]
    return VectorIndex.of(rows).search(
        VectorQuery(texts=unit_rows([[1, 0]]), clauses=rows[:0]),
        mask=np.ones(len(cosines), bool),
        count=pool,
    )


def fused(
    found: Candidates,
    words: Sequence[float],
    clauses: Sequence[float] | None = None,
    *,
    mask: Sequence[bool] = (),
    weight: float = 0.4,
) -> RankedList:
    size = len(words)
    return fuse(
        found,
        [np.asarray(each, np.float32) for each in (words, clauses) if each is not None],
        mask=np.asarray(mask or [True] * size, bool),
        weight=weight,
        server_ids=np.zeros(size, np.intp),
    )


def test_a_score_is_the_deviation_of_the_cosine_and_a_share_of_that_of_the_words() -> None:
    """z(cosine) + 0.4 z(BM25F), over all eligible entities."""
    found = candidates([0.9, 0.6, 0.3, 0.1])
    words = np.asarray([0, 1, 5, 0], np.float32)

    result = fused(found, words.tolist())

    cosines = found.strengths[np.argsort(found.pool)]
    z = (cosines - cosines.mean()) / cosines.std()
    by_hand = z + 0.4 * (words - words.mean()) / words.std()
    assert np.argsort(-by_hand).tolist() == result.positions.tolist()
    np.testing.assert_allclose(result.scores, np.sort(by_hand)[::-1], rtol=1e-5)


def test_the_best_clause_of_a_long_request_adds_the_same_share_again() -> None:
    """0.4 z(best clause BM25F)."""
    found = candidates([0.5, 0.5, 0.5])
    clauses = np.asarray([0, 0, 3], np.float32)

    result = fused(found, [0, 0, 0], clauses.tolist())

    by_hand = 0.4 * (clauses - clauses.mean()) / clauses.std()
    assert [2, 0, 1] == result.positions.tolist()
    np.testing.assert_allclose(result.scores, np.sort(by_hand)[::-1], rtol=1e-5)


def test_entities_that_are_not_eligible_move_no_mean() -> None:
    """Deviations are those of the eligible entities alone."""
    found = candidates([0.9, 0.6, 0.3])

    with_other = fused(found, [1, 2, 9], mask=[True, True, False])

    # The eligible words are 1 and 2: mean 1.5, deviation 0.5.
    by_hand = found.deviations(found.strengths)
    by_hand += 0.4 * np.asarray([-1, 1, 15], np.float32)[found.pool]
    np.testing.assert_allclose(np.sort(by_hand)[::-1], with_other.scores, rtol=1e-4)


@pytest.mark.parametrize(
    ("cosines", "words"), [([0.9, 0.5], [0, 0]), ([0.5, 0.5], [1, 0]), ([], [])]
)
def test_evidence_that_is_equal_for_all_ranks_nothing(
    cosines: list[float], words: list[float]
) -> None:
    """The other evidence ranks, then the name."""
    assert list(range(len(cosines))) == fused(candidates(cosines), words).positions.tolist()


@given(evidence)
def test_fusion_reorders_the_pool_and_nothing_else(rows: list[tuple[float, float]]) -> None:
    """Vectors choose the candidates."""
    found = candidates([cosine for cosine, _ in rows], pool=7)

    result = fused(found, [words for _, words in rows])

    assert set(found.pool.tolist()) == set(result.positions.tolist())
    assert sorted(result.scores.tolist(), reverse=True) == result.scores.tolist()


@given(st.lists(positions, max_size=5), st.integers(0, 20))
def test_interleaving_takes_turns_and_lists_nothing_twice(
    lists: list[list[int]], limit: int
) -> None:
    """Each query gets its quota; what one list lacks, the others fill."""
    chosen = interleave([ranked(order) for order in lists], limit=limit)

    found = [position for _, position, _ in chosen]
    every = {position for order in lists for position in order}
    assert len(found) == len(set(found)) == min(limit, len(every))
    assert all(position in lists[number] for number, position, _ in chosen)


def test_the_first_of_each_list_come_before_any_second() -> None:
    """In the order of the queries."""
    lists = [ranked([1, 2]), ranked([3, 1, 4])]

    chosen = [(number, position) for number, position, _ in interleave(lists, limit=4)]
    assert [(0, 1), (1, 3), (0, 2), (1, 4)] == chosen


@given(positions, st.lists(st.integers(0, 12), max_size=4, unique=True))
def test_exact_names_come_first_and_the_rest_keeps_its_order(
    order: list[int], named: list[int]
) -> None:
    """Also what the ranking did not hold."""
    result = pin_exact_names(ranked(order), named)

    rest = [position for position in order if position not in named]
    assert [*named, *rest] == result.positions.tolist()
    assert all(result.scores[: len(named)] >= max(result.scores[len(named) :].tolist(), default=0))


# -- requests of many clauses ----------------------------------------------------------------------


STEPS = (
    "convert the length of the reactor",
    "convert the weight of the catalyst",
    "convert the volume of the tank",
    "convert the speed of the conveyor",
    "convert the angle of the valve",
    "note the comment of the author",
    "convert the power of the motor",
    "convert the density of the fluid",
    "convert the energy of the fuel",
    "convert the area of the exchanger",
    "convert the time of the reaction",
)
REQUEST = "Please do all of these for me. " + ". ".join(STEPS)


def test_all_tools_of_a_server_gain_what_its_best_tool_adds() -> None:
    """Rarity x the best score, twice for ten clauses; two of eight tools have log(4) / log(8)."""
    ids = np.asarray([0, 0, 1, 1, 1, 1, 1, 1], np.intp)
    scores = np.asarray([2, 1, 3, -1, -1, -1, -1, -1], np.float32)
    rarity = np.log(4) / np.log(8)

    added = group_scores(ids, np.arange(8), scores, clauses=0, weights=(1.0, 2.0))

    assert [rarity * 2] * 2 == pytest.approx(added[:2].tolist())
    assert 1 == len({*added[2:].tolist()})
    for clauses, factor in ((5, 1.0), (8, 1.6), (10, 2.0), (24, 2.0)):
        more = group_scores(ids, np.arange(8), scores, clauses, weights=(1.0, 2.0))
        assert (factor * added).tolist() == pytest.approx(more.tolist())


@pytest.mark.parametrize("ids", [[], [0, 0, 0]])
def test_a_single_server_tells_nothing_apart(ids: list[int]) -> None:
    """Nor does a catalog of none, or a pool that filters left empty."""
    scores = np.ones(len(ids), np.float32)

    assert not group_scores(np.asarray(ids, np.intp), np.arange(len(ids)), scores, 20).any()
    assert 0 == len(group_scores(np.asarray([0, 1]), np.zeros(0, np.intp), scores[:0], 20))


async def test_a_request_of_many_steps_is_served_by_one_server() -> None:
    """A large server has a tool that is near to one of the steps; a single step takes that."""
    units = [tool(f"convert_{word}", f"Convert a {word}.") for word in ("length", "weight")]
    units += [tool("list_units", "Say which there are."), tool("check_units", "Look one up.")]
    wide = [tool("note_comment", "Note the comment of the author.")]
    wide += [tool(f"thing_{number}", f"Keep the thing {number}.") for number in range(40)]

    async with Gateway(embedder=HashingEmbedder(), strategy="auto") as gateway:
        gateway.add_source(ListSource("units", units))
        gateway.add_source(ListSource("wide", wide))
        whole = await gateway.search(REQUEST, limit=3)
        step = await gateway.search(STEPS[5], limit=4)

    assert ["units"] * 2 == [match.server for match in whole.matches][:2]
    assert "note_comment" == step.matches[0].name


def test_the_tool_nearest_to_each_clause_gains_once() -> None:
    gains = clause_gains(5, [3, 1, 3], gain=1.5)

    assert [0, 1.5, 0, 1.5, 0] == gains.tolist()
    assert not clause_gains(5, []).any()


async def test_a_long_request_over_unrelated_servers_finds_a_tool_for_each_part() -> None:
    """Most of its words are about maps, and the server of maps has more tools than are listed."""
    verbs = ("draw", "print", "zoom", "save", "share", "rotate", "measure", "colour")
    catalogs = {
        "maps": [tool(f"{verb}_map", f"{verb} a map of roads in a city") for verb in verbs],
        "mail": [tool("post_letter", "send a paper by stamp"), tool("list_stamps", "list stamps")],
        "bank": [tool("pay_invoice", "settle a bill"), tool("list_accounts", "list accounts")],
        "other": [tool(f"thing_{number}", f"keep the thing {number}") for number in range(20)],
    }
    request = (
        "Please draw a map of all the streets and roads of the city and measure the roads on the "
        "map of the city. Send a paper to my aunt. Settle the bill from yesterday."
    )
    async with Gateway(embedder=HashingEmbedder(), strategy="auto") as gateway:
        for name, tools in catalogs.items():
            gateway.add_source(ListSource(name, tools))
        result = await gateway.search(request, limit=5)

    assert {"draw_map", "post_letter", "pay_invoice"} <= {match.name for match in result.matches}
