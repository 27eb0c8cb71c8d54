"""The conversation behind one call of the wrapper, without any I/O to the model.

    request() -> the driver asks the model -> settle(reply) -> answer() -> request() …

* Sync and async, streaming or not, either wire format: all drive this same loop.
* Calls of ours are executed here and answered once each, in order; calls of the host's tools go
  back to the caller. A turn that mixes both goes back with the host's calls alone.
* Whatever limit is reached is an error that says which; nothing is cut off in silence.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Generic, Self

from gateway.chat.accounting import Accounting, attach
from gateway.chat.events import Called, Event, Observer, Replied, Requested, Searched
from gateway.chat.meter import Meter
from gateway.chat.wire import Plain, R, Talk
from gateway.discovery.approval import Approve
from gateway.discovery.call_handler import Answer, AnswerOptions, ToolCall, answer
from gateway.discovery.definitions import tokens_of
from gateway.discovery.meta_tools import MetaNames
from gateway.discovery.tool_list import Asked, Discovery, Offer
from gateway.discovery.window import told_before
from gateway.discovery.wire_formats import NATIVE_SEARCH
from gateway.errors import LoopError
from gateway.gateway import Gateway

_NOTHING = Offer(
    tools=(), names=MetaNames(search="", call=""), host=frozenset(), proxies=(), empty=True
)


class Loop(Generic[R]):
    """One call of the wrapper, from the caller's request to the reply."""

    def __init__(
        self,
        gateway: Gateway,
        discovery: Discovery,
        talk: Talk[R],
        *,
        observer: Observer | None = None,
        approve: Approve | None = None,
    ) -> None:
        self.talk = talk
        self.discovery = discovery
        self._gateway = gateway
        self._observer = observer
        self._approve = approve
        self._offer = _NOTHING
        self._calls: tuple[ToolCall, ...] = ()
        self._owed: tuple[ToolCall, ...] = ()
        self._reply: R | None = None
        self._meter = Meter()
        self._host_tokens: int | None = None
        self._loaded_tokens = 0
        self._catalog_tokens = 0
        self._span = gateway.telemetry.begin("invoke_agent")
        self._began = time.monotonic()
        self._task = uuid.uuid4().hex
        self._ended = False
        self.accounting: Accounting | None = None
        """What the call was, once there is a reply for the caller."""

    def __enter__(self) -> Self:
        """Begin; the end of the block ends the conversation's span."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """End, and say what failed."""
        if kind is not None and kind is not GeneratorExit:
            self._gateway.telemetry.fail(self._span, kind.__name__)
        self.end()

    def end(self) -> None:
        """End the conversation's span and count its turns. Twice is harmless."""
        if self._ended:
            return
        self._ended = True
        telemetry, meter = self._gateway.telemetry, self._meter
        self._span.set_attribute("gateway.chat.turns", meter.turns)
        self._span.set_attribute("gateway.chat.searches", meter.searches)
        self._span.set_attribute("gateway.chat.errors", meter.errors)
        self._span.set_attribute("gateway.chat.definition_tokens", meter.definition_tokens)
        told = self.accounting
        if told is not None:
            self._span.set_attribute("gateway.chat.cached_tokens", told.cached_tokens)
        if told is not None and not self._offer.empty:
            telemetry.record("gateway.chat.definition.share", told.definition_share)
            telemetry.record("gateway.chat.prefix.stability", told.prefix_stability)
        telemetry.record("gateway.chat.turns", meter.turns)
        self._span.end()

    @contextmanager
    def unless_it_fails(self) -> Iterator[None]:
        """End at once if the block raises; go on otherwise: a stream ends by itself."""
        with ExitStack() as stack:
            stack.push(self)
            yield
            stack.pop_all()

    @property
    def turn(self) -> int:
        """Requests made so far."""
        return self._meter.turns

    @property
    def offer(self) -> Offer:
        """What the last request offered."""
        return self._offer

    async def request(self) -> dict[str, object]:
        """Give the body of the next request to the model.

        Raises:
            LoopError: If a limit of `ChatOptions` is reached.
            InvalidRequestError: If the request cannot work with discovery.
        """
        self._check_limits()
        asked = self._asked()
        with self._gateway.telemetry.within(self._span):
            self._offer = await self.discovery.offer(asked)
        if self.talk.owed and not self.turn and not self._offer.empty:
            self.talk.repay(await self._answers(self.talk.owed), self._loaded)
            asked = self._asked()
            self._offer = await self.discovery.offer(asked)
        return self._requested(asked)

    def request_now(self) -> dict[str, object] | None:
        """Give the same body at once; None if something must be awaited.

        Raises:
            LoopError: As `request` does.
            InvalidRequestError: Likewise.
        """
        self._check_limits()
        asked = self._asked()
        offer = None if self.talk.owed else self.discovery.offer_now(asked)
        if offer is None:
            return None
        self._offer = offer
        return self._requested(asked)

    def _asked(self) -> Asked:
        talk = self.talk
        return Asked(
            messages=talk.history(),
            host_tools=talk.host_tools,
            form=talk.form,
            model=talk.model,
            demanded=talk.demanded,
            recalled=talk.recalled,
        )

    def _requested(self, asked: Asked) -> dict[str, object]:
        talk, offer = self.talk, self._offer
        if not offer.empty:
            talk.refuse()
            self._catalog_tokens = self.discovery.catalog_tokens()
        if self._host_tokens is None:
            self._host_tokens = tokens_of(list(talk.host_tools)) if talk.host_tools else 0
        tokens = offer.own_tokens + self._host_tokens + self._loaded_tokens
        self._meter.sent(offer.tools, asked.messages, tokens)
        if self._observer is not None:
            self._observer(
                Requested(
                    turn=self.turn,
                    tools=offer.tool_names,
                    proxies=offer.proxies,
                    definition_tokens=tokens,
                )
            )
        return talk.body(self.turn, offer)

    def _check_limits(self) -> None:
        options, meter = self._gateway.options.chat, self._meter
        most = options.max_consecutive_errors
        if meter.turns >= options.max_turns:
            raise LoopError(meter.turns)
        if most and meter.failed_turns >= most:
            raise LoopError(meter.turns, limit="max_consecutive_errors")
        if options.max_tokens is not None and meter.tokens >= options.max_tokens:
            raise LoopError(meter.turns, limit="max_tokens")
        spent = time.monotonic() - self._began
        if options.max_seconds is not None and spent >= options.max_seconds:
            raise LoopError(meter.turns, limit="max_seconds")

    def settle(self, reply: R) -> R | None:
        """Take the model's reply: give what goes to the caller, or None if calls wait. What is no
        reply goes to the caller as it is, without accounting.
        """
        if not self.talk.readable(reply):
            return reply
        usage = self.talk.metered(reply)
        self._meter.replied(usage)
        if usage is None and self._gateway.options.chat.max_tokens is not None:
            self._meter.estimated += self._estimated(reply)
        calls = self.talk.calls(reply)
        ours = self.ours(calls)
        if len(ours) == len(calls) > 0:
            self._calls, self._reply = ours, reply
            return None
        self._owed = ours
        return self._final(reply)

    def _estimated(self, reply: R) -> int:
        """Estimate what the service does not report, as in most streams."""
        said = reply.model_dump(mode="json", exclude_unset=True)
        return tokens_of([list(self._offer.tools), list(self.talk.history()), said])

    def ours(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Give those of *calls* that we answer."""
        mine = self._offer.is_ours
        functions = [call for call in calls if not call.foreign]
        return tuple(
            call for call in functions if mine(NATIVE_SEARCH if call.native else call.name)
        )

    async def run(self, reply: R, calls: Sequence[ToolCall]) -> None:
        """Run *calls* of *reply*, and add it with the answers to the conversation."""
        answers = await self._answers(calls) if calls else []
        self.talk.grow(reply, answers, self._loaded)

    def _loaded(self, names: Sequence[str]) -> Sequence[Plain]:
        self._loaded_tokens += self.discovery.loaded_tokens(names)
        return self.discovery.loaded(names)

    async def answer(self) -> None:
        """Run the calls that wait, and add them with their answers to the conversation."""
        if self._reply is not None:
            await self.run(self._reply, self._calls)
            self._calls, self._reply = (), None

    def keep(self, final: R, *, opened: str = "") -> None:
        """Remember where the conversation stands after *final*; see `Talk.keep`."""
        if not self._offer.empty and self.accounting is not None:
            self.talk.keep(final, self._owed, opened=opened)

    async def take(self, reply: R) -> R | None:
        """Settle *reply* and answer what waits: None if the loop goes on."""
        final = self.settle(reply)
        await self.answer()
        if final is not None:
            self.keep(final)
        return final

    async def _answers(self, calls: Sequence[ToolCall]) -> list[Answer]:
        options = self._gateway.options.chat
        gate = asyncio.Semaphore(options.max_parallel_calls)
        answering = AnswerOptions(
            schemas=self._offer.mode == "stable",
            shown=self._shown(),
            count=self.discovery.counter(self.talk.model),
            told=self.discovery.told,
            approve=self._approve,
            by_name=self._offer.mode in {"proxy", "stable"},
            task=self._task,
        )

        async def one(call: ToolCall) -> Answer:
            async with gate:
                return await answer(
                    self._gateway,
                    self._offer.names,
                    call,
                    hidden=self._offer.host,
                    max_result_chars=options.max_result_chars,
                    answering=answering,
                )

        with self._gateway.telemetry.within(self._span):
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(call)) for call in calls]
        answers = [task.result() for task in tasks]
        self._meter.answered(answers)
        for done in answers:
            self._tell(_event(done))
        return answers

    def _shown(self) -> frozenset[str]:
        """Give the found tools whose definitions the model has."""
        if self._offer.mode == "stable":
            return told_before(self.talk.history(), self._offer.names)
        return frozenset(self._offer.proxies)

    def _final(self, reply: R) -> R:
        meter = self._meter
        # Another choice than the first may hold calls of ours.
        reply = self.talk.trimmed(reply, self._offer.is_ours) if not self._offer.empty else reply
        gained = self.talk.gained()
        self.accounting = told = meter.accounting(
            catalog_tokens=self._catalog_tokens,
            messages=gained,
            response_id=str(getattr(reply, "id", "") or "") if self.talk.form != "chat" else "",
        )
        self._tell(
            Replied(
                turn=self.turn,
                text=self.talk.text(reply),
                prompt_tokens=told.prompt_tokens,
                completion_tokens=told.completion_tokens,
                messages=gained,
                accounting=told,
            )
        )
        if meter.usage is not None and meter.turns > 1:
            reply = reply.model_copy(update={"usage": meter.usage})
        attach(reply, told)
        return reply

    def _tell(self, event: Event) -> None:
        if self._observer is not None:
            self._observer(event)


def _event(done: Answer) -> Event:
    if done.search is not None:
        return Searched(call_id=done.call.id, queries=done.queries, result=done.search)
    return Called(
        call_id=done.call.id,
        tool=done.tool,
        arguments=done.arguments or {},
        result=done.result,
        error=done.error,
    )
