"""Events, token usage and telemetry spans of conversations."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import HistogramDataPoint
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from gateway import AsyncAutoDiscoveryClient, AutoDiscoveryClient, Gateway
from gateway.chat.accounting import Called, Event, Replied, Requested, Searched
from gateway.errors import LoopError, UnknownToolError
from gateway.options import ChatOptions, Options
from gateway.testing import Call, HashingEmbedder, Turn
from tests.conftest import OpenGateway
from tests.core.chat.conftest import add, divide
from tests.core.chat.stage import ASK, WAYS, Role, Speaker, Stage, Way, find, look, text
from tests.fakes import PanicError, tool, until
from tests.metrics import Watch, recorded

SECRET = "what no log may have"
META = ("search_tools", "call_tool")


def working_role(stage: Stage) -> Role:
    """Return a role whose model searches, makes two calls in one turn, and answers."""
    return stage.cast(
        find("add two numbers"),
        Turn(calls=(Call("add", {"a": 1, "b": 2}), Call("divide", {"a": 1, "b": 0}))),
        Turn("It is 3."),
    )


@pytest.fixture
def watch() -> Watch:
    """Return a recorder of spans and metrics."""
    return Watch()


@pytest.fixture
def traced_gateway(open_gateway: OpenGateway, watch: Watch) -> Gateway:
    """Return a gateway whose spans *watch* records."""
    gateway = open_gateway(
        tracer_provider=watch.tracer, options=Options(chat=ChatOptions(max_turns=3))
    )
    gateway.add_tool(add)
    gateway.add_tool(divide)
    return gateway


@pytest.mark.parametrize("way", WAYS)
async def test_observer_receives_each_event_in_order(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """Events of concurrent calls are in the order of the calls in the model's reply."""
    events: list[Event] = []
    await speaker.ask(
        way,
        functions,
        working_role(stage),
        observer=events.append,
        **({"stream_options": {"include_usage": True}} if "stream" in way else {}),
    )

    first, searched, second, first_call, two, third, replied = events
    assert isinstance(first, Requested)
    assert (1, META, ()) == (first.turn, first.tools, first.proxies)
    assert isinstance(searched, Searched)
    assert (("add two numbers",), "add") == (searched.queries, searched.result.matches[0].name)
    assert isinstance(second, Requested)
    assert (2, (*META, *second.proxies)) == (second.turn, second.tools)
    assert second.definition_tokens > first.definition_tokens
    assert isinstance(first_call, Called)
    assert ("add", {"a": 1, "b": 2}, "") == (
        first_call.tool,
        first_call.arguments,
        first_call.error,
    )
    assert "3" == (first_call.result.text if first_call.result else "")
    assert isinstance(two, Called)
    assert two.result is not None
    assert two.result.is_error
    assert isinstance(third, Requested)
    assert isinstance(replied, Replied)
    assert (3, "It is 3.") == (replied.turn, replied.text)
    assert replied.accounting.prompt_tokens > 0 < replied.accounting.completion_tokens


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.requirement("auto:rule-9")
async def test_messages_of_the_accounting_keep_found_tools(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """The caller sends these messages with its next call, because only messages carry state between
    calls.
    """
    events: list[Event] = []
    await speaker.ask(way, functions, working_role(stage), observer=events.append)
    replied = events[-1]
    assert isinstance(replied, Replied)
    later = stage.cast(Turn("Yes."))

    messages = replied.accounting.messages
    history = [*ASK, *messages, {"role": "assistant", "content": replied.text}]
    again = {"role": "user", "content": "Really?"}
    await speaker.ask(way, functions, later, messages=[*history, again])

    roles = [entry["role"] for entry in messages]
    assert ["assistant", "tool", "assistant", "tool", "tool"] == roles
    assert {"add", "divide"} <= set(later.tool_names[0])


async def test_observer_receives_the_error_of_a_call_that_was_not_sent(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """The call has an unknown name, or is an invalid search."""
    events: list[Event] = []
    calls = (Call("nobody", {"x": 1}), Call("search_tools", "{"))
    role = stage.cast(Turn(calls=calls), Turn("Oh."))
    await speaker.ask("whole", functions, role, observer=events.append)

    unknown, broken = (event for event in events if isinstance(event, Called))
    assert ("nobody", {"x": 1}, None) == (unknown.tool, unknown.arguments, unknown.result)
    assert "unknown tool 'nobody'" in unknown.error
    assert ("search_tools", {}) == (broken.tool, broken.arguments)


async def test_usage_of_the_reply_covers_all_turns(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """The caller pays for all turns."""
    role = working_role(stage)
    answer = await speaker.ask("whole", functions, role)

    single = 0
    for request in role.requests:
        bare: Any = speaker.openai.chat.completions.create(**request.body)  # type: ignore[call-overload]  # as it was sent
        single += bare.usage.prompt_tokens

    assert single == answer["usage"]["prompt_tokens"]
    assert answer["usage"]["total_tokens"] == single + answer["usage"]["completion_tokens"]


@pytest.mark.requirement("auto:rule-10")
@pytest.mark.parametrize("way", WAYS)
async def test_span_of_a_conversation_contains_searches_and_calls(
    stage: Stage, speaker: Speaker, traced_gateway: Gateway, watch: Watch, way: Way
) -> None:
    """Calls may run in any thread or event loop. Every span that began has ended."""
    await traced_gateway.list_tools()
    tracer = watch.tracer.get_tracer("host")
    with tracer.start_as_current_span("host"):
        await speaker.ask(way, traced_gateway, working_role(stage))

    (host,) = watch.named("host")
    (agent,) = watch.named("invoke_agent")
    (search,) = watch.named("retrieval")
    calls, turns = watch.named("execute_tool"), watch.named("chat")
    assert ["add", "divide", "search_tools"] == sorted(
        span.name.removeprefix("execute_tool ") for span in calls
    )
    assert [_id(agent)] * 6 == [
        span.parent.span_id for span in (*calls, *turns) if span.parent is not None
    ]
    assert [search.parent] == [
        span.get_span_context() for span in calls if span.name == "execute_tool search_tools"
    ]
    assert _id(host) == (agent.parent.span_id if agent.parent else 0)
    assert 3 == (agent.attributes or {})["gateway.chat.turns"]
    assert agent.status.is_ok or agent.status.is_unset
    assert sorted(watch.began) == sorted(span.name for span in watch.finished)


def _id(span: ReadableSpan) -> int:
    context = span.get_span_context()
    return context.span_id if context else 0


@pytest.mark.requirement("auto:rule-10")
@pytest.mark.parametrize("way", WAYS)
async def test_failed_conversation_ends_its_span_with_the_error_type(
    stage: Stage, speaker: Speaker, traced_gateway: Gateway, watch: Watch, way: Way
) -> None:
    """The error is from the service or from the gateway. Its message is omitted, because it may
    contain content.
    """
    with pytest.raises(LoopError):
        await speaker.ask(way, traced_gateway, stage.act(lambda _: find("add")))
    with pytest.raises(Exception, match="the script is over"):
        await speaker.ask(way, traced_gateway, stage.cast())

    loop, service = watch.named("invoke_agent")
    assert ["LoopError", "BadRequestError"] == [
        (span.attributes or {}).get("error.type") for span in (loop, service)
    ]
    assert not loop.status.is_ok
    assert not loop.status.description
    assert sorted(watch.began) == sorted(span.name for span in watch.finished)


def read_some(stream: Any, reads: int) -> None:
    """Read some chunks of a stream, and abandon it."""
    if reads:
        for _ in stream:
            break


async def read_some_later(stream: Any, reads: int) -> None:
    """Read some chunks of an async stream, and abandon it."""
    if reads:
        async for _ in stream:
            break


@pytest.fixture
async def indexed_gateway(traced_gateway: Gateway, watch: Watch) -> Gateway:
    """Return the traced gateway with its index built and no spans recorded yet."""
    await traced_gateway.report()
    watch.began.clear()
    watch.spans.clear()
    return traced_gateway


@pytest.mark.parametrize("is_closed", [True, False])
@pytest.mark.parametrize("is_raw", [False, True])
@pytest.mark.parametrize("reads", [0, 1])
async def test_abandoned_stream_ends_its_spans_without_an_error(
    stage: Stage,
    speaker: Speaker,
    indexed_gateway: Gateway,
    watch: Watch,
    reads: int,
    is_raw: bool,
    is_closed: bool,
) -> None:
    """The stream is closed or only forgotten, after some reads or none. Its spans have no error and
    no finish reason.
    """
    role = stage.cast(Turn("A longer answer."))
    request: dict[str, Any] = {"model": role.model, "messages": ASK, "stream": True}
    blocking: Any = AutoDiscoveryClient(speaker.openai, indexed_gateway).chat.completions
    waiting: Any = AsyncAutoDiscoveryClient(speaker.asynchronous, indexed_gateway).chat.completions

    if is_raw:
        stream = blocking.with_raw_response.create(**request).http_response
        later = (await waiting.with_raw_response.create(**request)).http_response
    else:
        stream, later = blocking.create(**request), await waiting.create(**request)
    read_some(stream.iter_raw() if is_raw else stream, reads)
    await read_some_later(later.aiter_raw() if is_raw else later, reads)
    if is_closed:
        stream.close()
        await (later.aclose() if is_raw else later.close())
    else:
        del stream, later

    async def all_ended() -> bool:
        return len(watch.finished) == len(watch.began)

    await until(all_ended)
    attributes = [span.attributes or {} for span in watch.finished]
    kinds = sorted(span.name.partition(" ")[0] for span in watch.finished)
    assert ["chat", "chat", "invoke_agent", "invoke_agent"] == kinds
    assert not any(
        {"error.type", "gen_ai.response.finish_reasons"} & {*name} for name in attributes
    )
    turns = [name["gateway.chat.turns"] for name in attributes if "gateway.chat.turns" in name]
    assert [1, 1] == turns


@pytest.mark.parametrize("is_closed", [True, False])
async def test_unread_stream_releases_its_connection(
    stage: Stage, speaker: Speaker, functions: Gateway, is_closed: bool
) -> None:
    """Otherwise the client would run out of connections."""
    role = stage.cast(Turn("A longer answer."))
    request: dict[str, Any] = {"model": role.model, "messages": ASK, "stream": True}
    stream = AutoDiscoveryClient(speaker.openai, functions).chat.completions.create(**request)
    response = stream.response
    if is_closed:
        stream.close()
    del stream

    assert response.is_closed


async def test_metric_of_turns_is_recorded_once_per_conversation(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, watch: Watch
) -> None:
    """Closing a stream twice must not count it twice."""
    gateway = open_gateway(meter_provider=watch.meter)
    gateway.add_tool(add)
    for way in WAYS:
        await speaker.ask(way, gateway, stage.cast(Turn(calls=(look("add"),)), Turn("Done.")))

    (point,) = [
        point
        for metric, point in recorded(watch.reader)
        if metric.name == "gateway.chat.turns" and isinstance(point, HistogramDataPoint)
    ]
    assert (4, 8) == (point.count, point.sum)


class RaisingProvider:
    """A telemetry provider that raises, or whose results raise.

    Args:
        depth: Number of chained calls that succeed before one raises.
        error: The error to raise.
    """

    def __init__(self, depth: int, error: BaseException) -> None:
        self._depth = depth
        self._error = error

    def __getattr__(self, _name: str) -> Any:
        return self._call

    def _call(self, *_arguments: object, **_named: object) -> RaisingProvider:
        if not self._depth:
            raise self._error
        return RaisingProvider(self._depth - 1, self._error)


class RaisingProcessor(SpanProcessor):
    """A span processor that raises when a span begins or ends."""

    def __init__(self, *, at_end: bool) -> None:
        self._at_end = at_end

    def on_start(self, span: object, parent_context: object = None) -> None:
        if not self._at_end:
            raise RuntimeError(SECRET)

    def on_end(self, span: object) -> None:
        raise RuntimeError(SECRET)


def raising_sdk(*, at_end: bool) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(RaisingProcessor(at_end=at_end))
    return provider


BROKEN: dict[str, dict[str, Any]] = {
    **{
        f"{kind} {depth} {type(error).__name__}": {kind: RaisingProvider(depth, error)}
        for kind in ("tracer_provider", "meter_provider")
        for depth in range(3)
        for error in (RuntimeError(SECRET), PanicError(SECRET))
    },
    "span begins": {"tracer_provider": raising_sdk(at_end=False)},
    "span ends": {"tracer_provider": raising_sdk(at_end=True)},
}
"""Arguments of telemetry that raise an error, keyed by the kind of fault."""


@pytest.mark.parametrize("broken", BROKEN)
async def test_telemetry_that_raises_does_not_end_searches_or_calls(
    stage: Stage,
    speaker: Speaker,
    open_gateway: OpenGateway,
    caplog: pytest.LogCaptureFixture,
    broken: str,
) -> None:
    """Searches, calls and conversations continue, and one warning is logged."""
    gateway = open_gateway(
        [tool("wash_car", "Wash the car.")],
        strategy="auto",
        embedder=HashingEmbedder(),
        options=Options(capture_content=True),
        **BROKEN[broken],
    )
    gateway.add_tool(add)
    gateway.add_tool(divide)

    result = await gateway.search("wash the car")
    called = await gateway.invoke("wash_car")
    with pytest.raises(UnknownToolError):
        await gateway.invoke("nobody")
    texts = {text(await speaker.ask(way, gateway, working_role(stage))) for way in WAYS}

    assert ("wash_car", "hybrid") == (result.matches[0].name, result.mode)
    assert not called.is_error
    assert {"It is 3."} == texts
    (warning,) = [record for record in caplog.records if record.name == "gateway.telemetry"]
    assert "spans or metrics are missing" in warning.getMessage()
    assert SECRET not in caplog.text
