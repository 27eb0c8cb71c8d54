"""What a conversation costs, turn by turn, where a dashboard looks for it."""

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
def watched() -> Watch:
    return Watch()


@pytest.fixture
def gateway(open_gateway: OpenGateway, watched: Watch) -> Gateway:
    made = open_gateway(tracer_provider=watched.tracer, meter_provider=watched.meter)
    made.add_tool(add)
    return made


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.parametrize("way", WAYS)
async def test_each_turn_says_whom_it_asked_and_what_it_cost(
    stage: Stage, speaker: Speaker, gateway: Gateway, watched: Watch, way: Way
) -> None:
    """And the conversation is their sum: the exact model, its address, the prompt cache too."""
    role = stage.cast_sum()
    options: dict[str, Any] = {}
    if "stream" in way:
        options = {"stream_options": {"include_usage": True}}
    await speaker.ask(way, gateway, role, **options)

    turns = [attributes(span) for span in watched.named(f"chat {role.model}")]
    (agent,) = map(attributes, watched.named("invoke_agent gateway"))
    address = urlsplit(stage.server.base_url)
    known = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "127.0.0.1",
        "gen_ai.request.model": role.model,
        "gen_ai.response.model": role.model,
        "server.address": "127.0.0.1",
        "server.port": address.port,
        **({"gen_ai.request.stream": True} if "stream" in way else {}),
    }
    assert [known] * 3 == [
        {name: value for name, value in turn.items() if name in {*known, "gen_ai.request.stream"}}
        for turn in turns
    ]
    reasons = [turn["gen_ai.response.finish_reasons"] for turn in turns]
    assert [("tool_calls",), ("tool_calls",), ("stop",)] == reasons
    assert 3 == len({turn["gen_ai.response.id"] for turn in turns})
    sums = [sum(turn[name] for turn in turns) for name in USAGE]
    assert sums == [agent[name] for name in USAGE]
    assert {"input": sums[0], "output": sums[1]} == counted(
        watched.reader, "gen_ai.client.token.usage", "gen_ai.token.type"
    )
    for name in ("gen_ai.client.token.usage", "gen_ai.client.operation.duration"):
        assert {role.model} == set(counted(watched.reader, name, "gen_ai.request.model"))


async def test_only_names_of_the_document_go_out_and_no_content(
    stage: Stage, speaker: Speaker, gateway: Gateway, watched: Watch
) -> None:
    """Whatever a user says, a model writes or a tool answers; a name that a model made up too."""
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
    for span in watched.finished:
        assert attributes(span).keys() <= rows[span.name.partition(" ")[0]].attributes
    for metric, point in recorded(watched.reader):
        assert (point.attributes or {}).keys() <= rows[metric.name].attributes
    assert CANARY not in watched.written()


async def test_a_turn_that_fails_or_is_left_ends_its_span(
    stage: Stage, speaker: Speaker, gateway: Gateway, watched: Watch
) -> None:
    """With the error's type, or without one; and its time is measured."""
    with pytest.raises(Exception, match="the script is over"):
        await speaker.ask("async whole", gateway, stage.cast())
    role = stage.cast(Turn("A longer answer."))
    client = AutoDiscoveryClient(speaker.openai, gateway).chat.completions
    with client.create(model=role.model, messages=ASK, stream=True) as stream:
        next(stream)

    errors = [attributes(span).get("error.type") for span in watched.named("chat")]
    assert ["BadRequestError", None] == errors
    assert {"BadRequestError", None} == set(
        counted(watched.reader, "gen_ai.client.operation.duration", "error.type")
    )
    assert sorted(watched.began) == sorted(span.name for span in watched.finished)


def test_azure_is_named_and_so_is_the_agent(stage: Stage, gateway: Gateway, watched: Watch) -> None:
    """The provider is that of the client's class: its address may be a host's own."""
    role = stage.cast_sum()
    with AzureOpenAI(
        azure_endpoint=stage.server.azure_endpoint, api_key="key", api_version="2026-01-01"
    ) as azure:
        client = AutoDiscoveryClient(azure, gateway, agent="support")
        client.chat.completions.create(model=role.model, messages=ASK)

    (agent,) = map(attributes, watched.named("invoke_agent support"))
    assert "support" == agent["gen_ai.agent.name"]
    assert {"azure.ai.openai"} == {
        attributes(span)["gen_ai.provider.name"] for span in watched.named("chat")
    }


def test_a_conversation_that_the_service_keeps_is_named(
    stage: Stage, speaker: Speaker, gateway: Gateway, watched: Watch
) -> None:
    """On each turn too; and what the Responses API tells of reasoning is told."""
    role = stage.cast_sum()
    client = AutoDiscoveryClient(speaker.openai, gateway)
    client.responses.create(model=role.model, input="Please help me.", conversation="conv_1")

    spans = [attributes(span) for span in watched.finished if span.name.startswith(("chat", "inv"))]
    assert ["conv_1"] * 4 == [each["gen_ai.conversation.id"] for each in spans]
    assert [0] * 4 == [each["gen_ai.usage.reasoning.output_tokens"] for each in spans]
    reasons = [each.get("gen_ai.response.finish_reasons") for each in spans]
    assert [("tool_calls",), ("tool_calls",), ("stop",), None] == reasons


async def test_a_request_that_the_host_sends_has_a_turn_of_an_unknown_provider(
    stage: Stage, speaker: Speaker, gateway: Gateway, watched: Watch
) -> None:
    """By a middleware, or in a loop of its own."""
    role = stage.cast(Turn("Yes."))

    async def send(body: dict[str, Any]) -> dict[str, Any]:
        reply = await speaker.asynchronous.chat.completions.create(**body)
        sent: dict[str, Any] = reply.to_dict()
        return sent

    request = {"model": role.model, "messages": ASK}
    reply = await Middleware(gateway)(request, send)
    turn = AutoDiscoveryClient(speaker.openai, gateway).prepare(request)
    turn.handle(reply)

    turns = [attributes(span) for span in watched.named(f"chat {role.model}")]
    assert ["_OTHER"] * 2 == [each["gen_ai.provider.name"] for each in turns]
    tokens = [each["gen_ai.usage.input_tokens"] for each in turns]
    assert tokens == [
        attributes(span)["gen_ai.usage.input_tokens"] for span in watched.named("invoke_agent")
    ]
    assert sorted(watched.began) == sorted(span.name for span in watched.finished)


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
def test_a_provider_is_that_of_the_address(url: str, provider: str, port: int) -> None:
    """A service that speaks the wire format of OpenAI is not OpenAI."""
    endpoint = ModelEndpoint.at("m", url)

    assert (provider, port) == (endpoint.provider, endpoint.port)


async def test_what_discovery_saves_is_counted(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, watched: Watch
) -> None:
    """Against sending every schema with every turn; and what an answer to a search costs."""
    gateway = open_gateway(meter_provider=watched.meter, tracer_provider=watched.tracer)
    for number in range(60):
        gateway.add_tool(add, name=f"add_{number}")
    role = stage.cast(find("add two numbers"), Turn("Done."))
    answer = await speaker.ask("whole", gateway, role)

    saved = counted(watched.reader, "gateway.chat.tokens.saved", "none")
    answers = counted(watched.reader, "gateway.search.answer.tokens", "none")
    (agent,) = map(attributes, watched.named("invoke_agent"))
    assert answer["choices"]
    assert 1000 < saved[None] == agent["gateway.chat.saved_tokens"]
    assert 0 < answers[None] < 1000
