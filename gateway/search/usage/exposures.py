"""What searches returned, noted in the background: no search waits for the ledger.

It is noted only while rankings are those of an associative memory (`compat`), and as well as can
be: what cannot be written is lost, and so are the oldest if searches are faster than the ledger.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from gateway.runtime.cache import SingleFlight, Submit

WAITING = 1_000
"""How many searches may wait to be noted."""


class Exposures:
    """Collects what searches returned, and notes it in batches.

    Args:
        write: Notes lists of ids; never raises.
        submit: Starts work in the background.
    """

    def __init__(self, write: Callable[..., Awaitable[object]], submit: Submit[object]) -> None:
        self._write = write
        self._flights = SingleFlight[object](submit)
        self._waiting = deque[Sequence[str]](maxlen=WAITING)

    def add(self, ids: Sequence[str]) -> None:
        """Note later that a search returned *ids*."""
        if ids:
            self._waiting.append(ids)
            self._flights.start("show", self._drain)

    async def settle(self) -> None:
        """Wait until everything so far is written."""
        await self._flights.run("show", self._drain)
        while self._waiting:
            await self._flights.run("show", self._drain)

    async def _drain(self) -> None:
        while self._waiting:
            lists = [self._waiting.popleft() for _ in range(len(self._waiting))]
            await self._write(*lists)
