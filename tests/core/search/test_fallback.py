"""Rule 5: the graph ranks a search if the query has no usable vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from openai import OpenAI
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from gateway import OpenAIEmbedder
from gateway.gateway import Gateway
from gateway.runtime.vectors import Matrix
from gateway.testing import Faults, HashingEmbedder, ScriptedModel, script
from tests.conftest import OpenGateway
from tests.core.search.conftest import Catalog
from tests.fakes import PanicError, codes, names
from tests.metrics import counted

# Failures of an embedder, each with the diagnostic code that reports it.
FAILURES = [
    *((error, "embedding_failed") for error in (
        RuntimeError("the secret"), TimeoutError(), asyncio.CancelledError(), SystemExit(1),
        PanicError(), lambda rows: rows.astype(str), lambda rows: rows.tolist(), lambda _: None,
    )),
    *((change, "query_vector_unusable") for change in (
        lambda rows: rows * float("nan"),
        lambda rows: rows + float("inf"),
        lambda rows: rows * 0,
        lambda rows: rows[:, :-1],
        lambda rows: rows[:-1],
        lambda rows: rows.repeat(2, axis=0),
        lambda rows: rows[0],
    )),
]  # fmt: skip


@pytest.mark.requirement("auto:rule-5", "edge:no-embeddings-fall-back-to-graph")
@pytest.mark.parametrize("strategy", ["auto", "embeddings", "graph"])
@pytest.mark.parametrize(("failure", "code"), FAILURES)
async def test_graph_ranks_if_embedding_fails_and_the_next_search_uses_vectors(
    open_gateway: OpenGateway,
    catalog: Catalog,
    embedder: HashingEmbedder,
    failure: BaseException | Callable[[Matrix], Matrix],
    code: str,
    strategy: str,
) -> None:
    """Rule 5: the failure causes a diagnostic and a metric, but no error, and the result is not
    cached.

    The strategy `graph` does not call the embedder, so it reports no failure.
    """
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader], shutdown_on_exit=False)
    gateway = open_gateway(catalog, strategy=strategy, embedder=embedder, meter_provider=meter)
    await gateway.report()
    by_graph = await open_gateway(catalog).search("send an e-mail")

    if isinstance(failure, BaseException):
        embedder.fail_with = failure
    else:
        embedder.transform = failure
    degraded = await gateway.search("send an e-mail")
    embedder.fail_with = embedder.transform = None
    recovered = await gateway.search("send an e-mail")

    is_alone = strategy == "graph"
    faults = [] if is_alone else [code, "graph_fallback"]
    fallbacks = {} if is_alone else {code: 1}
    assert ("graph", faults) == (degraded.mode, codes(degraded)[:2])
    assert (not is_alone) == degraded.degraded
    assert names(by_graph) == names(degraded)
    assert "secret" not in str(degraded.diagnostics)
    assert fallbacks == counted(reader, "gateway.search.fallbacks", "gateway.fallback.reason")
    assert is_alone == recovered.cached
    assert recovered.mode in ({"graph"} if is_alone else {"hybrid", "vector"})


@pytest.mark.parametrize("fault", [SystemExit(1), PanicError(), asyncio.CancelledError()])
async def test_embedder_that_raises_any_exception_fails_only_the_embedding(
    open_gateway: OpenGateway, catalog: Catalog, embedder: HashingEmbedder, fault: BaseException
) -> None:
    """An exception of the host's code must not end the shared event loop."""
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder)
    embedder.fail_with = fault
    report = await gateway.report()
    degraded = await gateway.search("send an e-mail")

    assert "embedding_failed" in [note.code for note in report.diagnostics]
    assert ("graph", 0) == (degraded.mode, report.vectors)


@pytest.mark.requirement("auto:rule-5", "edge:no-embeddings-fall-back-to-graph")
async def test_strategy_that_needs_an_embedder_falls_back_to_the_graph_without_one(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Rule 5: a missing embedder is not an error."""
    result = await open_gateway(catalog, strategy="auto").search("send an e-mail")

    assert ("graph", ["embedder_missing", "graph_fallback"]) == (result.mode, codes(result))
    assert "send_email" == names(result)[0]


async def test_few_tools_without_vectors_do_not_affect_the_ranking_of_others(
    gateway: Gateway, embedder: HashingEmbedder
) -> None:
    """A tool without a vector is found by its words, and a diagnostic reports that vectors are
    missing.
    """
    await gateway.report()

    def late_tool() -> str:
        """Water the plants of the garden."""
        return ""

    embedder.fail_with = OSError("down")
    gateway.add_tool(late_tool)
    await gateway.report()
    embedder.fail_with = None
    result = await gateway.search("water the plants of the garden")

    assert ("hybrid", ["embedding_failed", "vectors_incomplete"]) == (result.mode, codes(result))
    assert "late_tool" in names(result)
    assert 12 == (await gateway.report()).vectors


# -- an embedding service over HTTP ---------------------------------------------------------------


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(script()) as model:
        yield model


@pytest.mark.requirement("auto:rule-5")
@pytest.mark.parametrize(
    "faults", [Faults(), Faults(status=429), Faults(kind="drop"), Faults(kind="garbage")]
)
async def test_search_continues_with_any_faulty_reply_of_the_embedding_service(
    open_gateway: OpenGateway, catalog: Catalog, model: ScriptedModel, faults: Faults
) -> None:
    """Rule 5, with a real HTTP server as embedding service."""
    with OpenAI(base_url=model.base_url, api_key="test", max_retries=0) as client:
        gateway = open_gateway(catalog, strategy="auto", embedder=OpenAIEmbedder(client, model="m"))
        await gateway.report()

        model.fail(faults, "embeddings")
        degraded = await gateway.search("send an e-mail")
        recovered = await gateway.search("send an e-mail")

    assert ("graph", "hybrid") == (degraded.mode, recovered.mode)
    assert "graph_fallback" in codes(degraded)
