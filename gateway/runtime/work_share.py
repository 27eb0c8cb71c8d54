"""Long work in a thread, in small steps: an event loop of the same process goes on between them."""

from __future__ import annotations

import time

_FREE_S = 0.5
"""Processor time for which no share is kept: most work ends before."""
_STEP_S = 0.001
_PAUSE_SHARE = 3
"""How many times as long as a step the pause after it takes."""


class WorkShare:
    """The share of the processor that the work of one thread takes.

    Python runs one thread at a time: without pauses each step of the loop would wait for one of
    the work.
    """

    def __init__(self) -> None:
        self.spent_s = 0.0
        """Processor time of the work so far."""
        self._since = time.thread_time()

    def begin(self) -> None:
        """Begin work, maybe on another thread than before."""
        self._since = time.thread_time()

    def pause(self) -> None:
        """Pause, if the last pause was long enough ago. To be called often."""
        step_s = time.thread_time() - self._since
        if step_s >= _STEP_S:
            self.spent_s += step_s
            if self.spent_s > _FREE_S:
                time.sleep(_PAUSE_SHARE * step_s)
            self._since = time.thread_time()
