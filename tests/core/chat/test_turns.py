"""Telemetry of each turn: provider, model, token usage and errors."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from openai import AzureOpenAI
from opentelemetry.sdk.trace import ReadableSpan

from gateway import AutoDiscoveryClient, Gateway, Middleware
from gateway.runtime.model_endpoint import ModelEndpoint
from gateway.testing import Call, Turn
from tests.conftest import OpenGateway
from tests.core.chat.conftest import add
from tests.core.chat.stage import ASK, WAYS, Speaker, Stage, Way, find
from tests.metrics import Watch, counted, documented, recorded

USAGE = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.cache_read.input_tokens",
)
CANARY = "canary-51d0"


@pytest.fixture
def watch() -> Watch:
    """Return a recorder of spans and metrics."""
    return Watch()


@pytest.fixture
def gateway(open_gateway: OpenGateway, watch: Watch) -> Gateway:
    """Return a gateway whose spans and metrics *watch* records."""
    traced_gateway = open_gateway(tracer_provider=watch.tracer, meter_provider=watch.meter)
    traced_gateway.add_tool(add)
    return traced_gateway


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.parametrize("way", WAYS)
async def test_turn_span_has_model_and_tokens(
    stage: Stage, speaker: Speaker, gateway: Gateway, watch: Watch, way: Way
) -> None:
    """The span of the conversation has the sums. The attributes include the exact model, the
    address of the service and the number of cached tokens.
    """
    role = stage.cast_sum()
    options: dict[str, Any] = {}
    if "stream" in way:
        options = {"stream_options": {"include_usage": True}}
    await speaker.ask(way, gateway, role, **options)

    turns = [attributes(span) for span in watch.named(f"chat {role.model}")]
    (agent,) = map(attributes, watch.named("invoke_agent gateway"))
    address = urlsplit(stage.server.base_url)
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "127.0.0.1",
        "gen_ai.request.model": role.model,
        "gen_ai.response.model": role.model,
        "server.address": "127.0.0.1",
        "server.port": address.port,
        **({"gen_ai.request.stream": True} if "stream" in way else {}),
    }
    assert [expected] * 3 == [
        {
            name: value
            for name, value in turn.items()
            if name in {*expected, "gen_ai.request.stream"}
        }
        for turn in turns
    ]
    reasons = [turn["gen_ai.response.finish_reasons"] for turn in turns]
    assert [("tool_calls",), ("tool_calls",), ("stop",)] == reasons
    assert 3 == len({turn["gen_ai.response.id"] for turn in turns})
    sums = [sum(turn[name] for turn in turns) for name in USAGE]
    assert sums == [agent[name] for name in USAGE]
    assert {"input": sums[0], "output": sums[1]} == counted(
        watch.reader, "gen_ai.client.token.usage", "gen_ai.token.type"
    )
    for name in ("gen_ai.client.token.usage", "gen_ai.client.operation.duration"):
        assert {role.model} == set(counted(watch.reader, name, "gen_ai.request.model"))


async def test_telemetry_contains_documented_names_and_no_content(
    stage: Stage, speaker: Speaker, gateway: Gateway, watch: Watch
) -> None:
    """Content is text of a user, a model or a tool, and also the name of a tool that a model
    invented.
    """
    calls = (
        Call(CANARY, {"a": CANARY}),
        Call("call_tool", {"name": CANARY, "arguments": {}}),
        Call("add", CANARY),
        Call("search_tools", {"query": CANARY}),
    )
    role = stage.cast(Turn(CANARY, calls=calls), Turn(CANARY))
    messages = [{"role": "user", "content": CANARY}]
    await speaker.ask("stream", gateway, role, messages=messages)

    rows = documented()
    for span in watch.finished:
        assert attributes(span).keys() <= rows[span.name.partition(" ")[0]].attributes
    for metric, point in recorded(watch.reader):
        assert (point.attributes or {}).keys() <= rows[metric.name].attributes
    assert CANARY not in watch.written()


async def test_failed_or_abandoned_turn_ends_its_telemetry_span(
    stage: Stage, speaker: Speaker, gateway: Gateway, watch: Watch
) -> None:
    """The span has a duration, and the type of the error if there was one."""
    with pytest.raises(Exception, match="the script is over"):
        await speaker.ask("async whole", gateway, stage.cast())
    role = stage.cast(Turn("A longer answer."))
    client = AutoDiscoveryClient(speaker.openai, gateway).chat.completions
    with client.create(model=role.model, messages=ASK, stream=True) as stream:
        next(stream)

    errors = [attributes(span).get("error.type") for span in watch.named("chat")]
    assert ["BadRequestError", None] == errors
    assert {"BadRequestError", None} == set(
        counted(watch.reader, "gen_ai.client.operation.duration", "error.type")
    )
    assert sorted(watch.began) == sorted(span.name for span in watch.finished)


def test_telemetry_span_names_azure_and_the_agent(
    stage: Stage, gateway: Gateway, watch: Watch
) -> None:
    """The class of the client determines the provider, because its URL may be the host's own."""
    role = stage.cast_sum()
    with AzureOpenAI(
        azure_endpoint=stage.server.azure_endpoint, api_key="key", api_version="2026-01-01"
    ) as azure:
        client = AutoDiscoveryClient(azure, gateway, agent="support")
        client.chat.completions.create(model=role.model, messages=ASK)

    (agent,) = map(attributes, watch.named("invoke_agent support"))
    assert "support" == agent["gen_ai.agent.name"]
    assert {"azure.ai.openai"} == {
        attributes(span)["gen_ai.provider.name"] for span in watch.named("chat")
    }


def test_span_has_the_id_of_a_stored_conversation(
    stage: Stage, speaker: Speaker, gateway: Gateway, watch: Watch
) -> None:
    """The span of each turn has the id too. The Responses API also reports reasoning tokens."""
    role = stage.cast_sum()
    client = AutoDiscoveryClient(speaker.openai, gateway)
    client.responses.create(model=role.model, input="Please help me.", conversation="conv_1")

    spans = [attributes(span) for span in watch.finished if span.name.startswith(("chat", "inv"))]
    assert ["conv_1"] * 4 == [span["gen_ai.conversation.id"] for span in spans]
    assert [0] * 4 == [span["gen_ai.usage.reasoning.output_tokens"] for span in spans]
    reasons = [span.get("gen_ai.response.finish_reasons") for span in spans]
    assert [("tool_calls",), ("tool_calls",), ("stop",), None] == reasons


async def test_turn_sent_by_the_host_has_an_unknown_provider(
    stage: Stage, speaker: Speaker, gateway: Gateway, watch: Watch
) -> None:
    """The host sends the turn by a middleware or by its own loop, so the gateway does not know the
    service.
    """
    role = stage.cast(Turn("Yes."))

    async def send(body: dict[str, Any]) -> dict[str, Any]:
        reply = await speaker.asynchronous.chat.completions.create(**body)
        sent: dict[str, Any] = reply.to_dict()
        return sent

    request = {"model": role.model, "messages": ASK}
    reply = await Middleware(gateway)(request, send)
    turn = AutoDiscoveryClient(speaker.openai, gateway).prepare(request)
    turn.handle(reply)

    turns = [attributes(span) for span in watch.named(f"chat {role.model}")]
    assert ["_OTHER"] * 2 == [span["gen_ai.provider.name"] for span in turns]
    tokens = [span["gen_ai.usage.input_tokens"] for span in turns]
    assert tokens == [
        attributes(span)["gen_ai.usage.input_tokens"] for span in watch.named("invoke_agent")
    ]
    assert sorted(watch.began) == sorted(span.name for span in watch.finished)


@pytest.mark.parametrize(
    ("url", "provider", "port"),
    [
        ("https://api.openai.com/v1", "openai", 443),
        ("https://eu.api.openai.com/v1", "openai", 443),
        ("https://api.openai.com.evil.example/v1", "api.openai.com.evil.example", 443),
        ("http://models.corp.example:8080/v1", "models.corp.example", 8080),
        ("", "_OTHER", 0),
    ],
)
def test_provider_in_telemetry_depends_on_the_url_of_the_client(
    url: str, provider: str, port: int
) -> None:
    """A service with OpenAI's wire format may have another provider."""
    endpoint = ModelEndpoint.at("m", url)

    assert (provider, port) == (endpoint.provider, endpoint.port)


async def test_telemetry_measures_saved_tokens(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, watch: Watch
) -> None:
    """Saved tokens are the difference to sending every schema with every turn. The size of search
    answers is also measured.
    """
    gateway = open_gateway(meter_provider=watch.meter, tracer_provider=watch.tracer)
    for number in range(60):
        gateway.add_tool(add, name=f"add_{number}")
    role = stage.cast(find("add two numbers"), Turn("Done."))
    answer = await speaker.ask("whole", gateway, role)

    saved = counted(watch.reader, "gateway.chat.tokens.saved", "none")
    answers = counted(watch.reader, "gateway.search.answer.tokens", "none")
    (agent,) = map(attributes, watch.named("invoke_agent"))
    assert answer["choices"]
    assert 1000 < saved[None] == agent["gateway.chat.saved_tokens"]
    assert 0 < answers[None] < 1000
