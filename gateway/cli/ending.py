"""A process that is told to end ends the processes that it started first.

A client that starts a server closes its pipe, waits some 2 s, and sends SIGTERM: what this process
started, and what does not mind that its pipe is closed, would live on.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Ending:
    """What there is to end, and whether that has begun: once is enough."""

    def __init__(self) -> None:
        self.close: Callable[[], None] = _nothing
        """Ends what was started, within seconds."""
        self.begun = False


@contextmanager
def orderly() -> Iterator[Ending]:
    """End what the block gives to be ended, and leave, when SIGTERM comes within it.

    Where the end has begun by itself it goes on. Where nobody may listen to signals, in a thread,
    nothing changes.
    """
    ending = Ending()

    # In a thread of its own: the main one may wait for a pipe for ever.
    def told(number: int, _frame: FrameType | None) -> None:
        if not ending.begun:
            ending.begun = True
            threading.Thread(target=leave, args=(number,)).start()

    def leave(number: int) -> None:
        try:
            ending.close()
        finally:
            os._exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield ending
        return
    before = signal.signal(signal.SIGTERM, told)
    try:
        yield ending
    finally:
        signal.signal(signal.SIGTERM, before)


def _nothing() -> None:
    return
