"""Vectors that cannot be read are no fault of the plugin that reads them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.testing import HashingEmbedder
from tests.conftest import PATIENT, InstallPlugin, OpenGateway
from tests.fakes import codes, names, tool

SIGNAL = """
from gateway.errors import StoreError
from gateway.hookspecs import hookimpl

class Reading:
    name, order, weight = "reading", 50, 1.0

    def score(self, pool):
        raise StoreError("the database is gone")

@hookimpl
def register_signals():
    return [Reading()]
"""
RANKING = """
from gateway.errors import StoreError
from gateway.hookspecs import hookimpl
from gateway.search import by_words, explain_scores

def check(evidence):
    if evidence.candidates is not None:
        raise StoreError("the database is gone")

class Reading:
    uses_vectors, is_exact = True, False

    def rank(self, evidence):
        {rank}
        return by_words(evidence.lexical.scores, evidence.mask)

    def explain(self, evidence, ranked):
        {explain}
        return explain_scores(evidence, ranked)

@hookimpl
def register_rankings():
    return {{"reading": Reading}}
"""
CHECK = "check(evidence)"


async def test_signal_that_cannot_read_vectors_leaves_the_graph_to_rank(
    install_plugin: InstallPlugin, open_gateway: OpenGateway
) -> None:
    install_plugin("reading", SIGNAL)
    options = replace(PATIENT, plugins=("reading",))
    gateway = open_gateway(
        [tool("weather", "Forecast.")], strategy="auto", embedder=HashingEmbedder(), options=options
    )

    result = await gateway.search("weather forecast")

    assert (["weather"], "graph") == (names(result), result.mode)
    assert "vectors_unavailable" in codes(result)
    assert "plugin_failed" not in codes(result)


@pytest.mark.parametrize(("rank", "explain"), [(CHECK, "pass"), ("pass", CHECK)])
async def test_ranking_that_cannot_read_vectors_ranks_by_words(
    install_plugin: InstallPlugin, open_gateway: OpenGateway, rank: str, explain: str
) -> None:
    name = "ranks" if rank == CHECK else "explains"
    install_plugin(name, RANKING.format(rank=rank, explain=explain))
    options = replace(PATIENT, plugins=(name,))
    gateway = open_gateway(
        [tool("weather", "Forecast.")], strategy="auto", embedder=HashingEmbedder(), options=options
    )

    result = await gateway.search("weather", ranking="reading", explain=True)  # type: ignore[arg-type]  # of a plugin

    assert (["weather"], "lexical") == (names(result), result.mode)
    assert "vectors_unavailable" in codes(result)
    assert "plugin_failed" not in codes(result)
