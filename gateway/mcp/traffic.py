"""Limits on the data that a server sends over one connection, counted before parsing.

* Bytes: if a server sends faster than its rate, the gateway reads more slowly.
* Messages: each request of the gateway permits one. A server that sends too many others is
  disconnected. So is a server that does not read the answers to its own requests.
* Values: a message with too many JSON values is not parsed, because a few megabytes of them take
  hundreds of megabytes in memory.
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
"""Amount of data that a server may send at once, in seconds of its full rate."""
_PAUSE_BELOW_SHARE = 0.75
"""Share of the message burst below which the gateway pauses after each message."""
_PAUSE_S = 0.001
"""Length of this pause, in seconds."""
_MAX_UNREAD_ANSWERS = 100
_MAX_LAST_LINES = 5
_STEP_BYTES = 1 << 16
_OTHER_BYTES = bytes(set(range(256)) - set(b'"{[,\n\r'))


class Bucket:
    """A token bucket with *rate* new tokens a second, up to *burst*."""

    def __init__(self, rate: float, burst: float, *, clock: Clock = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._remaining, self._updated_at = burst, clock()

    def take(self, count: float) -> float:
        """Take *count* tokens, even if there are too few.

        Returns:
            Seconds until the missing tokens are refilled; 0 if none are missing.
        """
        now = self._clock()
        refilled = self._remaining + (now - self._updated_at) * self._rate
        self._remaining, self._updated_at = min(self._burst, refilled) - count, now
        return max(-self._remaining, 0.0) / self._rate

    @property
    def share_left(self) -> float:
        """Remaining share of *burst* after the last `take`; negative if tokens are missing."""
        return self._remaining / self._burst


class LastLines:
    """Last lines of a child's standard error; filled by another thread."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=_MAX_LAST_LINES)
        self.ended = threading.Event()


class Traffic:
    """Counter of the data that a server sends over one connection.

    *on_flood* is called once if the server exceeds a limit, to end the connection.
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
        """Reason why the connection has to end; empty while it may continue."""
        self.status = 0
        """HTTP status of the last answer; 0 before an answer, and without HTTP."""
        self.stderr = LastLines()
        self._on_flood = on_flood
        rate, bytes_rate = options.max_messages_per_s, options.max_bytes_per_s
        self._messages = Bucket(rate, _BURST_S * rate, clock=clock)
        self._bytes = Bucket(bytes_rate, _BURST_S * bytes_rate, clock=clock)
        self._answers = 0

    async def pace(self, size: int) -> None:
        """Count *size* bytes, and wait while they exceed the byte rate. Other tasks get a turn."""
        await asyncio.sleep(self._bytes.take(size))

    def expect_answer(self) -> None:
        """Permit one more message, the answer to a request that the gateway sent."""
        self._messages.take(-1)

    async def admit(self, count: int = 1) -> bool:
        """Count *count* received messages; return whether the connection may continue.

        The tasks started by earlier messages get a turn.
        """
        if self._messages.take(count):
            limit = self.options.max_messages_per_s
            self.end(
                f"sent more than {limit} messages a second unasked "
                "(UpstreamOptions.max_messages_per_s)"
            )
        is_slow = self._messages.share_left < _PAUSE_BELOW_SHARE
        await asyncio.sleep(count * _PAUSE_S if is_slow else 0)
        return not self.flood

    @contextmanager
    def answering(self) -> Iterator[bool]:
        """Count an unread answer to a server's request during the block; yield False if the
        connection has to end.
        """
        if self._answers == _MAX_UNREAD_ANSWERS:
            self.end(f"does not read the answers to {_MAX_UNREAD_ANSWERS} requests of its own")
        self._answers += 1
        try:
            yield not self.flood
        finally:
            self._answers -= 1

    def end(self, why: str) -> None:
        """End the connection. Only the first reason is stored."""
        if not self.flood:
            self.flood = why
            self._on_flood()


class ValueCounter:
    """Rough counter of the JSON values of a message (brackets and commas), as its bytes arrive.

    A JSON string never contains a line break, so an unclosed string ends with its line.
    """

    def __init__(self, max_values: int) -> None:
        self._remaining = max_values
        self._is_escaped = self._in_string = False

    def add(self, chunk: bytes) -> bool:
        """Count the values in *chunk*; return True if the message has too many."""
        if self._is_escaped:
            chunk = b"_" + chunk[1:]
        text = chunk.replace(b"\\\\", b"")
        self._is_escaped = text.endswith(b"\\")
        text = text.replace(b'\\"', b"").translate(None, _OTHER_BYTES)
        for number, line in enumerate(text.replace(b"\r", b"\n").split(b"\n")):
            parts = line.split(b'"')
            is_inside = self._in_string and not number
            self._remaining -= sum(map(len, parts[is_inside::2]))
            self._in_string = is_inside ^ (len(parts) % 2 == 0)
        return self._remaining < 0


async def has_too_many_values(message: bytes, max_values: int) -> bool:
    """Return whether *message* has more than *max_values* JSON values. Other tasks get a turn."""
    if len(message) <= max_values:
        return False
    counter = ValueCounter(max_values)
    for start in range(0, len(message), _STEP_BYTES):
        if counter.add(message[start : start + _STEP_BYTES]):
            return True
        await asyncio.sleep(0)
    return False
