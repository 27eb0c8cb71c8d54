"""Rule 5: without usable query vectors the graph answers, this once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from openai import OpenAI
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from gateway.embed.openai import OpenAIEmbedder
from gateway.runtime.vectors import Matrix
from gateway.testing import Faults, HashingEmbedder, ManualClock, ScriptedModel, script
from gateway.types import ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import codes, names, until
from tests.metrics import counted

Break = Callable[[HashingEmbedder], None]


def _raises(embedder: HashingEmbedder) -> None:
    embedder.fail_with = RuntimeError("the secret")


def _times_out(embedder: HashingEmbedder) -> None:
    embedder.fail_with = TimeoutError()


def _is_cancelled(embedder: HashingEmbedder) -> None:
    embedder.fail_with = asyncio.CancelledError()


def _exits(embedder: HashingEmbedder) -> None:
    embedder.fail_with = SystemExit(1)


def _nan(embedder: HashingEmbedder) -> None:
    embedder.transform = lambda rows: rows * float("nan")


def _zero(embedder: HashingEmbedder) -> None:
    embedder.transform = lambda rows: rows * 0


def _wrong_dimension(embedder: HashingEmbedder) -> None:
    embedder.transform = lambda rows: rows[:, :-1]


def _short_batch(embedder: HashingEmbedder) -> None:
    embedder.transform = lambda rows: rows[:-1]


@pytest.mark.requirement("auto:rule-5", "edge:no-embeddings-fall-back-to-graph")
@pytest.mark.parametrize("strategy", ["auto", "embeddings"])
@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (_raises, "embedding_failed"),
        (_times_out, "embedding_failed"),
        (_is_cancelled, "embedding_failed"),
        (_exits, "embedding_failed"),
        (_nan, "query_vector_unusable"),
        (_zero, "query_vector_unusable"),
        (_wrong_dimension, "query_vector_unusable"),
        (_short_batch, "query_vector_unusable"),
    ],
)
async def test_the_graph_answers_and_the_next_request_tries_vectors_again(
    open_gateway: OpenGateway,
    catalog: tuple[ToolDefinition, ...],
    spoil: Break,
    code: str,
    strategy: str,
) -> None:
    """Rule 5: a diagnostic, a metric, no error, no latch, and nothing of it is remembered."""
    reader = InMemoryMetricReader()
    embedder = HashingEmbedder()
    gateway = open_gateway(
        catalog,
        strategy=strategy,
        embedder=embedder,
        meter_provider=MeterProvider([reader], shutdown_on_exit=False),
    )
    await gateway.report()
    by_graph = await open_gateway(catalog).search("send an e-mail")

    spoil(embedder)
    fallen = await gateway.search("send an e-mail")
    embedder.fail_with = embedder.transform = None
    healed = await gateway.search("send an e-mail")

    assert ("graph", [code, "graph_fallback"]) == (fallen.mode, codes(fallen)[:2])
    assert fallen.degraded
    assert names(by_graph) == names(fallen)
    assert "secret" not in str(fallen.diagnostics)
    assert {code: 1} == counted(reader, "gateway.search.fallbacks", "gateway.fallback.reason")
    assert not healed.cached
    assert healed.mode in {"hybrid", "vector"}


@pytest.mark.requirement("auto:rule-5", "edge:no-embeddings-fall-back-to-graph")
async def test_a_strategy_without_its_embedder_answers_by_the_graph(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """Rule 5: not even a missing part is an error."""
    found = await open_gateway(catalog, strategy="auto").search("send an e-mail")

    assert ("graph", ["embedder_missing", "graph_fallback"]) == (found.mode, codes(found))
    assert "send_email" == names(found)[0]


@pytest.mark.requirement("auto:rule-5")
async def test_an_index_without_vectors_is_built_again_after_a_while(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """Rule 5: the embedder was down at the start; later it is not, and nobody has to restart."""
    clock = ManualClock()
    embedder = HashingEmbedder(fail_with=OSError("down"))
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder, clock=clock)

    first = await gateway.search("send an e-mail")
    embedder.fail_with = None
    soon = await gateway.search("send an e-mail")
    calls = embedder.calls
    clock.tick(31)

    async def healed() -> bool:
        return (await gateway.search("send an e-mail")).mode == "hybrid"

    await until(healed)

    assert ["embedding_failed", "vectors_incomplete", "graph_fallback"] == codes(first)
    assert ("graph", 1) == (soon.mode, calls)
    assert 2 == gateway.index_builds


async def test_a_few_missing_vectors_do_not_cost_the_others(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """What has no vector is found by its words; the result says that it is not whole."""
    embedder = HashingEmbedder()
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder)
    await gateway.report()

    def late_tool() -> str:
        """Water the plants of the garden."""
        return ""

    embedder.fail_with = OSError("down")
    gateway.add_tool(late_tool)
    await gateway.report()
    embedder.fail_with = None
    found = await gateway.search("water the plants of the garden")

    assert ("hybrid", ["embedding_failed", "vectors_incomplete"]) == (found.mode, codes(found))
    assert "late_tool" in names(found)
    assert 12 == (await gateway.report()).vectors


# -- over the wire -------------------------------------------------------------------------------


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(script()) as model:
        yield model


@pytest.mark.requirement("auto:rule-5")
@pytest.mark.parametrize(
    "fault",
    [
        Faults(kind="status"),
        Faults(kind="drop"),
        Faults(kind="garbage"),
        lambda rows: rows * np.float32("nan"),
        lambda rows: rows * np.float32(0),
        lambda rows: rows[:-1],
        lambda rows: rows[:, :-1],
    ],
)
async def test_whatever_a_service_answers_the_search_goes_on(
    open_gateway: OpenGateway,
    catalog: tuple[ToolDefinition, ...],
    model: ScriptedModel,
    fault: Faults | Callable[[Matrix], Matrix],
) -> None:
    """Rule 5, against a real server that misbehaves."""
    with OpenAI(base_url=model.base_url, api_key="test", max_retries=0) as client:
        gateway = open_gateway(catalog, strategy="auto", embedder=OpenAIEmbedder(client, model="m"))
        await gateway.report()

        if isinstance(fault, Faults):
            model.fail(fault, "embeddings")
        else:
            model.embedder.transform = fault
        fallen = await gateway.search("send an e-mail")
        model.embedder.transform = None
        healed = await gateway.search("send an e-mail")

    assert ("graph", "hybrid") == (fallen.mode, healed.mode)
    assert "graph_fallback" in codes(fallen)
