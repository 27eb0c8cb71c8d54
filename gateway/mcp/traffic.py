"""What one connection may send, counted before it is parsed, for pipes and HTTP alike.

* Bytes: a server that sends faster than its rate is read more slowly; nothing is lost.
* Messages: each request of ours allows for one. A server that sends more than its rate unasked is
  disconnected, and so is one that does not read the answers to its own requests.
* Values: a message of too many JSON values is never parsed. A few megabytes of them would take
  hundreds in memory.

Counts stand for the time that reading takes: they say the same on every machine.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gateway.options import UpstreamOptions
from gateway.runtime.cache import Clock

_BURST_S = 4
"""For how many seconds' worth of its rates a server may send at once."""
_SLOW_SHARE = 0.75
"""With less left of that, messages are read …"""
_PAUSE_S = 0.001
"""… so far apart."""
_MAX_UNREAD_ANSWERS = 100
_LAST_LINES = 5
_STEP = 1 << 16
_NO_STRUCTURE = bytes(set(range(256)) - set(b'"{[,\n\r'))


class Bucket:
    """A token bucket: *rate* a second, and at most *burst* at once."""

    def __init__(self, rate: float, burst: float, *, clock: Clock = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left, self._at = burst, clock()

    def take(self, count: float) -> float:
        """Take *count*, also what is not there; return for how many seconds there is a debt."""
        now = self._clock()
        refilled = self._left + (now - self._at) * self._rate
        self._left, self._at = min(self._burst, refilled) - count, now
        return max(-self._left, 0.0) / self._rate

    @property
    def share_left(self) -> float:
        """The share of *burst* that was left at last; below 0 for a debt."""
        return self._left / self._burst


class LastLines:
    """What a child wrote last to standard error; filled by another thread."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=_LAST_LINES)
        self.ended = threading.Event()


class Traffic:
    """Counts what one connection sends.

    Args:
        options: The limits.
        on_flood: Called once, when the connection has to end.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        options: UpstreamOptions,
        on_flood: Callable[[], None] = lambda: None,
        *,
        clock: Clock = time.monotonic,
    ) -> None:
        self.options = options
        self.flood = ""
        """Why the connection has to end; empty if it may go on."""
        self.status = 0
        """The status of the last HTTP answer, or 0."""
        self.stderr = LastLines()
        self._on_flood = on_flood
        rate, bytes_rate = options.max_messages_per_s, options.max_bytes_per_s
        self._messages = Bucket(rate, _BURST_S * rate, clock=clock)
        self._bytes = Bucket(bytes_rate, _BURST_S * bytes_rate, clock=clock)
        self._answers = 0

    async def pace(self, size: int) -> None:
        """Count *size* bytes; wait as long as the connection is over its rate of them.

        Other connections have their turn in any case.
        """
        await asyncio.sleep(self._bytes.take(size))

    def expect_answer(self) -> None:
        """Allow for one message more: a request was sent."""
        self._messages.take(-1)

    async def admit(self, count: int = 1) -> bool:
        """Count messages that came; return whether the connection may go on.

        What one message starts runs before the next one is read.
        """
        if self._messages.take(count):
            limit = self.options.max_messages_per_s
            self.end(
                f"sent more than {limit} messages a second unasked "
                "(UpstreamOptions.max_messages_per_s)"
            )
        is_slow = self._messages.share_left < _SLOW_SHARE
        await asyncio.sleep(count * _PAUSE_S if is_slow else 0)
        return not self.flood

    @contextmanager
    def answering(self) -> Iterator[bool]:
        """Yield whether an answer to a request of the server may be sent; the block sends it."""
        if self._answers == _MAX_UNREAD_ANSWERS:
            self.end(f"does not read the answers to {_MAX_UNREAD_ANSWERS} requests of its own")
        self._answers += 1
        try:
            yield not self.flood
        finally:
            self._answers -= 1

    def end(self, why: str) -> None:
        """End the connection; the first reason stays."""
        if not self.flood:
            self.flood = why
            self._on_flood()


class ValueCounter:
    """Counts the JSON values of a message roughly, as its bytes come: brackets and commas.

    No string of JSON holds the end of a line: what stands before it hides nothing after it.
    """

    def __init__(self, max_values: int) -> None:
        self._left = max_values
        self._is_escaped = self._in_string = False

    def add(self, chunk: bytes) -> bool:
        """Count *chunk*; return whether the message has too many values."""
        if self._is_escaped:
            chunk = b"_" + chunk[1:]
        text = chunk.replace(b"\\\\", b"")
        self._is_escaped = text.endswith(b"\\")
        text = text.replace(b'\\"', b"").translate(None, _NO_STRUCTURE)
        for number, line in enumerate(text.replace(b"\r", b"\n").split(b"\n")):
            parts = line.split(b'"')
            is_inside = self._in_string and not number
            self._left -= sum(map(len, parts[is_inside::2]))
            self._in_string = is_inside ^ (len(parts) % 2 == 0)
        return self._left < 0


async def has_too_many_values(message: bytes, max_values: int) -> bool:
    """Whether *message* has more JSON values than *max_values*; counted in steps."""
    if len(message) <= max_values:
        return False
    counter = ValueCounter(max_values)
    for at in range(0, len(message), _STEP):
        if counter.add(message[at : at + _STEP]):
            return True
        await asyncio.sleep(0)
    return False
