"""The ranking policies of the catalog: the core's own, and those of plugins."""

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
from gateway.search.rank.fusion import RankedList
from gateway.search.rank.policies import explain_scores

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


async def test_words_alone_ask_no_model(open_gateway: OpenGateway) -> None:
    """Neither to embed the query, nor a word of it."""
    embedder = HashingEmbedder()
    gateway = open_gateway(
        [tool("send_email"), tool("weather")], strategy="auto", embedder=embedder
    )
    await gateway.report()
    calls = embedder.calls

    found = await gateway.search("weather", ranking="lexical")

    assert ("lexical", ["weather"], calls) == (found.mode, names(found), embedder.calls)
    assert () == found.diagnostics


async def test_a_ranking_of_a_plugin_orders_eligible_entities_and_is_explained(
    install_plugin: InstallPlugin, open_gateway: OpenGateway
) -> None:
    install_plugin("backwards", BACKWARDS)
    gateway = open_gateway(TOOLS, options=replace(PATIENT, plugins=("backwards",)))

    found = await gateway.search("alpha", ranking="backwards", explain=True)  # type: ignore[arg-type]  # of a plugin

    assert (["gamma", "alpha"], "lexical") == (names(found), found.mode)
    assert [match.score for match in found.matches] == [each.score for each in found.scoring]
    assert [False, True] == [each.text_boost > 0 for each in found.scoring]


@pytest.mark.parametrize(("number", "rank"), [("one", "1 / 0"), ("two", "evidence.nothing")])
async def test_a_ranking_that_fails_leaves_words_to_rank_and_is_reported(
    install_plugin: InstallPlugin, open_gateway: OpenGateway, number: str, rank: str
) -> None:
    failing = BACKWARDS.replace("positions = np.arange(len(evidence.mask))", rank)
    install_plugin(f"fails_{number}", failing)
    gateway = open_gateway(TOOLS, options=replace(PATIENT, plugins=(f"fails_{number}",)))

    found = await gateway.search("alpha", ranking="backwards", explain=True)  # type: ignore[arg-type]  # of a plugin

    assert ["alpha"] == names(found)
    assert "plugin_failed" in codes(found)
    detail = next(note.detail for note in found.diagnostics if note.code == "plugin_failed")
    assert "the ranking 'backwards' failed, words rank" in detail


async def test_a_ranking_that_cannot_explain_its_scores_still_ranks(
    install_plugin: InstallPlugin, open_gateway: OpenGateway
) -> None:
    install_plugin("silent", BACKWARDS.replace("explain_scores(evidence, ranked)", "1 / 0"))
    gateway = open_gateway(TOOLS, options=replace(PATIENT, plugins=("silent",)))

    found = await gateway.search("alpha", ranking="backwards", explain=True)  # type: ignore[arg-type]  # of a plugin

    assert (["gamma", "alpha"], ()) == (names(found), found.scoring)


@pytest.mark.parametrize("name", ["strategy", "lexical"])
def test_a_ranking_of_a_plugin_with_a_name_of_ours_is_refused(
    install_plugin: InstallPlugin, name: str
) -> None:
    install_plugin(f"own_{name}", BACKWARDS.replace('"backwards"', f'"{name}"'))

    with pytest.raises(ConfigError, match=f"a plugin gives a ranking the name '{name}'"):
        Gateway(options=Options(plugins=(f"own_{name}",)))


@pytest.mark.parametrize("ranking", ["hybrid", "weighted", "legacy"])
async def test_a_ranking_without_its_plugin_is_refused_with_the_remedy(
    open_gateway: OpenGateway, ranking: RankingPolicy
) -> None:
    gateway = open_gateway(TOOLS, options=replace(PATIENT, plugins=()))
    message = rf"ranking '{ranking}' needs the plugin 'rankings'.*add it to Options\.plugins"

    with pytest.raises(InvalidRequestError, match=message):
        await gateway.search("alpha", ranking=ranking)

    assert ["alpha"] == names(await gateway.search("alpha"))


async def test_an_unknown_ranking_is_refused_with_those_there_are(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway(TOOLS, options=replace(PATIENT, plugins=()))

    with pytest.raises(InvalidRequestError, match="must be one of strategy, lexical, got 'best'"):
        await gateway.search("alpha", ranking="best")  # type: ignore[arg-type]
