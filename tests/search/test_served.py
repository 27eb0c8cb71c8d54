"""Whether a catalog serves a request at all."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.hearing import Heard, Listening
from benchmarks.training import FROZEN, fit
from gateway.embed.cohort import Cohort
from gateway.embed.parts import VectorParts
from gateway.embed.yardstick import Yardstick
from gateway.options import SearchOptions
from gateway.runtime.vectors import unit_rows
from gateway.search import served
from gateway.search.confidence import share
from gateway.search.evidence import Ranking, Words
from gateway.search.fusion import STEPS
from gateway.search.served import BOUND, Request, Weights, packaged, read, written
from gateway.testing import HashingEmbedder
from gateway.types import SearchRequest, ToolDefinition
from tests.fakes import definitions, entity, plain_embed
from tests.search.conftest import auto, snapshot_of

SIGNALS = len(Request._fields)
FEW = Request(*([0.0] * SIGNALS))


def weights(**known: float) -> Weights:
    """Weights of one signal, and of its product with the next."""
    linear, products = np.zeros(SIGNALS), np.zeros((SIGNALS, SIGNALS))
    linear[0], products[0, 1] = known["linear"], known["product"]
    return Weights(np.zeros(SIGNALS), np.full(SIGNALS, 2.0), known["bias"], linear, products)


def test_the_packaged_weights_are_made_of_the_frozen_signals() -> None:
    """Numbers that nobody can make again are numbers that nobody can check."""
    heard = Heard.load(FROZEN)
    path = Path(served.__file__).with_name("served.json")

    assert path.read_text(encoding="utf-8") == written(fit(heard.at(heard.even)))


def test_signals_count_alone_and_by_twos_and_not_beyond_a_bound() -> None:
    """In deviations from their means."""
    found = weights(bias=1.0, linear=2.0, product=3.0)

    assert 1.0 == found.logit(FEW)
    assert 1 + 2 * 1 + 3 * 1 * 2 == found.logit(FEW._replace(coverage=2.0, unread=4.0))
    assert 1 + 2 * BOUND == found.logit(FEW._replace(coverage=99.0))
    assert 1 - 2 * BOUND == found.logit(FEW._replace(coverage=-99.0))


def test_weights_are_written_and_read() -> None:
    """And those of other signals are refused."""
    text = written(weights(bias=0.12345, linear=2.0, product=3.0))
    found = read(text)

    assert (0.1234, 2.0, 3.0) == (found.bias, found.linear[0], found.products[0, 1])
    assert text == written(found)
    with pytest.raises(ValueError, match="not of"):
        read(text.replace("coverage", "farness"))


def test_words_beyond_a_bound_say_nothing() -> None:
    """Requests of a thousand words were not learned from."""
    assert math.log(5) == pytest.approx(served.words(4))
    assert served.words(200) == served.words(2000)


def test_what_is_more_alike_and_shares_more_words_is_likelier_served() -> None:
    """By the packaged weights, around a usual request."""
    usual = Request(*packaged().means)
    near = usual._replace(alike=usual.alike + 0.1, coverage=usual.coverage + 0.1)
    strange = usual._replace(strangers=usual.strangers + 0.2)

    assert packaged().logit(near) > packaged().logit(usual) > packaged().logit(strange)


@pytest.fixture
def ranking(catalog: tuple[ToolDefinition, ...]) -> Ranking:
    """A ranking of which the model's cosines and cohort are known."""
    embedder = HashingEmbedder()
    options = SearchOptions()
    search = Listening(options=options, strategy="auto", embed=plain_embed(embedder))
    snapshot = snapshot_of([entity(each) for each in catalog], embedder)
    asyncio.run(search(snapshot, SearchRequest(queries=("send an e-mail to the accountant",))))
    (found,) = search.rankings
    scale = Yardstick(strangers=0.0, matches=0.4)
    rows = embedder.vectors([f"Tool number {number}" for number in range(30)])
    return replace(found, yardstick=scale, cohort=Cohort.of(rows), agree=False)


def test_the_best_of_the_first_is_as_sure_as_its_request(ranking: Ranking) -> None:
    """And the others stand to it as before, whoever is asked about."""
    told = ranking.told([])
    alone = replace(ranking, cohort=None).told([])
    last = int(ranking.order.positions[-1])

    assert told.request is not None
    assert share(packaged().logit(told.request)) == pytest.approx(max(told.confidences))
    assert np.argsort(told.confidences).tolist() == np.argsort(alone.confidences).tolist()
    assert len(told.spots) == served.FIRST
    assert told.confidences == ranking.told([last]).confidences[1:]


def test_a_job_is_no_less_sure_than_its_best_match(ranking: Ranking) -> None:
    """It looks like nothing that one tool is made for, and is served by its parts."""
    assert ranking.found is not None
    near = replace(ranking, yardstick=Yardstick(strangers=-1.0, matches=0.0))
    strange = replace(near, cohort=Cohort.of(ranking.found.question.texts))
    few, _ = STEPS

    def best(told: Ranking, parts: int) -> float:
        return max(replace(told, asked=replace(told.asked, parts=parts)).told([]).confidences)

    alone = best(replace(near, cohort=None), 0)
    assert best(strange, few) < alone
    assert best(strange, few + 1) == pytest.approx(alone)


def test_a_request_is_told_by_its_best_match(ranking: Ranking) -> None:
    """On the model's scale."""
    told = ranking.told([])
    request = told.request
    found = ranking.found

    assert request is not None
    assert found is not None
    cosines = np.sort(found.scanned.cosines)[::-1] / 0.4
    assert request.coverage in told.held.coverage
    assert request.ahead == pytest.approx(cosines[0] - cosines[min(19, len(cosines) - 1)], abs=1e-5)
    assert request.mean == pytest.approx(cosines.mean(), abs=1e-5)
    parted = replace(ranking, asked=replace(ranking.asked, parts=4)).told([]).request
    assert parted is not None
    assert 0 == request.parts
    assert math.log(5) == pytest.approx(parted.parts)
    assert request.strangers >= request.cohort
    assert request.most == max(told.held.coverage)
    assert ranking.cohort is not None
    rows = found.index.rows(ranking.order.positions[: served.FIRST])
    assert request.alike == ranking.cohort.alike(found.question.texts, rows)


def test_a_request_is_told_of_the_words_that_nobody_holds(ranking: Ranking) -> None:
    """Their share, and how rare the rarest of the others is."""
    index = ranking.words.index
    read = index.read("send an e-mail to the zebra of Zanzibar")
    request = replace(ranking, words=Words(index=index, best=read)).told([]).request

    assert request is not None
    assert 0 < request.unknown < 1
    assert index.scarcity(read) == (request.unknown, request.rarest)


def test_cosines_are_told_by_what_they_could_be(ranking: Ranking) -> None:
    """A request that one encoder does not read stands no further from its catalog for that."""
    assert ranking.found is not None
    assert ranking.yardstick is not None
    found = ranking.found
    size = found.question.texts.shape[1]
    heard = found.question.texts.copy()
    heard[:, size // 2 :] = 0
    silent = replace(found, question=replace(found.question, texts=unit_rows(heard)))
    parts = VectorParts(starts=(0, size // 2), usual=(0.5, 0.5))
    scale = replace(ranking.yardstick, parts=parts)
    rows = found.index.rows(ranking.order.positions[: served.FIRST])
    part = scale.common(silent.question.texts, rows)

    plain = replace(ranking, found=silent).told([])
    told = replace(ranking, found=silent, yardstick=scale).told([])

    assert plain.request is not None
    assert told.request is not None
    assert part < 0.9
    assert told.request.ahead == pytest.approx(plain.request.ahead / part, rel=1e-4)
    assert told.request.mean == pytest.approx(plain.request.mean / part, rel=1e-4)
    assert told.request.spread == pytest.approx(plain.request.spread / part, rel=1e-4)
    assert told.request.cohort == pytest.approx(
        plain.request.cohort / scale.common(silent.question.texts), rel=1e-4
    )


def test_a_match_is_as_sure_as_its_cosine_could_be(ranking: Ranking) -> None:
    """Without a cohort, too: half of a vector that is silent takes nothing from the other half."""
    assert ranking.found is not None
    assert ranking.yardstick is not None
    found = ranking.found
    heard = found.question.texts.copy()
    heard[:, heard.shape[1] // 2 :] = 0
    silent = replace(found, question=replace(found.question, texts=unit_rows(heard)))
    parts = VectorParts(starts=(0, heard.shape[1] // 2), usual=(0.5, 0.5))
    alone = replace(ranking, found=silent, cohort=None)

    plain = alone.told([]).confidences
    told = replace(alone, yardstick=replace(ranking.yardstick, parts=parts)).told([]).confidences

    assert max(told) > max(plain)


def test_where_nobody_knows_the_cohort_matches_are_judged_alone(
    catalog: tuple[ToolDefinition, ...], ranking: Ranking
) -> None:
    """As with words alone, and with a model that nobody measured."""
    embedder = HashingEmbedder()
    snapshot = snapshot_of([entity(each) for each in catalog], embedder)
    asked = asyncio.run(auto(embedder)(snapshot, SearchRequest(queries=("send an e-mail",))))

    assert replace(ranking, yardstick=None).told([]).request is None
    assert replace(ranking, cohort=None).told([]).request is None
    assert replace(ranking, found=None).told([]).request is None
    assert asked.matches


def test_how_much_is_wanted_does_not_change_how_sure_it_is() -> None:
    """A request is told by the first twenty, whatever the limit."""
    embedder = HashingEmbedder()
    snapshot = snapshot_of([entity(each) for each in definitions(120)], embedder)
    rows = embedder.vectors([f"Tool number {number}" for number in range(30)])

    def sure(limit: int) -> Request | None:
        search = Listening(
            options=SearchOptions(), strategy="embeddings", embed=plain_embed(embedder)
        )
        asyncio.run(search(snapshot, SearchRequest(queries=("send the report",), limit=limit)))
        (found,) = search.rankings
        scale = Yardstick(strangers=0.0, matches=0.4)
        return replace(found, yardstick=scale, cohort=Cohort.of(rows)).told([]).request

    assert sure(1) is not None
    assert sure(1) == sure(4) == sure(50)
