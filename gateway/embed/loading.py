"""What is loaded at the first use: once, whichever thread asks.

What could not be loaded is not tried at every use: that would cost seconds of work, and fail again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from gateway.errors import EmbeddingError, GatewayError
from gateway.runtime.cache import Clock

T = TypeVar("T")
AGAIN_S = 30.0
"""As long as `UpstreamOptions.retry_after_s`: a build that is tried again finds it tried again."""
_TODO = (
    "see that there is room on the disk and in memory: gateway doctor says where its files are, "
    f"GATEWAY_ENCODER_DIR names another folder. It is tried again after {AGAIN_S:.0f} s"
)


class Loading(Generic[T]):
    """Gives what *load* gives, and loads it at the first use.

    Args:
        load: May take long, and may fail.
        clock: Seconds that only grow.
    """

    def __init__(self, load: Callable[[], T], *, clock: Clock) -> None:
        self._load = load
        self._clock = clock
        self._lock = threading.Lock()
        self._loaded: T | None = None
        self._failed: GatewayError | None = None
        self._again_at = 0.0

    def __call__(self) -> T:
        """Give it; whoever comes while it loads waits.

        Raises:
            EmbeddingError: If it cannot be loaded; the same until it is tried again, after
                `AGAIN_S` seconds. Our own errors stay what they are.
        """
        with self._lock:
            if self._loaded is None:
                if self._failed is not None and self._clock() < self._again_at:
                    raise self._failed.with_traceback(None)
                self._loaded = self._tried()
            return self._loaded

    @property
    def loaded(self) -> T | None:
        """What is loaded already; None if nothing is."""
        return self._loaded

    def _tried(self) -> T:
        try:
            return self._load()
        except GatewayError as error:
            failed = error
        except (OSError, RuntimeError, ValueError, ImportError, MemoryError) as error:
            told = f"{type(error).__name__}: {error}".removesuffix(": ")
            failed = EmbeddingError(f"the embedded model cannot be loaded ({told}): {_TODO}")
        self._failed, self._again_at = failed, self._clock() + AGAIN_S
        raise failed
