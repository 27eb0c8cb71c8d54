"""What a server asks while a call runs, and the way back to the caller.

* Since 2026-07-28 the answer to a call may be that input is required: the caller is asked, and the
  call is sent again with what it said, round by round.
* Before, a server sends a request of its own, which names no call. The caller of the calls under
  way answers it, if all of them have the same one; otherwise nobody could tell whose it is.
* While a caller is asked, the call's own time limit rests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

from mcp import types
from mcp.shared.dispatcher import ProgressFnT

from gateway.errors import CallerError
from gateway.options import UpstreamOptions
from gateway.upstream.caller import CALLER, Caller, check

T = TypeVar("T")
_MAX_ROUNDS = 16
_PATIENCE_S = 0.05
"""How long a server that asks for nothing but patience is left alone."""
_TOLD_S = 1.0
"""How long after an answer its caller may take to hear the progress before it."""

Send = Callable[[types.InputResponses | None, str | None], Awaitable[T | types.InputRequiredResult]]


@dataclass(slots=True, eq=False)
class Call:
    """One call under way."""

    caller: Caller | None
    """Whoever waits for it; None if nobody can be asked."""
    limit: asyncio.Timeout
    limit_s: float
    asking: int = field(default=0)
    telling: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while progress is passed on, so that it arrives in order."""

    async def tell(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass progress on to the caller, after all that came before."""
        if self.caller is not None:
            async with self.telling:
                await self.caller.progress(progress, total, message)

    async def told(self, within_s: float = _TOLD_S) -> None:
        """Wait until all progress is passed on: after the answer it would be lost.

        A caller that does not take it in time loses the rest of the progress, not the answer.
        """
        if not self.limit.expired():
            self.limit.reschedule(None)
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s), self.telling:
                pass

    def pause(self) -> None:
        """Let its time limit rest."""
        self.asking += 1
        self.limit.reschedule(None)

    def go_on(self) -> None:
        """Begin its time limit anew, once nobody is asked any more."""
        self.asking -= 1
        if not self.asking and not self.limit.expired():
            self.limit.reschedule(asyncio.get_running_loop().time() + self.limit_s)


class Backchannel:
    """The calls under way on one connection, and who waits for them.

    Args:
        server: For messages.
        options: How long a call and an answer may take.
    """

    def __init__(self, server: str, options: UpstreamOptions) -> None:
        self.server = server
        self._options = options
        self._calls: list[Call] = []

    @asynccontextmanager
    async def call(self, limit_s: float) -> AsyncIterator[Call]:
        """Hold a call of the current caller, for at most *limit_s* without the time of asking."""
        async with asyncio.timeout(limit_s) as limit:
            call = Call(caller=CALLER.get(), limit=limit, limit_s=limit_s)
            self._calls.append(call)
            try:
                yield call
                await call.told()
            finally:
                self._calls.remove(call)

    @staticmethod
    def listener(call: Call) -> ProgressFnT | None:
        """Give what hears of the progress of *call*; None if nobody wants to."""
        return call.tell if call.caller is not None and call.caller.listens else None

    async def rounds(self, call: Call, send: Send[T]) -> T:
        """Send a request until its answer is no longer that input is required.

        Raises:
            CallerError: What is asked for cannot be had.
        """
        answer = await send(None, None)
        for _ in range(_MAX_ROUNDS):
            if not isinstance(answer, types.InputRequiredResult):
                return answer
            responses: types.InputResponses | None = None
            if answer.input_requests:
                responses = await self._ask(call, answer.input_requests)
            else:
                await asyncio.sleep(_PATIENCE_S)
            answer = await send(responses, answer.request_state)
        if isinstance(answer, types.InputRequiredResult):
            raise CallerError(self.server, f"asks again after {_MAX_ROUNDS} answers", needed={})
        return answer

    async def answer(self, request: types.InputRequest) -> types.InputResponse | types.ErrorData:
        """Answer a request that the server sent of its own."""
        try:
            return (await self._ask(self._whose(), {"asked": request}))["asked"]
        except CallerError as error:
            # Not INVALID_REQUEST: from a server that passes it on, that would mean a lost session.
            return types.ErrorData(code=types.INVALID_PARAMS, message=error.detail)

    def _whose(self) -> Call | None:
        waiting = [call for call in self._calls if call.caller is not None]
        if len({call.caller.who for call in waiting if call.caller is not None}) > 1:
            told = "asks for input while several clients wait: nobody can tell whom it means"
            raise CallerError(self.server, told, needed={})
        return waiting[-1] if waiting else None

    async def _ask(
        self, call: Call | None, requests: Mapping[str, types.InputRequest]
    ) -> types.InputResponses:
        caller = call.caller if call is not None else None
        for request in requests.values():
            check(self.server, caller, request)
        if call is None or caller is None:
            raise CallerError(self.server, "asks for nothing that is known", needed={})
        limit_s = self._options.ask_timeout_s
        call.pause()
        try:
            async with asyncio.timeout(limit_s):
                return await caller.ask(requests)
        except TimeoutError as error:
            told = f"the client did not answer what it asks for within {limit_s} s"
            raise CallerError(self.server, told, needed={}) from error
        finally:
            call.go_on()
