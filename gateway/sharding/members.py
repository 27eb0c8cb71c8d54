"""The parts of a catalog: which of them answer, and what they were compiled with.

A part that does not answer is skipped for a while; the others go on. For one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TypeVar

from gateway.errors import Failed, GatewayError, attempt_within
from gateway.index.statistics import CatalogStatistics
from gateway.runtime.cache import Clock
from gateway.sharding.outline import CatalogOutline
from gateway.sharding.values import Part, PartChangedError
from gateway.types import Diagnostic

T = TypeVar("T")
_COMPILE_S = 3600.0
"""A large index takes minutes."""


class PartLostError(GatewayError):
    """A part that answered does not answer any more."""


class Members:
    """All parts of one catalog.

    Args:
        parts: Their order decides nothing.
        timeout_s: How long one may take to answer; of its compilation nothing is said.
        retry_s: After how long one that did not answer is asked again.
        clock: Seconds that only grow.
    """

    def __init__(
        self, parts: Sequence[Part], *, timeout_s: float, retry_s: float, clock: Clock
    ) -> None:
        self._parts = parts
        self._timeout_s = timeout_s
        self._retry_s = retry_s
        self._clock = clock
        self._failures: dict[int, tuple[float, str]] = {}
        """When to ask a part again, and why it is skipped."""
        self._adopted: frozenset[int] = frozenset()
        """The parts that were compiled with the statistics of the outline."""
        self._lock = asyncio.Lock()
        self._retry: asyncio.Task[None] | None = None
        self.outline: CatalogOutline | None = None
        """None before the first `synchronize`, and as long as no part answers."""
        self.key = ""
        """The name of the statistics of the outline."""

    async def ready(self) -> CatalogOutline | None:
        """Return the outline; make it first if there is none.

        Parts that did not answer when it was made are asked again in the background.
        """
        if self.outline is None:
            await self.synchronize(self.key)
        now = self._clock()
        due = {part for part, (until, _) in self._failures.items() if until <= now}
        for part in due & self._adopted:
            # It is asked again by this search.
            del self._failures[part]
        if due - self._adopted and (self._retry is None or self._retry.done()):
            self._retry = asyncio.create_task(self.synchronize(self.key))
        return self.outline

    async def synchronize(self, key: str) -> None:
        """Count all parts anew and let each compile its index with the sums.

        Args:
            key: The statistics that are of no use; if there are others by now, nothing is done.
        """
        async with self._lock:
            if self.outline is not None and self.key != key:
                return
            every = range(len(self._parts))
            counted = await self._ask(every, lambda _, part: part.statistics(), _COMPILE_S)
            whole = CatalogStatistics.total(list(counted.values()))
            adopted = await self._ask(counted, lambda _, part: part.adopt(whole), _COMPILE_S)
            self._adopted = frozenset(adopted)
            self.outline = CatalogOutline.of(whole) if adopted else None
            self.key = whole.key

    async def ask(
        self, work: Callable[[int, Part], Awaitable[T]], among: Collection[int] | None = None
    ) -> dict[int, T]:
        """Ask parts at the same time.

        Args:
            work: Asks one of them; it is given its number too.
            among: Their numbers; None asks all that are not skipped.

        Returns:
            The answers by number of the part.

        Raises:
            PartChangedError: One is not as the outline has it.
            PartLostError: One does not answer; it is skipped from now on.
        """
        among = self._adopted - self._failures.keys() if among is None else among
        answers = await self._ask(among, work, self._timeout_s)
        if len(answers) < len(among):
            raise PartLostError("a part of the catalog does not answer any more")
        return answers

    @property
    def notes(self) -> list[Diagnostic]:
        """Which parts are missing, and why."""
        return [
            Diagnostic(
                stage="catalog",
                code="part_unavailable",
                detail=f"{self._parts[part].name}: {reason}",
            )
            for part, (_, reason) in sorted(self._failures.items())
        ]

    async def _ask(
        self, among: Collection[int], work: Callable[[int, Part], Awaitable[T]], limit_s: float
    ) -> dict[int, T]:
        timeout = GatewayError(f"it did not answer within {limit_s:g} s")
        numbers = sorted(among)
        answers = await asyncio.gather(
            *(attempt_within(work(each, self._parts[each]), limit_s, timeout) for each in numbers)
        )
        found: dict[int, T] = {}
        changed: PartChangedError | None = None
        for number, answer in zip(numbers, answers, strict=True):
            if not isinstance(answer, Failed):
                found[number] = answer
                self._failures.pop(number, None)
            elif isinstance(answer.error, PartChangedError):
                changed = answer.error
            else:
                self._failures[number] = self._clock() + self._retry_s, answer.reason
        if changed is not None:
            raise changed
        return found

    async def close(self) -> None:
        """Stop asking in the background."""
        if self._retry is not None:
            self._retry.cancel()
            await asyncio.gather(self._retry, return_exceptions=True)
