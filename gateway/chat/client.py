"""Drop-in clients: the OpenAI client's own calls, with the catalog behind them.

* Same parameters, same return types, streaming or not, raw or not: the SDK's own code runs on top,
  and meets discovery where it sends its requests (`interceptor`).
* What is not a request to a model goes to the bare client, untouched.
* No state is held between two calls but for conversations that the service keeps
  (`conversation`): one client serves any number of threads, tasks and conversations.

A host with a loop of its own prepares one turn: which tools to send, and what to do with the calls.

    turn = client.prepare(messages, tools)
    reply = whatever_asks_a_model(messages, turn.tools)
    handled = turn.handle(reply)
    messages += handled.messages        # the model's own and the answers of ours
    …                                   # answer handled.calls yourself; done if there are no calls

A request that is JSON already, of Chat Completions or of the Responses API, is given whole:

    turn = client.prepare(body)
    handled = turn.handle(send(turn.body))
    body["messages"] += handled.messages        # or body["input"]

The whole loop, around any function that asks a model with a JSON body:

    async def ask(body): ...            # sends it, returns the reply's JSON
    reply = await Middleware(gateway)(body, ask)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, NoReturn, Self, TypeVar, Unpack

from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import BaseModel

from gateway.chat.conversation import JsonItem
from gateway.chat.interceptor import intercepted_post
from gateway.chat.loop import ClientContext, ContextOptions, Loop
from gateway.discovery.call_handler import ToolCall
from gateway.discovery.wire_formats import WireFormat
from gateway.errors import ConfigError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.runtime.background_loop import Bridge
from gateway.types import Caller

C = TypeVar("C", OpenAI, AsyncOpenAI)
W = TypeVar("W")
CallNext = Callable[[dict[str, Any]], Awaitable[Mapping[str, Any]]]
_OWN_ATTRIBUTES = frozenset(
    {
        "__dict__",
        "__reduce_ex__",
        "_context",
        "_kind",
        "_other",
        "beta",
        "chat",
        "copy",
        "for_caller",
        "gateway",
        "openai",
        "post",
        "prepare",
        "responses",
        "with_options",
        "with_raw_response",
        "with_streaming_response",
    }
)
"""Attributes of the wrapper; all others are the bare client's. The SDK builds ``chat`` and its like
for the client on which they are looked up, and sends with that client's ``post``."""


class _Wrapper(Generic[C]):
    """What both wrappers have in common: they look like the bare client."""

    openai: C
    """The bare client."""
    gateway: Gateway
    _context: ClientContext
    _kind: ClassVar[type]
    _other: ClassVar[str]
    """The wrapper of the other kind of client."""

    def __init__(self, openai: C, gateway: Gateway, **options: Unpack[ContextOptions]) -> None:
        if not isinstance(openai, self._kind):
            hint = f": wrap it by {self._other}" if isinstance(openai, OpenAI | AsyncOpenAI) else ""
            kind, actual = self._kind.__name__, type(openai).__name__
            raise ConfigError(f"openai must be an openai.{kind} client, got {actual}{hint}")
        _fill(self, openai, ClientContext(gateway, **options))

    def with_options(self, **options: Any) -> Self:
        """Return a wrapper of the bare client with other options, over the same gateway."""
        bare = self.openai.with_options(**options)
        return _fill(object.__new__(type(self)), bare, self._context)

    copy = with_options

    def for_caller(self, caller: Caller) -> Self:
        """Return a wrapper of the same client whose conversations are with *caller*."""
        context = self._context.for_caller(caller)
        return _fill(object.__new__(type(self)), self.openai, context)

    def __copy__(self) -> Self:
        """Return another wrapper of the same client."""
        return _fill(object.__new__(type(self)), self.openai, self._context)

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute: a few are the wrapper's own, all others the bare client's."""
        if name not in _OWN_ATTRIBUTES:
            bare = object.__getattribute__(self, "openai")
            # A bare client of another class (Azure's): `isinstance` holds for both.
            if name == "__class__" and issubclass(type(self), type(bare)):
                return type(self)
            return getattr(bare, name)
        value = object.__getattribute__(self, name)
        if name == "responses":
            # Discovery would not see what a socket asks for.
            vars(value)["connect"] = _refuse_socket
        return value

    def __setattr__(self, name: str, value: object) -> None:
        """Set it on the bare client, which reads it."""
        setattr(object.__getattribute__(self, "openai"), name, value)

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        """Refuse to be pickled, as the bare client does."""
        raise TypeError(
            f"{type(self).__name__} holds connections and a catalog, and can be neither pickled "
            "nor copied in depth: make one where it is needed, or use with_options()"
        )


class AutoDiscoveryClient(_Wrapper[OpenAI], OpenAI):
    """An `openai.OpenAI` whose models search and call the gateway's tools.

    Args:
        openai: The client that asks the model, of any subclass and for any server that speaks
            the wire format. It is used, not copied.
        gateway: The catalog; it may be shared.
        observer: Called with what happens in each conversation.
        approve: Asked before a tool runs that may destroy something (`ChatOptions.confirm`);
            only ``True`` is a yes.
        caller: The party that the conversations are with; `for_caller` names another.
        agent: The agent's name in telemetry.

    Raises:
        ConfigError: If one of the two is something else.
    """

    _kind = OpenAI
    _other = "AsyncAutoDiscoveryClient"

    def prepare(
        self,
        messages: Iterable[Any] | Mapping[str, Any],
        tools: Iterable[Any] | None = None,
        *,
        model: str = "",
    ) -> Prepared:
        """Prepare one turn of a loop of the host's own; see `Prepared`.

        Args:
            messages: The conversation; or a whole request as JSON, in either format.
            tools: The host's own tools.
            model: The model that will be asked; "" if that is open.
        """
        bridge = self.gateway.bridge
        work = partial(prepare, self._context, messages, tools, model)
        return Prepared(bridge, bridge.call(work))


class AsyncAutoDiscoveryClient(_Wrapper[AsyncOpenAI], AsyncOpenAI):
    """An `openai.AsyncOpenAI` whose models search and call the gateway's tools.

    Args:
        openai: The client that asks the model, on the loop that the caller runs.
        gateway: The catalog; it may be shared, also with blocking callers.
        observer: Called with what happens in each conversation.
        approve: Asked before a tool runs that may destroy something (`ChatOptions.confirm`);
            only ``True`` is a yes.
        caller: The party that the conversations are with; `for_caller` names another.
        agent: The agent's name in telemetry.

    Raises:
        ConfigError: If one of the two is something else.
    """

    _kind = AsyncOpenAI
    _other = "AutoDiscoveryClient"

    async def prepare(
        self,
        messages: Iterable[Any] | Mapping[str, Any],
        tools: Iterable[Any] | None = None,
        *,
        model: str = "",
    ) -> AsyncPrepared:
        """Prepare one turn of a loop of the host's own; see `AsyncPrepared`.

        Args:
            messages: The conversation; or a whole request as JSON, in either format.
            tools: The host's own tools.
            model: The model that will be asked; "" if that is open.
        """
        return await prepare(self._context, messages, tools, model)


def _fill(wrapper: W, openai: OpenAI | AsyncOpenAI, context: ClientContext) -> W:
    """Fill in *wrapper* without its base's constructor: it has no connection of its own."""
    post = intercepted_post(openai, context)
    own = {"openai": openai, "gateway": context.gateway, "_context": context, "post": post}
    for name, value in own.items():
        object.__setattr__(wrapper, name, value)
    return wrapper


def _refuse_socket(**_options: object) -> NoReturn:
    raise InvalidRequestError(
        "responses.connect is not wrapped, so the model would see no catalog: use "
        "responses.create, or the bare client as .openai"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """A reply whose calls of ours were answered."""

    messages: tuple[JsonItem, ...]
    """To be added to the conversation: the reply, then the answers to calls of ours. Of a
    Responses body these are items."""
    calls: tuple[ToolCall, ...]
    """Calls of the host's own tools: the host answers them, behind those messages."""
    ours: int
    """How many calls of ours were answered."""

    @property
    def done(self) -> bool:
        """Whether the model's turn has ended: no call waits for an answer."""
        return not self.calls and not self.ours


class AsyncPrepared:
    """One turn, prepared."""

    def __init__(self, loop: Loop[Any], body: Mapping[str, object]) -> None:
        self._loop = loop
        self.body = body
        """The whole request as it may be sent, for one that was given whole."""
        self.tools: list[dict[str, Any]] = [dict(tool) for tool in loop.tool_list.tools]
        """The tools to send: the host's own, then ours. Leave ``tools`` out if it is empty."""

    async def handle(self, reply: BaseModel | Mapping[str, object]) -> Handled:
        """Run the calls of ours in *reply*.

        Args:
            reply: A completion, its message, or a response; an object of the SDK or its JSON.

        Raises:
            InvalidRequestError: If it is neither.
        """
        loop, conversation = self._loop, self._loop.conversation
        with loop.end_after():
            parsed = _parse_reply(reply, conversation.wire_format)
            loop.record_reply(parsed)
            calls = conversation.calls(parsed)
            ours = loop.our_calls(calls)
            await loop.answer_calls(parsed)
            theirs = tuple(call for call in calls if call not in ours)
            messages = tuple(conversation.new_messages)
            return Handled(messages=messages, calls=theirs, ours=len(ours))


class Prepared:
    """One turn, prepared, for blocking callers; see `AsyncPrepared`."""

    def __init__(self, bridge: Bridge, prepared: AsyncPrepared) -> None:
        self._bridge = bridge
        self._prepared = prepared
        self.body = prepared.body
        self.tools = prepared.tools

    def handle(self, reply: BaseModel | Mapping[str, object]) -> Handled:
        """Run the calls of ours in *reply*; see `AsyncPrepared.handle`."""
        return self._bridge.call(lambda: self._prepared.handle(reply))


async def prepare(
    context: ClientContext,
    messages: Iterable[Any] | Mapping[str, Any],
    tools: Iterable[Any] | None,
    model: str,
) -> AsyncPrepared:
    """Prepare one turn of a conversation, or of a request that is given whole, in either format."""
    is_whole = isinstance(messages, Mapping)
    body = dict(messages) if is_whole else {"messages": list(messages), "model": model}
    if tools is not None:
        body["tools"] = list(tools)
    loop = context.begin(body, is_responses=_is_responses(body))
    with loop.end_on_error():
        return AsyncPrepared(loop, await loop.next_request())


class Middleware:
    """Searches and calls between a request and its reply. Any number of calls at once.

    For frameworks and proxies without an OpenAI client. Whole replies only, no streams. The
    options are those of `AutoDiscoveryClient`.
    """

    def __init__(self, gateway: Gateway, **options: Unpack[ContextOptions]) -> None:
        self._context = ClientContext(gateway, **options)

    async def __call__(self, body: Mapping[str, Any], call_next: CallNext) -> dict[str, Any]:
        """Return the model's last reply to *body*.

        Args:
            body: A request of Chat Completions or of the Responses API.
            call_next: Sends such a body and returns the reply's JSON.

        Raises:
            InvalidRequestError: If *body* asks for a stream, or is no such request.
            LoopError: If a limit of `ChatOptions` is reached.
        """
        if body.get("stream"):
            raise InvalidRequestError("a middleware takes whole replies: leave 'stream' out")
        loop = self._context.begin(body, is_responses=_is_responses(body))

        async def ask() -> Any:
            reply = await call_next(await loop.next_request())
            return _parse_reply(reply, loop.conversation.wire_format)

        final = await loop.run(ask)
        reply: dict[str, Any] = final.model_dump(mode="json", exclude_unset=True)
        return reply


def _is_responses(body: Mapping[str, object]) -> bool:
    if "messages" in body:
        return False
    if "input" in body or "previous_response_id" in body:
        return True
    raise InvalidRequestError("a request needs 'messages' (chat) or 'input' (responses)")


def _parse_reply(reply: BaseModel | Mapping[str, object], wire_format: WireFormat) -> Any:
    """Return *reply* as the SDK's object."""
    if isinstance(reply, ChatCompletion | Response):
        return reply
    fields = reply.model_dump(exclude_unset=True) if isinstance(reply, BaseModel) else dict(reply)
    if wire_format == "responses":
        return Response.construct(None, **fields)
    if "choices" not in fields and "role" not in fields:
        raise InvalidRequestError("a reply is a completion, or an assistant's message")
    if "choices" not in fields:
        fields = {"choices": [{"index": 0, "message": fields, "finish_reason": "stop"}]}
    return ChatCompletion.construct(None, **fields)
