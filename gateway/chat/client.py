"""Replacements for OpenAI's clients, whose models can search and call the tools of a gateway.

* Parameters and return types are the SDK's. The code of the SDK runs unchanged, except for its
  method ``post`` (`interceptor`). Requests that do not go to a model are sent unchanged.
* A client is safe for any number of threads, tasks and conversations.

A host with its own loop prepares one turn, and handles its reply:

    turn = client.prepare(messages, tools)
    reply = ask_model(messages, turn.tools)
    handled = turn.handle(reply)
    messages += handled.messages        # the model's message, and answers of gateway tools
    …                                   # answer handled.calls yourself, or stop if handled.done

A JSON request, of Chat Completions or of the Responses API, can be passed whole:

    turn = client.prepare(body)
    handled = turn.handle(send(turn.body))
    body["messages"] += handled.messages        # or body["input"]
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
"""Attributes of the wrapper. All others are looked up on the wrapped client."""


class _Wrapper(Generic[C]):
    openai: C
    gateway: Gateway
    _context: ClientContext
    _kind: ClassVar[type]
    _other: ClassVar[str]
    """Class name of the wrapper for the other kind of client, async or blocking."""

    def __init__(self, openai: C, gateway: Gateway, **options: Unpack[ContextOptions]) -> None:
        if not isinstance(openai, self._kind):
            hint = f": wrap it by {self._other}" if isinstance(openai, OpenAI | AsyncOpenAI) else ""
            kind, actual = self._kind.__name__, type(openai).__name__
            raise ConfigError(f"openai must be an openai.{kind} client, got {actual}{hint}")
        _fill(self, openai, ClientContext(gateway, **options))

    def with_options(self, **options: Any) -> Self:
        """Return a wrapper with other options of the OpenAI client."""
        bare = self.openai.with_options(**options)
        return _fill(object.__new__(type(self)), bare, self._context)

    copy = with_options

    def for_caller(self, caller: Caller) -> Self:
        """Return a wrapper of the same client for the conversations of *caller*."""
        context = self._context.for_caller(caller)
        return _fill(object.__new__(type(self)), self.openai, context)

    def __copy__(self) -> Self:
        return _fill(object.__new__(type(self)), self.openai, self._context)

    def __getattribute__(self, name: str) -> Any:
        if name not in _OWN_ATTRIBUTES:
            bare = object.__getattribute__(self, "openai")
            # For a subclass such as Azure's client, `isinstance` must be true for both classes.
            if name == "__class__" and issubclass(type(self), type(bare)):
                return type(self)
            return getattr(bare, name)
        value = object.__getattribute__(self, name)
        if name == "responses":
            # Requests on a socket do not pass through ``post``.
            vars(value)["connect"] = _refuse_socket
        return value

    def __setattr__(self, name: str, value: object) -> None:
        setattr(object.__getattribute__(self, "openai"), name, value)

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} holds connections and a catalog, and can be neither pickled "
            "nor copied in depth: make one where it is needed, or use with_options()"
        )


class AutoDiscoveryClient(_Wrapper[OpenAI], OpenAI):
    """An `openai.OpenAI` client whose models can search and call the tools of a gateway.

    Args:
        openai: The client that sends requests to the model. It may be of any subclass, for any
            server with the same wire format. It is used, not copied.
        gateway: The gateway with the tools; several clients may share it.
        observer: Callback for events of each conversation.
        approve: Callback before a destructive tool runs (`ChatOptions.confirm`). Only ``True``
            approves the call.
        caller: The caller of all conversations; see `for_caller`.
        agent: The agent's name in telemetry.

    Raises:
        ConfigError: If *openai* or *gateway* has the wrong type.

    Example:
        >>> from gateway.testing import Call, ScriptedModel, Turn, script
        >>> turns = Turn(calls=(Call("add", {"a": 1, "b": 2}),)), Turn("It is 3.")
        >>> model = ScriptedModel(script(*turns))  # instead of a real model service
        >>> model.start()
        >>> openai = OpenAI(base_url=model.base_url, api_key="-")
        >>> client = AutoDiscoveryClient(openai, gateway)
        >>> messages = [{"role": "user", "content": "What is 1 + 2?"}]
        >>> reply = client.chat.completions.create(model="any", messages=messages)
        >>> reply.choices[0].message.content
        'It is 3.'
        >>> client.close()
        >>> model.close()
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
        """Prepare one turn of your own loop.

        Args:
            messages: The conversation, or a whole JSON request of either wire format.
            tools: The host's own tools.
            model: The name of the model; "" if not known yet.
        """
        bridge = self.gateway.bridge
        work = partial(prepare, self._context, messages, tools, model)
        return Prepared(bridge, bridge.call(work))


class AsyncAutoDiscoveryClient(_Wrapper[AsyncOpenAI], AsyncOpenAI):
    """An `openai.AsyncOpenAI` client whose models can search and call the tools of a gateway.

    Requests are sent on the caller's event loop. For the arguments, see `AutoDiscoveryClient`.

    Raises:
        ConfigError: If *openai* or *gateway* has the wrong type.

    Example:
        >>> from gateway.testing import Call, ScriptedModel, Turn, script
        >>> turns = Turn(calls=(Call("add", {"a": 1, "b": 2}),)), Turn("It is 3.")
        >>> model = ScriptedModel(script(*turns))  # instead of a real model service
        >>> model.start()
        >>> openai = AsyncOpenAI(base_url=model.base_url, api_key="-")
        >>> client = AsyncAutoDiscoveryClient(openai, gateway)
        >>> messages = [{"role": "user", "content": "What is 1 + 2?"}]
        >>> reply = await client.chat.completions.create(model="any", messages=messages)
        >>> reply.choices[0].message.content
        'It is 3.'
        >>> await client.close()
        >>> model.close()
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
        """See `AutoDiscoveryClient.prepare`."""
        return await prepare(self._context, messages, tools, model)


def _fill(wrapper: W, openai: OpenAI | AsyncOpenAI, context: ClientContext) -> W:
    """Set the attributes without the base constructor, which would open connections."""
    post = intercepted_post(openai, context)
    attributes = {"openai": openai, "gateway": context.gateway, "_context": context, "post": post}
    for name, value in attributes.items():
        object.__setattr__(wrapper, name, value)
    return wrapper


def _refuse_socket(**_options: object) -> NoReturn:
    raise InvalidRequestError(
        "responses.connect is not wrapped, so the model would see no catalog: use "
        "responses.create, or the bare client as .openai"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """A model's reply whose gateway calls were answered."""

    messages: tuple[JsonItem, ...]
    """The reply and the answers to its gateway calls, to be added to the conversation. They are
    messages of Chat Completions, or items of the Responses API."""
    calls: tuple[ToolCall, ...]
    """Calls of the host's own tools. The host adds their answers after *messages*."""
    ours: int
    """Number of gateway calls that were answered."""

    @property
    def done(self) -> bool:
        """True if the model's turn has ended, because the reply calls no tools."""
        return not self.calls and not self.ours


class AsyncPrepared:
    """One prepared turn, for async callers."""

    def __init__(self, loop: Loop[Any], body: Mapping[str, object]) -> None:
        self._loop = loop
        self.body = body
        """Body of the request, with the tools. Send it if `prepare` got a whole request."""
        self.tools: list[dict[str, Any]] = [dict(tool) for tool in loop.tool_list.tools]
        """The tools to send: the host's, then the gateway's. If empty, omit ``tools`` from the
        request.
        """

    async def handle(self, reply: BaseModel | Mapping[str, object]) -> Handled:
        """Run the gateway calls of *reply*, and return their answers with the remaining calls.

        *reply* is a completion, its message, or a response, as an SDK object or JSON.

        Raises:
            InvalidRequestError: If *reply* is something else.
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
    """One prepared turn, for blocking callers."""

    def __init__(self, bridge: Bridge, prepared: AsyncPrepared) -> None:
        self._bridge = bridge
        self._prepared = prepared
        self.body = prepared.body
        self.tools = prepared.tools

    def handle(self, reply: BaseModel | Mapping[str, object]) -> Handled:
        """See `AsyncPrepared.handle`."""
        return self._bridge.call(lambda: self._prepared.handle(reply))


async def prepare(
    context: ClientContext,
    messages: Iterable[Any] | Mapping[str, Any],
    tools: Iterable[Any] | None,
    model: str,
) -> AsyncPrepared:
    """Prepare one turn; see `AutoDiscoveryClient.prepare`."""
    is_whole = isinstance(messages, Mapping)
    body = dict(messages) if is_whole else {"messages": list(messages), "model": model}
    if tools is not None:
        body["tools"] = list(tools)
    loop = context.begin(body, is_responses=_is_responses(body))
    with loop.end_on_error():
        return AsyncPrepared(loop, await loop.next_request())


class Middleware:
    """Runs the loop of a conversation around any function that sends a request to a model.

    It answers gateway calls and asks again, until the reply has none. Streams are not supported.
    The options are those of `AutoDiscoveryClient`. One middleware may handle many requests at once.

    Example:
        >>> async def ask(body):  # sends the body to a model
        ...     message = {"role": "assistant", "content": "Hi."}
        ...     return {"choices": [{"index": 0, "message": message}]}
        >>> body = {"model": "any", "messages": [{"role": "user", "content": "Hello."}]}
        >>> reply = await Middleware(gateway)(body, ask)
        >>> reply["choices"][0]["message"]["content"]
        'Hi.'
    """

    def __init__(self, gateway: Gateway, **options: Unpack[ContextOptions]) -> None:
        self._context = ClientContext(gateway, **options)

    async def __call__(self, body: Mapping[str, Any], call_next: CallNext) -> dict[str, Any]:
        """Run the conversation of *body*, and return the reply for the caller, as JSON.

        Args:
            body: A request of Chat Completions or of the Responses API.
            call_next: Sends such a body and returns the reply's JSON.

        Raises:
            InvalidRequestError: If *body* requests a stream, or is neither kind of request.
            LoopError: If a limit of `ChatOptions` is reached.
        """
        if body.get("stream"):
            raise InvalidRequestError("the middleware does not support streams: leave 'stream' out")
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
    if isinstance(reply, ChatCompletion | Response):
        return reply
    fields = reply.model_dump(exclude_unset=True) if isinstance(reply, BaseModel) else dict(reply)
    if wire_format == "responses":
        return Response.construct(None, **fields)
    if "choices" not in fields and "role" not in fields:
        raise InvalidRequestError(
            "the reply must be a completion, a response, or an assistant's message"
        )
    if "choices" not in fields:
        fields = {"choices": [{"index": 0, "message": fields, "finish_reason": "stop"}]}
    return ChatCompletion.construct(None, **fields)
