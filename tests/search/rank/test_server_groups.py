"""Tools of one server serve a request together, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import Gateway
from gateway.search.query import split_clauses
from gateway.search.rank.parameters import SERVER_GROUP_CLAUSES
from gateway.search.rank.server_groups import (
    ServerBoost,
    ServerGroups,
    group_scores,
    multi_step_weight,
)
from gateway.testing import HashingEmbedder
from gateway.types import Entity, Kind
from tests.fakes import ListSource, eligibility_of, entity, tool

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


def groups(servers: Sequence[str]) -> ServerGroups | None:
    numbers = {server: number for number, server in enumerate(dict.fromkeys(servers))}
    return ServerGroups.of(np.asarray([numbers[server] for server in servers], np.intp))


@pytest.mark.parametrize("servers", [[], ["one"], ["one", "one", "one"]])
def test_a_catalog_of_one_server_has_no_groups(servers: list[str]) -> None:
    """The server tells nothing apart."""
    assert groups(servers) is None


def test_the_smaller_a_server_the_rarer_it_is() -> None:
    """1 for a tool alone, less for a larger share of the catalog."""
    found = groups(["big"] * 6 + ["small"] * 2 + ["alone"])

    assert found is not None
    big, small, alone = found.rarity_at(np.asarray([0, 6, 8])).tolist()
    assert 0 < big < small < alone == pytest.approx(1)


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.floats(-4, 4, width=32)), min_size=2, max_size=30
    )
)
def test_the_best_of_a_server_is_what_a_loop_finds(tools: list[tuple[str, float]]) -> None:
    """In whatever order entities are ranked; below the average counts as the average."""
    servers = [server for server, _ in tools]
    found = groups(servers)
    if found is None:
        return
    positions = np.arange(len(tools))[::-1].copy()
    scores = np.asarray([tools[at][1] for at in positions], dtype=np.float32)
    members = [
        [
            (other, scores[other])
            for other, at in enumerate(positions)
            if servers[at] == servers[own]
        ]
        for own in positions
    ]

    best = [max(0.0, *(score for _, score in group)) for group in members]
    sibling = [
        max([0.0, *(score for other, score in group if other != index)])
        for index, group in enumerate(members)
    ]
    assert best == pytest.approx(found.best_in_group(positions, scores).tolist())
    assert sibling == pytest.approx(found.best_sibling(positions, scores).tolist())


def test_filters_may_leave_nothing_to_rank() -> None:
    """An empty pool has empty scores."""
    found = groups(["a", "b"])
    none, scores = np.zeros(0, np.intp), np.zeros(0, np.float32)

    assert found is not None
    assert 0 == len(found.best_sibling(none, scores))
    assert 0 == len(group_scores(found.ids, none, scores, 20))


@given(st.integers(0, 40))
def test_servers_count_the_more_the_more_clauses_a_request_has(clauses: int) -> None:
    """Not at all up to the first bound, wholly from the second."""
    low, high = SERVER_GROUP_CLAUSES

    assert (clauses > low) == (multi_step_weight(clauses) > 0)
    assert (clauses >= high) == (multi_step_weight(clauses) == 1)
    assert multi_step_weight(clauses) <= multi_step_weight(clauses + 1)


def test_all_tools_of_a_server_gain_what_its_best_tool_adds() -> None:
    """2 x rarity squared x the best score; by hand, for two of eight tools log(4) / log(8)."""
    ids = np.asarray([0, 0, 1, 1, 1, 1, 1, 1], np.intp)
    scores = np.asarray([2, 1, 3, -1, -1, -1, -1, -1], np.float32)
    rarity = np.log(4) / np.log(8)

    added = group_scores(ids, np.arange(8), scores, clauses=10)

    assert [2 * rarity**2 * 2] * 2 == pytest.approx(added[:2].tolist())
    assert 1 == len({*added[2:].tolist()})
    assert not group_scores(ids, np.arange(8), scores, clauses=5).any()


async def test_a_request_of_many_steps_is_served_by_one_server() -> None:
    """A large server has a tool that is near to one of the steps; a single step takes that."""
    units = [tool(f"convert_{word}", f"Convert a {word}.") for word in ("length", "weight")]
    units += [tool("list_units", "Say which there are."), tool("check_units", "Look one up.")]
    wide = [tool("note_comment", "Note the comment of the author.")]
    wide += [tool(f"thing_{number}", f"Keep the thing {number}.") for number in range(40)]
    assert len(split_clauses(REQUEST)) > SERVER_GROUP_CLAUSES[1]

    async with Gateway(embedder=HashingEmbedder(), strategy="auto") as gateway:
        gateway.add_source(ListSource("units", units))
        gateway.add_source(ListSource("wide", wide))
        whole = await gateway.search(REQUEST, limit=3)
        step = await gateway.search(STEPS[5], limit=4)

    assert ["units"] * 2 == [match.server for match in whole.matches][:2]
    assert "note_comment" == step.matches[0].name


# -- the policy hybrid -----------------------------------------------------------------------------


def listed(name: str, server: str, kind: Kind = "tool") -> Entity:
    return replace(entity(tool(name), server=server), id=f"{kind}:{server}/{name}", kind=kind)


CATALOG = (
    listed("send", "mail"),
    listed("read", "mail"),
    listed("mail", "mail", "server"),
    listed("planner", "catalog", "agent"),
)


def boosted(
    scores: Sequence[float], *, catalog: Sequence[Entity] = CATALOG, clauses: int = 0
) -> list[float]:
    found = groups([each.server if each.kind == "tool" else each.id for each in catalog])
    assert found is not None
    boost = ServerBoost(
        groups=found,
        eligibility=eligibility_of(catalog),
        entities=catalog,
        clause_count=clauses,
    )
    positions = np.flatnonzero(np.isfinite(scores))
    own = np.asarray(scores, np.float32)[positions]
    return [float(score) for score in boost.boost(positions, own)]


@pytest.mark.parametrize(("clauses", "steps"), [(0, 0), (5, 0), (8, 0.6), (10, 1), (24, 1)])
def test_each_kind_gains_by_its_server(clauses: int, steps: float) -> None:
    """A server of two of four weighs log(2)/log(4) = 0.5 of its best sibling, or tool.

    An agent counts as if a sibling fitted 0.6 as well.
    """
    weight = (0.35 + steps * 0.5) * 0.5
    by_hand = [2 + weight * 1, 1 + weight * 2, 0.5 + 0.35 * 0.5 * 2, 1 + 0.35 * 0.6 * 1]

    assert pytest.approx(by_hand) == boosted([2, 1, 0.5, 1], clauses=clauses)


def test_a_bad_sibling_costs_nothing() -> None:
    """An entity that fits worse than the average adds to no other."""
    assert pytest.approx([-1, -2, -1, -1]) == boosted([-1, -2, -1, -1])


def test_only_entities_that_are_ranked_add_to_each_other() -> None:
    """What is filtered out, or no candidate, counts for nothing."""
    gone = float("nan")

    assert pytest.approx([1, 0.5 + 0.35 * 0.5 * 1]) == boosted([gone, 1, 0.5, gone])
    assert [] == boosted([gone] * 4)


def test_a_server_without_tools_stands_alone() -> None:
    """Also where another entity has the same name: only tools are a server's."""
    entries = (
        listed("box", "catalog", "server"), listed("planner", "catalog", "agent"),
        listed("send", "mail"), listed("read", "mail"),
    )  # fmt: skip

    assert pytest.approx(0.5 + 0.35 * 0.6 * 0.5) == boosted([0.5, 2, 2, 2], catalog=entries)[0]


def test_a_namespace_is_not_the_server_of_that_name() -> None:
    """An entry among the tools of a server is not lifted by them."""
    guest = listed("guest", "mail", "server")
    alone = 1 + 0.35 * 0.6 * 1

    assert alone == pytest.approx(boosted([3, 1, 0, 0, 1], catalog=(*CATALOG, guest))[-1])
