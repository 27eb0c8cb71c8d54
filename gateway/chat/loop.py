"""The loop of requests, replies and tool calls within one client call, without I/O to the model.

    next_request() -> (the model) -> handle_reply(reply) -> answer_calls(reply) -> next_request() …

Calls of gateway tools are answered here, once each, in order. Calls of the host's tools are
returned to the caller. A turn with both returns only these.
"""

from __future__ import annotations

import asyncio
import copy
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Generic, TypedDict

from gateway.chat.accounting import (
    Accounting,
    Event,
    Observer,
    Replied,
    Requested,
    UsageMeter,
    attach,
    event_of,
    total_tokens,
)
from gateway.chat.chat_completions import ChatConversation
from gateway.chat.conversation import (
    MAX_CONVERSATIONS,
    Conversation,
    ConversationState,
    JsonItem,
    R,
)
from gateway.chat.responses import ResponsesConversation
from gateway.chat.trace import AGENT, ConversationTrace
from gateway.discovery.approval import Approve
from gateway.discovery.call_handler import ToolAnswer, ToolCall, handle_call
from gateway.discovery.meta_tools import MetaNames
from gateway.discovery.tool_list import ToolList, ToolListBuilder, ToolListRequest, loaded_tools
from gateway.discovery.window import described_tools
from gateway.errors import ConfigError, LoopError
from gateway.gateway import Gateway
from gateway.runtime.cache import Cache
from gateway.runtime.model_endpoint import ModelEndpoint
from gateway.runtime.text import json_tokens
from gateway.sync import SyncGateway
from gateway.types import ANYONE, Caller

InGateway = Callable[[Callable[[], Coroutine[Any, Any, None]]], Awaitable[None]]
"""Runs the given work on the gateway's event loop."""
_NO_TOOLS = ToolList(names=MetaNames(search="", call=""), is_empty=True)


def _new_store() -> Cache[ConversationState]:
    return Cache("conversation", max_items=MAX_CONVERSATIONS)


class ContextOptions(TypedDict, total=False):
    """Options of a client; see `AutoDiscoveryClient`."""

    observer: Observer | None
    approve: Approve | None
    caller: Caller
    agent: str


@dataclass(eq=False)
class ClientContext:
    """Settings and state that all calls of one client share.

    Raises:
        ConfigError: If *gateway* is not a `Gateway`.
    """

    gateway: Gateway
    _: KW_ONLY
    observer: Observer | None = None
    approve: Approve | None = None
    caller: Caller = ANYONE
    agent: str = AGENT

    def __post_init__(self) -> None:
        gateway = self.gateway
        if not isinstance(gateway, Gateway):
            hint = ": pass its .gateway" if isinstance(gateway, SyncGateway) else ""
            raise ConfigError(f"gateway must be a Gateway, got {type(gateway).__name__}{hint}")
        self.tool_lists = ToolListBuilder(gateway)
        self.store = _new_store()
        """Conversation states of the current caller, keyed by response id or conversation id."""
        self._stores = Cache[Cache[ConversationState]]("callers", max_items=MAX_CONVERSATIONS)
        """Stores of all callers chosen by `for_caller`, keyed by caller."""

    def for_caller(self, caller: Caller) -> ClientContext:
        """Return the same context for another caller, with a separate store of conversations."""
        context = copy.copy(self)
        key = caller.user, caller.tenant, caller.scopes
        context.caller, context.store = caller, self._stores.peek(key) or _new_store()
        self._stores.put(key, context.store)
        return context

    def begin(
        self,
        request: Mapping[str, object],
        *,
        is_responses: bool,
        endpoint: ModelEndpoint | None = None,
    ) -> Loop[Any]:
        """Begin a client call, and return its loop.

        *is_responses* selects the Responses API. *endpoint* is None if only the host knows it.
        """
        endpoint = endpoint or ModelEndpoint(model=str(request.get("model", "")))
        if is_responses:
            return Loop(self, ResponsesConversation(request, self.store), endpoint)
        return Loop(self, ChatConversation(request), endpoint)


class Loop(Generic[R]):
    """One client call, from the caller's request to the reply."""

    def __init__(
        self, context: ClientContext, conversation: Conversation[R], endpoint: ModelEndpoint
    ) -> None:
        self.conversation: Conversation[R] = conversation
        self.tool_list: ToolList = _NO_TOOLS
        self.accounting: Accounting | None = None
        """Counts of requests, calls and tokens; None until there is a reply for the caller."""
        self._context = context
        self._gateway = context.gateway
        self._options = context.gateway.options.chat
        self._pending: tuple[ToolCall, ...] = ()
        """Gateway calls that were removed from the caller's reply."""
        self._meter = UsageMeter()
        self._other_tokens = self._host_tokens = sum(map(json_tokens, conversation.host_tools))
        """Estimated tokens of the host's tools, and with tools that a native search loaded."""
        self.trace = ConversationTrace(
            self._gateway.telemetry,
            agent=context.agent,
            endpoint=endpoint,
            conversation=conversation.id,
        )
        self._started = time.monotonic()
        self._task = uuid.uuid4().hex
        self._ended = False

    async def run(self, ask: Callable[[], Awaitable[R]], in_gateway: InGateway | None = None) -> R:
        """Run the loop, and return the reply for the caller.

        Args:
            ask: Sends the body from `next_request` to the model, and returns the reply.
            in_gateway: Runs the calls of gateway tools; None runs them on the current event loop.
        """
        with self.end_after():
            while True:
                reply = await ask()
                final = self.handle_reply(reply)
                if final is not None:
                    self.store(final)
                    return final
                work = partial(self.answer_calls, reply)
                await (in_gateway(work) if in_gateway is not None else work())

    @contextmanager
    def end_on_error(self) -> Iterator[None]:
        """End the client call if the block raises an error."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, GeneratorExit):
                self.trace.fail(type(error).__name__)
            self.end()
            raise

    @contextmanager
    def end_after(self) -> Iterator[None]:
        """End the client call when the block ends."""
        with self.end_on_error():
            yield
        self.end()

    def end(self) -> None:
        """End the span of the client call and record its metrics, at most once."""
        if self._ended:
            return
        self._ended = True
        telemetry, total, saved = self._gateway.telemetry, self._meter.total, None
        if self.accounting is not None and not self.tool_list.is_empty:
            sent = total.definition_tokens - total.turns * self._host_tokens
            saved = max(0, total.catalog_tokens - sent)
            telemetry.add("gateway.chat.tokens.saved", saved)
            telemetry.record("gateway.chat.definition.share", total.definition_share)
            telemetry.record("gateway.chat.prefix.stability", total.prefix_stability)
        telemetry.record("gateway.chat.turns", total.turns)
        self.trace.end(total, self._meter.usage, saved_tokens=saved)

    @property
    def turn(self) -> int:
        """Number of requests to the model so far."""
        return self._meter.total.turns

    async def next_request(self) -> dict[str, object]:
        """Return the body of the next request to the model.

        Raises:
            LoopError: If a limit of `ChatOptions` is reached.
            InvalidRequestError: If a parameter does not work with discovery.
        """
        self._check_limits()
        conversation = self.conversation
        with self.trace.within():
            self.tool_list = await self._build_tool_list()
            if conversation.pending_calls and not self.turn and not self.tool_list.is_empty:
                answers = await self._answer(conversation.pending_calls)
                conversation.answer_pending(answers, self._load_tools)
                self.tool_list = await self._build_tool_list()
        tool_list = self.tool_list
        if not tool_list.is_empty:
            conversation.check()
        tokens = tool_list.own_tokens + self._other_tokens
        self._meter.record_request(
            self._request_parts(),
            definition_tokens=tokens,
            catalog_tokens=tool_list.searchable.tokens if tool_list.searchable else 0,
        )
        requested = Requested(
            turn=self.turn,
            tools=tool_list.tool_names,
            proxies=tool_list.proxies,
            definition_tokens=tokens,
        )
        self._emit(requested)
        body = conversation.body(self.turn, tool_list)
        self.trace.begin_turn(is_stream=body.get("stream") is True)
        return body

    def record_reply(self, reply: R) -> None:
        """Record the model's reply, and end the span of the turn."""
        self._meter.record_reply(reply.usage)
        self.trace.record_reply(reply, self.conversation.finish_reasons(reply))

    def _request_parts(self) -> list[JsonItem]:
        return [*self.tool_list.tools, *self.conversation.messages()]

    async def _build_tool_list(self) -> ToolList:
        conversation = self.conversation
        request = ToolListRequest(
            messages=conversation.messages(),
            host_tools=conversation.host_tools,
            wire_format=conversation.wire_format,
            model=conversation.model,
            required=conversation.required_tools,
            recalled=conversation.recalled,
            caller=self._context.caller,
        )
        return await self._context.tool_lists.build(request)

    def _check_limits(self) -> None:
        options = self._options
        elapsed = time.monotonic() - self._started
        limits = (
            ("max_turns", options.max_turns, self.turn),
            ("max_consecutive_errors", options.max_consecutive_errors, self._meter.failed_turns),
            ("max_tokens", options.max_tokens, self._meter.tokens),
            ("max_seconds", options.max_seconds, elapsed),
        )
        for name, limit, used in limits:
            if limit and used >= limit:
                self.accounting = spent = self._meter.accounting(
                    self.conversation.new_messages, response_id=""
                )
                raise LoopError(self.turn, limit=name, messages=spent.messages, accounting=spent)

    def retry_without_native(self, error: str) -> bool:
        """End the failed turn. Return True if it can be repeated without native tool search.

        The text *error* must show that the service does not support native tool search.
        """
        is_refused = self.tool_list.mode == "native" and "tool_search" in error
        self.trace.end_turn("BadRequestError")
        return is_refused and self._context.tool_lists.disable_native(self.conversation.model)

    def handle_reply(self, reply: R) -> R | None:
        """Return the reply for the caller, or None if `answer_calls` must answer all calls first.

        A reply that the gateway cannot read is returned unchanged, without accounting.
        """
        if not self.conversation.is_readable(reply):
            return reply
        self.record_reply(reply)
        if self._options.max_tokens is not None and not total_tokens(reply.usage):
            # Most streams do not report a usage.
            content = reply.model_dump(mode="json", exclude_unset=True, warnings=False)
            self._meter.estimated_tokens += json_tokens([*self._request_parts(), content])
        calls = self.conversation.calls(reply)
        ours = self.our_calls(calls)
        if len(ours) == len(calls) > 0:
            return None
        self._pending = ours
        return self._finish(reply)

    def our_calls(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Return the calls that the gateway answers, not the host."""
        is_ours = self.tool_list.is_ours
        return tuple(call for call in calls if not call.foreign and is_ours(call.name))

    async def answer_calls(self, reply: R) -> None:
        """Run the gateway calls in *reply*. Add the reply and the answers to the conversation."""
        calls = self.our_calls(self.conversation.calls(reply))
        answers = await self._answer(calls) if calls else []
        self.conversation.add_turn(reply, answers, self._load_tools)

    def store(self, final: R, *, opened_as: str = "") -> None:
        """Store the state of the conversation after the caller's reply."""
        if not self.tool_list.is_empty and self.accounting is not None:
            self.conversation.store(final, self._pending, opened_as=opened_as)

    def _load_tools(self, names: Sequence[str]) -> Sequence[JsonItem]:
        loaded = loaded_tools(self.tool_list, names)
        self._other_tokens += sum(map(json_tokens, loaded))
        return loaded

    async def _answer(self, calls: Sequence[ToolCall]) -> list[ToolAnswer]:
        semaphore = asyncio.Semaphore(self._options.max_parallel_calls)
        tools, shown = self.tool_list, None
        if tools.mode == "stable":
            shown = described_tools(self.conversation.messages(), tools.names)

        async def answer(call: ToolCall) -> ToolAnswer:
            async with semaphore:
                return await handle_call(
                    self._gateway,
                    tools,
                    call,
                    approve=self._context.approve,
                    shown=shown,
                    task=self._task,
                )

        with self.trace.within():
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(answer(call)) for call in calls]
        answers = [task.result() for task in tasks]
        self._meter.record_answers(answers)
        for done in answers:
            self._emit(event_of(done))
        return answers

    def _finish(self, reply: R) -> R:
        conversation = self.conversation
        if not self.tool_list.is_empty:
            # Choices after the first may contain gateway calls too.
            reply = conversation.without_our_calls(reply, self.tool_list.is_ours)
        response_id = "" if conversation.wire_format == "chat" else str(reply.id or "")
        self.accounting = accounting = self._meter.accounting(
            conversation.new_messages, response_id=response_id
        )
        text = conversation.text(reply)
        self._emit(Replied(turn=self.turn, text=text, accounting=accounting))
        if self._meter.usage is not None and self.turn > 1:
            reply = reply.model_copy(update={"usage": self._meter.usage})
        attach(reply, accounting)
        return reply

    def _emit(self, event: Event) -> None:
        if self._context.observer is not None:
            self._context.observer(event)
