"""Stop the processes that this process started before it ends by SIGTERM.

A client closes the pipe of a server that it started, waits some 2 s, and sends SIGTERM. A child
process that ignores its closed pipe would live on.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Shutdown:
    """What a shutdown must close, and whether it has begun."""

    def __init__(self) -> None:
        self.close: Callable[[], None] = lambda: None
        """Stops what was started, within seconds."""
        self.has_begun = False


@contextmanager
def graceful_shutdown() -> Iterator[Shutdown]:
    """Close what the block registers, and exit, when SIGTERM arrives within it.

    A shutdown that has begun by itself continues. In a thread, where signals cannot be handled,
    nothing changes.
    """
    shutdown = Shutdown()

    # A thread: the main one may wait for a pipe for ever.
    def on_signal(number: int, _frame: FrameType | None) -> None:
        if not shutdown.has_begun:
            shutdown.has_begun = True
            threading.Thread(target=leave, args=(number,)).start()

    def leave(number: int) -> None:
        try:
            shutdown.close()
        finally:
            os._exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield shutdown
        return
    previous = signal.signal(signal.SIGTERM, on_signal)
    try:
        yield shutdown
    finally:
        signal.signal(signal.SIGTERM, previous)
