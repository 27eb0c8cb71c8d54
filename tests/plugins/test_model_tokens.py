"""Token counts of all models."""

from __future__ import annotations

from openai import OpenAI

from gateway import OpenAIEmbedder, OpenAINormalizer
from gateway.plugins.graph_tools import OpenAIProposer
from gateway.plugins.local import LocalEmbedder
from gateway.testing import ScriptedModel, Turn, script
from gateway.types import ToolDefinition
from tests.conftest import OpenGateway
from tests.core.runtime.test_gauges import gauge
from tests.metrics import Watch


async def test_metrics_name_every_model_with_its_tokens(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """Bills are by exact model name."""
    watch = Watch()
    answer = script(Turn("e-mail"))
    with ScriptedModel(answer) as model, OpenAI(base_url=model.base_url, api_key="k") as client:
        gateway = open_gateway(
            catalog,
            strategy="auto",
            embedder=OpenAIEmbedder(client, model="embedding-model"),
            normalizer=OpenAINormalizer(client, model="small-model"),
            tracer_provider=watch.tracer,
            meter_provider=watch.meter,
        )
        await gateway.search("лист")
        await gateway.propose_edges(OpenAIProposer(client, model="proposing-model"))

    models = {"embedding-model", "small-model", "proposing-model"}
    for name in ("gen_ai.client.token.usage", "gen_ai.client.operation.duration"):
        assert models == set(gauge(watch, name, "gen_ai.request.model"))
        assert {"127.0.0.1"} == set(gauge(watch, name, "server.address"))
    assert watch.of("chat small-model").context is not None


async def test_local_embedder_counts_its_tokens() -> None:
    embedder = LocalEmbedder()

    few = await embedder.embed(["mail"], role="query")
    more = await embedder.embed(["mail", "send an e-mail to somebody"], role="query")

    assert 0 < (few.tokens or 0) < 5 < (more.tokens or 0) < 20
