from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.runtime.background_loop import Bridge


@pytest.fixture(scope="session")
def bridge() -> Iterator[Bridge]:
    bridge = Bridge("tests")
    yield bridge
    bridge.close()
