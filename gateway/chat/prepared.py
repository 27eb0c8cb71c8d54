"""Discovery for people with a loop, or a way to ask a model, of their own.

One turn: which tools to send, and what to do with the calls.

    turn = client.prepare(messages, tools)
    reply = whatever_asks_a_model(messages, turn.tools)
    handled = turn.handle(reply)
    messages += handled.messages        # the model's own and the answers of ours
    …                                   # answer handled.calls yourself; done if there are no calls

A request that is JSON already, of Chat Completions or of the Responses API, is given whole:

    turn = client.prepare(body)
    handled = turn.handle(send(turn.body))
    body["messages"] += handled.messages        # or body["input"]

No state is held between two turns: the next `prepare` reads the messages.

The whole loop, around any function that asks a model with a JSON body:

    async def ask(body): ...            # sends it, returns the reply's JSON
    reply = await Middleware(gateway)(body, ask)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import BaseModel

from gateway.chat.conversation import JsonItem
from gateway.chat.events import Observer
from gateway.chat.loop import ClientContext, Loop
from gateway.discovery.approval import Approve
from gateway.discovery.call_handler import ToolCall
from gateway.discovery.wire_formats import WireFormat
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.runtime.background_loop import Bridge

CallNext = Callable[[dict[str, Any]], Awaitable[Mapping[str, Any]]]


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

    For frameworks and proxies without an OpenAI client. Whole replies only, no streams.
    """

    def __init__(
        self, gateway: Gateway, *, observer: Observer | None = None, approve: Approve | None = None
    ) -> None:
        self._context = ClientContext(gateway, observer=observer, approve=approve)

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
