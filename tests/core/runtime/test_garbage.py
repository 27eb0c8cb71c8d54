"""Memory that work leaves behind."""

from __future__ import annotations

import ctypes
import sys

import pytest

from gateway.runtime.garbage import release_memory


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="glibc's"
)
def test_the_system_gets_back_what_is_free_between_other_things() -> None:
    """Without that it stays with the process as long as anything above it does."""
    blocks = [bytes(1 << 16) for _ in range(256)]
    pinned = blocks[1::64]
    del blocks

    assert release_memory()
    assert 4 == len(pinned)
