"""Ranking policies of the core and of plugins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.errors import ConfigError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.options import Options
from gateway.testing import HashingEmbedder
from gateway.types import Hints, RankingPolicy
from tests.conftest import PATIENT, InstallPlugin, OpenGateway
from tests.fakes import codes, names, tool

BACKWARDS = """
import numpy as np
from gateway.hookspecs import hookimpl
from gateway.search import RankedList, explain_scores

class Backwards:
    uses_vectors, is_exact = False, True

    def rank(self, evidence):
        positions = np.arange(len(evidence.mask))
        return RankedList.of(positions, positions.astype(np.float32))

    def explain(self, evidence, ranked):
        return explain_scores(evidence, ranked)

@hookimpl
def register_rankings():
    return {"backwards": Backwards}
"""
TOOLS = (
    tool("alpha", "First."),
    tool("beta", "Second.", hints=Hints(enabled=False)),
    tool("gamma", "Third."),
)


async def test_lexical_ranking_does_not_call_the_embedder(open_gateway: OpenGateway) -> None:
    embedder = HashingEmbedder()
    gateway = open_gateway(
        [tool("send_email"), tool("weather")], strategy="auto", embedder=embedder
    )
    await gateway.report()
    calls = embedder.calls

    result = await gateway.search("weather", ranking="lexical")

    assert ("lexical", ["weather"], calls) == (result.mode, names(result), embedder.calls)
    assert () == result.diagnostics


async def test_plugin_ranking_orders_eligible_entities_and_explains_their_scores(
    install_plugin: InstallPlugin, open_gateway: OpenGateway
) -> None:
    install_plugin("backwards", BACKWARDS)
    gateway = open_gateway(TOOLS, options=replace(PATIENT, plugins=("backwards",)))

    result = await gateway.search("alpha", ranking="backwards", explain=True)  # type: ignore[arg-type]  # of a plugin

    assert (["gamma", "alpha"], "lexical") == (names(result), result.mode)
    assert [match.score for match in result.matches] == [score.score for score in result.scoring]
    assert [False, True] == [score.text_boost > 0 for score in result.scoring]


@pytest.mark.parametrize(("number", "rank"), [("one", "1 / 0"), ("two", "evidence.nothing")])
async def test_failing_plugin_ranking_falls_back_to_words_with_diagnostic(
    install_plugin: InstallPlugin, open_gateway: OpenGateway, number: str, rank: str
) -> None:
    failing = BACKWARDS.replace("positions = np.arange(len(evidence.mask))", rank)
    install_plugin(f"fails_{number}", failing)
    gateway = open_gateway(TOOLS, options=replace(PATIENT, plugins=(f"fails_{number}",)))

    result = await gateway.search("alpha", ranking="backwards", explain=True)  # type: ignore[arg-type]  # of a plugin

    assert ["alpha"] == names(result)
    assert "plugin_failed" in codes(result)
    detail = next(note.detail for note in result.diagnostics if note.code == "plugin_failed")
    assert "the ranking 'backwards' failed, so only words ranked" in detail


async def test_plugin_ranking_is_used_even_if_its_explanation_fails(
    install_plugin: InstallPlugin, open_gateway: OpenGateway
) -> None:
    install_plugin("silent", BACKWARDS.replace("explain_scores(evidence, ranked)", "1 / 0"))
    gateway = open_gateway(TOOLS, options=replace(PATIENT, plugins=("silent",)))

    result = await gateway.search("alpha", ranking="backwards", explain=True)  # type: ignore[arg-type]  # of a plugin

    assert (["gamma", "alpha"], ()) == (names(result), result.scoring)


@pytest.mark.parametrize("name", ["strategy", "lexical"])
def test_plugin_ranking_with_a_name_of_the_core_is_rejected(
    install_plugin: InstallPlugin, name: str
) -> None:
    install_plugin(f"own_{name}", BACKWARDS.replace('"backwards"', f'"{name}"'))

    with pytest.raises(ConfigError, match=f"a plugin registers a ranking with the name '{name}'"):
        Gateway(strategy="graph", options=Options(plugins=(f"own_{name}",)))


@pytest.mark.parametrize("ranking", ["hybrid", "weighted", "legacy"])
async def test_ranking_of_a_plugin_that_is_not_loaded_is_rejected_with_advice(
    open_gateway: OpenGateway, ranking: RankingPolicy
) -> None:
    gateway = open_gateway(TOOLS, options=replace(PATIENT, plugins=()))
    message = rf"ranking '{ranking}' needs the plugin 'rankings'.*add it to Options\.plugins"

    with pytest.raises(InvalidRequestError, match=message):
        await gateway.search("alpha", ranking=ranking)

    assert ["alpha"] == names(await gateway.search("alpha"))


async def test_unknown_ranking_is_rejected_with_a_list_of_valid_names(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway(TOOLS, options=replace(PATIENT, plugins=()))

    with pytest.raises(InvalidRequestError, match="must be one of strategy, lexical, got 'best'"):
        await gateway.search("alpha", ranking="best")  # type: ignore[arg-type]
