"""The loop behind one call of the wrapper, without any I/O to the model.

    next_request() -> (the model) -> handle_reply(reply) -> answer_calls() -> next_request() …

* Sync and async, streaming or not, either wire format: all use this same loop.
* Calls of ours are executed here and answered once each, in order; calls of the host's tools go
  back to the caller. A turn that mixes both goes back with the host's calls alone.
* A limit that is reached is an error that says which; nothing is cut off in silence.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic

from gateway.chat.accounting import Accounting, UsageMeter, attach
from gateway.chat.conversation import Conversation, ConversationStore, JsonItem, R
from gateway.chat.events import Called, Event, Observer, Replied, Requested, Searched
from gateway.discovery.approval import Approve
from gateway.discovery.call_handler import AnswerOptions, ToolAnswer, ToolCall, handle_call
from gateway.discovery.meta_tools import MetaNames
from gateway.discovery.tool_list import ToolList, ToolListBuilder, ToolListRequest
from gateway.discovery.window import described_tools
from gateway.discovery.wire_formats import NATIVE_SEARCH
from gateway.errors import ConfigError, LoopError
from gateway.gateway import Gateway
from gateway.runtime.text import json_tokens
from gateway.sync import SyncGateway

_NO_TOOLS = ToolList(tools=(), names=MetaNames(search="", call=""), is_empty=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientContext:
    """What all calls of one client share."""

    gateway: Gateway
    tool_lists: ToolListBuilder
    store: ConversationStore
    observer: Observer | None = None
    approve: Approve | None = None

    @classmethod
    def create(
        cls, gateway: Gateway, *, observer: Observer | None = None, approve: Approve | None = None
    ) -> ClientContext:
        """Make the context of one client.

        Raises:
            ConfigError: If *gateway* is no `Gateway`.
        """
        if not isinstance(gateway, Gateway):
            hint = ": pass its .gateway" if isinstance(gateway, SyncGateway) else ""
            raise ConfigError(f"gateway must be a Gateway, got {type(gateway).__name__}{hint}")
        return cls(
            gateway=gateway,
            tool_lists=ToolListBuilder(gateway),
            store=ConversationStore(),
            observer=observer,
            approve=approve,
        )

    def begin(self, conversation: Conversation[Any]) -> Loop[Any]:
        """Begin a call."""
        return Loop(self, conversation)


class Loop(Generic[R]):
    """One call of the wrapper, from the caller's request to the reply."""

    def __init__(self, context: ClientContext, conversation: Conversation[R]) -> None:
        self.conversation = conversation
        self.tool_list = _NO_TOOLS
        """The tools of the last request."""
        self.accounting: Accounting | None = None
        """What the call was, once there is a reply for the caller."""
        self._context = context
        self._gateway = context.gateway
        self._options = context.gateway.options.chat
        self._calls: tuple[ToolCall, ...] = ()
        self._reply: R | None = None
        """The reply whose calls wait; None if none do."""
        self._pending: tuple[ToolCall, ...] = ()
        self._meter = UsageMeter()
        host_tools = list(conversation.host_tools)
        self._host_tokens = json_tokens(host_tools) if host_tools else 0
        self._loaded_tokens = 0
        self._catalog_tokens = 0
        self._span = self._gateway.telemetry.begin("invoke_agent")
        self._started = time.monotonic()
        self._task = uuid.uuid4().hex
        self._ended = False

    @contextmanager
    def end_on_error(self) -> Iterator[None]:
        """End if the block raises; go on otherwise: a stream ends by itself."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, GeneratorExit):
                self._gateway.telemetry.fail(self._span, type(error).__name__)
            self.end()
            raise

    @contextmanager
    def end_after(self) -> Iterator[None]:
        """End when the block does."""
        with self.end_on_error():
            yield
        self.end()

    def end(self) -> None:
        """End the call's span and count its turns. Twice is harmless."""
        if self._ended:
            return
        self._ended = True
        telemetry, meter, accounting = self._gateway.telemetry, self._meter, self.accounting
        self._span.set_attribute("gateway.chat.turns", meter.turns)
        self._span.set_attribute("gateway.chat.searches", meter.searches)
        self._span.set_attribute("gateway.chat.errors", meter.errors)
        self._span.set_attribute("gateway.chat.definition_tokens", meter.definition_tokens)
        if accounting is not None:
            self._span.set_attribute("gateway.chat.cached_tokens", accounting.cached_tokens)
            if not self.tool_list.is_empty:
                telemetry.record("gateway.chat.definition.share", accounting.definition_share)
                telemetry.record("gateway.chat.prefix.stability", accounting.prefix_stability)
        telemetry.record("gateway.chat.turns", meter.turns)
        self._span.end()

    @property
    def turn(self) -> int:
        """Requests made so far."""
        return self._meter.turns

    async def next_request(self) -> dict[str, object]:
        """Return the body of the next request to the model.

        Raises:
            LoopError: If a limit of `ChatOptions` is reached.
            InvalidRequestError: If the request cannot work with discovery.
        """
        self._check_limits()
        conversation = self.conversation
        with self._gateway.telemetry.within(self._span):
            self.tool_list = await self._build_tool_list()
            if conversation.pending_calls and not self.turn and not self.tool_list.is_empty:
                answers = await self._answer(conversation.pending_calls)
                conversation.answer_pending(answers, self._load_tools)
                self.tool_list = await self._build_tool_list()
        tool_list = self.tool_list
        if not tool_list.is_empty:
            conversation.check()
            self._catalog_tokens = self._context.tool_lists.catalog_tokens()
        tokens = tool_list.own_tokens + self._host_tokens + self._loaded_tokens
        self._meter.record_request(tool_list.tools, conversation.messages(), tokens)
        if self._context.observer is not None:
            event = Requested(
                turn=self.turn,
                tools=tool_list.tool_names,
                proxies=tool_list.proxies,
                definition_tokens=tokens,
            )
            self._context.observer(event)
        return conversation.body(self.turn, tool_list)

    async def _build_tool_list(self) -> ToolList:
        conversation = self.conversation
        return await self._context.tool_lists.build(
            ToolListRequest(
                messages=conversation.messages(),
                host_tools=conversation.host_tools,
                wire_format=conversation.wire_format,
                model=conversation.model,
                required=conversation.required_tools,
                recalled=conversation.recalled,
            )
        )

    def _check_limits(self) -> None:
        options, meter = self._options, self._meter
        max_errors = options.max_consecutive_errors
        if meter.turns >= options.max_turns:
            raise LoopError(meter.turns)
        if max_errors and meter.failed_turns >= max_errors:
            raise LoopError(meter.turns, limit="max_consecutive_errors")
        if options.max_tokens is not None and meter.tokens >= options.max_tokens:
            raise LoopError(meter.turns, limit="max_tokens")
        elapsed = time.monotonic() - self._started
        if options.max_seconds is not None and elapsed >= options.max_seconds:
            raise LoopError(meter.turns, limit="max_seconds")

    def retry_without_native(self, error: str) -> bool:
        """Return whether the same turn may be tried again without the service's own tool search,
        which it has refused by *error*.
        """
        is_refused = self.tool_list.mode == "native" and "tool_search" in error
        return is_refused and self._context.tool_lists.disable_native(self.conversation.model)

    def handle_reply(self, reply: R) -> R | None:
        """Return what goes to the caller, or None if calls wait for `answer_calls`.

        What is no reply goes to the caller as it is, without accounting.
        """
        if not self.conversation.is_readable(reply):
            return reply
        usage = self.conversation.usage(reply)
        self._meter.record_reply(usage)
        if usage is None and self._options.max_tokens is not None:
            # Most streams report none.
            content = reply.model_dump(mode="json", exclude_unset=True)
            request = [list(self.tool_list.tools), list(self.conversation.messages())]
            self._meter.estimated_tokens += json_tokens([*request, content])
        calls = self.conversation.calls(reply)
        ours = self.our_calls(calls)
        if len(ours) == len(calls) > 0:
            self._calls, self._reply = ours, reply
            return None
        self._pending = ours
        return self._finish(reply)

    def our_calls(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Return those of *calls* that we answer."""
        return tuple(
            call
            for call in calls
            if not call.foreign
            and self.tool_list.is_ours(NATIVE_SEARCH if call.native else call.name)
        )

    async def answer_calls(self) -> None:
        """Run the calls that wait, and add them with their answers to the conversation."""
        if self._reply is not None:
            await self.run_turn(self._reply, self._calls)
            self._calls, self._reply = (), None

    async def run_turn(self, reply: R, calls: Sequence[ToolCall]) -> None:
        """Run *calls* of *reply*, and add it with the answers to the conversation."""
        answers = await self._answer(calls) if calls else []
        self.conversation.add_turn(reply, answers, self._load_tools)

    def store(self, final: R, *, opened_as: str = "") -> None:
        """Store the state of the conversation after *final*; see `Conversation.store`."""
        if not self.tool_list.is_empty and self.accounting is not None:
            self.conversation.store(final, self._pending, opened_as=opened_as)

    def _load_tools(self, names: Sequence[str]) -> Sequence[JsonItem]:
        loaded = self._context.tool_lists.loaded_tools(names)
        # They are added to every request from now on.
        self._loaded_tokens += sum(map(json_tokens, loaded))
        return loaded

    async def _answer(self, calls: Sequence[ToolCall]) -> list[ToolAnswer]:
        semaphore = asyncio.Semaphore(self._options.max_parallel_calls)
        options = self._answer_options()

        async def answer(call: ToolCall) -> ToolAnswer:
            async with semaphore:
                return await handle_call(self._gateway, self.tool_list.names, call, options)

        with self._gateway.telemetry.within(self._span):
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(answer(call)) for call in calls]
        answers = [task.result() for task in tasks]
        self._meter.record_answers(answers)
        for done in answers:
            self._emit(_event(done))
        return answers

    def _answer_options(self) -> AnswerOptions:
        tool_list, is_stable = self.tool_list, self.tool_list.mode == "stable"
        shown = frozenset(tool_list.proxies)
        if is_stable:
            shown = described_tools(self.conversation.messages(), tool_list.names)
        return AnswerOptions(
            schemas=is_stable,
            shown=shown,
            hidden=tool_list.host,
            max_result_chars=self._options.max_result_chars,
            approve=self._context.approve,
            by_name=tool_list.mode in {"proxy", "stable"},
            task=self._task,
        )

    def _finish(self, reply: R) -> R:
        meter, conversation = self._meter, self.conversation
        if not self.tool_list.is_empty:
            # Another choice than the first may hold calls of ours.
            reply = conversation.without_our_calls(reply, self.tool_list.is_ours)
        messages, is_chat = conversation.new_messages(), conversation.wire_format == "chat"
        self.accounting = accounting = meter.accounting(
            catalog_tokens=self._catalog_tokens,
            messages=messages,
            response_id="" if is_chat else str(getattr(reply, "id", "") or ""),
        )
        self._emit(
            Replied(
                turn=self.turn,
                text=conversation.text(reply),
                prompt_tokens=accounting.prompt_tokens,
                completion_tokens=accounting.completion_tokens,
                messages=messages,
                accounting=accounting,
            )
        )
        if meter.usage is not None and meter.turns > 1:
            reply = reply.model_copy(update={"usage": meter.usage})
        attach(reply, accounting)
        return reply

    def _emit(self, event: Event) -> None:
        if self._context.observer is not None:
            self._context.observer(event)


def _event(answer: ToolAnswer) -> Event:
    if answer.search is not None:
        return Searched(call_id=answer.call.id, queries=answer.queries, result=answer.search)
    return Called(
        call_id=answer.call.id,
        tool=answer.tool,
        arguments=answer.arguments or {},
        result=answer.result,
        error=answer.error,
    )
