"""Loading of an object at the first use, and failed loads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.errors import EmbeddingError, ModelFileError
from gateway.plugins.local import RETRY_S, RetryingLoader


class Load:
    """Load function that raises the given errors in turn and counts its calls."""

    def __init__(self, *fails: Exception | None) -> None:
        self.fails = list(fails)
        self.tried = 0
        self.now = 0.0

    def __call__(self) -> str:
        self.tried += 1
        if self.fails and (fail := self.fails.pop(0)):
            raise fail
        return "loaded"

    def loading(self) -> RetryingLoader[str]:
        return RetryingLoader(self, clock=lambda: self.now)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), r"OSError: \[Errno 28\] No space left"),
        (RuntimeError("File model.bin is incomplete"), "RuntimeError: File model.bin is"),
        (MemoryError(), r"\(MemoryError\)"),
    ],
    ids=lambda item: type(item).__name__,
)
def test_loader_error_contains_the_remedy(error: Exception, reason: str) -> None:
    with pytest.raises(EmbeddingError, match=f"{reason}.*GATEWAY_ENCODER_DIR.*after 30 s"):
        Load(error).loading()()


def test_loader_does_not_repeat_a_failed_load_before_the_retry_time() -> None:
    load = Load(OSError("full"), OSError("still full"))
    loading = load.loading()

    def failed() -> str:
        with pytest.raises(EmbeddingError) as caught:
            loading()
        return str(caught.value)

    first, again = failed(), failed()
    load.now = RETRY_S - 1
    soon, tried_soon = failed(), load.tried
    load.now = RETRY_S
    later, tried_later = failed(), load.tried
    load.now *= 2

    assert {first} == {first, again, soon}
    assert "still full" in later
    assert (1, 2) == (tried_soon, tried_later)
    assert "loaded" == loading()


def test_loader_tries_once_for_concurrent_uses() -> None:
    barrier = threading.Barrier(4)
    load = Load(OSError("full"))
    loading = load.loading()

    def ask(_number: int) -> str:
        barrier.wait(60)
        with pytest.raises(EmbeddingError):
            loading()
        return "failed"

    with ThreadPoolExecutor(4) as threads:
        assert ["failed"] * 4 == list(threads.map(ask, range(4)))
    assert 1 == load.tried


def test_loader_raises_errors_of_the_gateway_unchanged() -> None:
    """Their messages already have the remedy."""
    with pytest.raises(ModelFileError, match="reinstall it"):
        Load(ModelFileError("reinstall it")).loading()()
