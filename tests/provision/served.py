"""What the fakes over HTTP share: each listens on a port of its own while it is entered."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from starlette.applications import Starlette
from starlette.routing import Route

from gateway.testing.endpoint import Loopback


class Served:
    """Serves *routes* on this machine."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._loopback = Loopback(Starlette(routes=routes))

    def __enter__(self) -> Self:
        self._loopback.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loopback.close()

    @property
    def base(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._loopback.port}"
