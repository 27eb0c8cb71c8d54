"""The signal for tools of the best servers."""

from __future__ import annotations

import numpy as np
import pytest

from gateway import Gateway
from gateway.search import group_scores
from gateway.testing import HashingEmbedder
from tests.fakes import ListSource, tool

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


def test_all_tools_of_a_server_gain_equally_from_its_best_tool() -> None:
    """The gain is the rarity of the server x its best score, times 2 for ten clauses. A server with
    two of eight tools has the rarity log(4) / log(8).
    """
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
def test_tools_do_not_gain_if_the_catalog_has_one_server(ids: list[int]) -> None:
    """There is no gain, either, in an empty catalog or without any candidates."""
    scores = np.ones(len(ids), np.float32)

    assert not group_scores(np.asarray(ids, np.intp), np.arange(len(ids)), scores, 20).any()
    assert 0 == len(group_scores(np.asarray([0, 1]), np.zeros(0, np.intp), scores[:0], 20))


async def test_request_of_many_steps_finds_tools_of_one_server() -> None:
    """Another, large server has a tool near to one step. Only a search for that step alone finds it
    first.
    """
    units = [tool(f"convert_{word}", f"Convert a {word}.") for word in ("length", "weight")]
    units += [tool("list_units", "Say which there are."), tool("check_units", "Look one up.")]
    wide = [tool("note_comment", "Note the comment of the author.")]
    wide += [tool(f"thing_{number}", f"Keep the thing {number}.") for number in range(40)]

    async with Gateway(embedder=HashingEmbedder(), strategy="auto") as gateway:
        gateway.add_source(ListSource("units", units))
        gateway.add_source(ListSource("wide", wide))
        by_request = await gateway.search(REQUEST, limit=3)
        by_step = await gateway.search(STEPS[5], limit=4)

    assert ["units"] * 2 == [match.server for match in by_request.matches][:2]
    assert "note_comment" == by_step.matches[0].name
