"""Requests of many parts, which few servers do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import Gateway
from gateway.embed.yardstick import Yardstick
from gateway.index.vectors.exact import VectorIndex, VectorQuery
from gateway.options import Options, SearchOptions
from gateway.runtime.vectors import unit_rows
from gateway.search import fusion
from gateway.search.asked import Asked
from gateway.search.dense.vector import candidates
from gateway.search.evidence import Ranking, read_words
from gateway.search.request import clauses, parted
from gateway.search.results import nearest_of_jobs
from gateway.testing import HashingEmbedder
from graphs import Postings
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
ASKED = "Please do all of these for me. " + ". ".join(STEPS)


@given(st.integers(0, 40))
def test_a_request_becomes_a_job_by_its_parts(parts: int) -> None:
    """Not at all up to the first step, wholly from the second, and never less for more parts."""
    least, most = fusion.STEPS

    assert (parts > least) == (fusion.job(parts) > 0)
    assert (parts >= most) == (fusion.job(parts) == 1)
    assert fusion.job(parts) <= fusion.job(parts + 1)


async def test_a_job_is_done_by_the_server_that_serves_it_as_a_whole() -> None:
    """A large server has a tool that is near to one of the parts; a single step takes that."""
    units = [tool(f"convert_{word}", f"Convert a {word}.") for word in ("length", "weight")]
    units += [tool("list_units", "Say which there are."), tool("check_units", "Look one up.")]
    wide = [tool("note_comment", "Note the comment of the author.")]
    wide += [tool(f"thing_{number}", f"Keep the thing {number}.") for number in range(40)]
    assert len(clauses(ASKED)) > fusion.STEPS[1]

    async with Gateway(embedder=HashingEmbedder(), strategy="auto") as gateway:
        gateway.add_source(ListSource("units", units))
        gateway.add_source(ListSource("wide", wide))
        whole = await gateway.search(ASKED, limit=4)
        part = await gateway.search(STEPS[5], limit=4)

    assert {"units"} == {match.server for match in whole.matches}
    assert "note_comment" == part.matches[0].name


def test_a_misspelt_request_has_no_more_parts() -> None:
    """They are counted as they were said or as they were meant, not both; both are looked up."""
    misspelt = ASKED.replace("convert", "convrt")

    several, parts = parted(misspelt, ASKED)

    assert len(STEPS) + 1 == parts
    assert {*clauses(misspelt), *clauses(ASKED)} == set(several)
    assert (clauses(ASKED), parts) == parted(ASKED, ASKED)
    assert ((), 0) == parted(STEPS[0], STEPS[0])


def ranking(parts: int, *, vectors: bool = True) -> Ranking:
    """Rank a dull tool before the nearest one."""
    rows = unit_rows([[0.1, 1], [1, 0.1]])
    index = Postings.build([{"name": "dull"}, {"name": "near"}], weights={"name": 1.0})
    asked = Asked(query="which", english="which", parts=parts)
    found = candidates(
        VectorIndex.of(rows),
        VectorQuery(texts=unit_rows([[1, 0]]), clauses=rows[:0]),
        mask=np.ones(2, bool),
        limit=1,
        options=SearchOptions(),
    )
    return Ranking(
        asked=asked,
        order=fusion.Order(positions=np.array([0, 1]), scores=np.array([2, 1], np.float32)),
        words=read_words(index, asked),
        found=found if vectors else None,
        yardstick=Yardstick(strangers=0.0, matches=0.3),
        agree=False,
    )


def test_whether_anything_does_a_job_is_asked_of_the_nearest_too() -> None:
    """Its tools may look duller than strangers; short requests are judged by what is listed."""
    many = ranking(fusion.STEPS[1])
    listed = many.told([0]).confidences[0]

    assert listed < nearest_of_jobs([many], 1)
    assert many.told([1]).confidences[0] == nearest_of_jobs([many], 1)
    assert 0 == nearest_of_jobs([ranking(0)], 1)
    assert 0 == nearest_of_jobs([ranking(fusion.STEPS[1], vectors=False)], 1)
    assert 0 == nearest_of_jobs([], 1)


@pytest.mark.parametrize(("least", "emptied"), [(0.0, False), (1.0, True)])
async def test_a_job_that_nothing_serves_is_emptied(least: float, emptied: bool) -> None:
    """The nearest must be sure enough, as the listed must for a short request."""
    options = Options(search=replace(SearchOptions(), no_match_confidence=least))
    async with Gateway(embedder=HashingEmbedder(), strategy="auto", options=options) as gateway:
        gateway.add_source(ListSource("one", [tool("dull", "Nothing of the kind.")]))
        gateway.add_source(ListSource("two", [tool("other", "Another one.")]))
        found = await gateway.search(ASKED)

    assert emptied == (not found.matches)
