"""An MCP registry with the format of API v0.1, and its failures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gateway.plugins.provision import OFFICIAL
from gateway.testing.endpoint import Loopback

Json = dict[str, Any]


class Served:
    """Serves *routes* on a local port."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._loopback = Loopback(Starlette(routes=routes))
        self._loopback.start()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self._loopback.port}"

    def close(self) -> None:
        self._loopback.close()


def item(
    name: str,
    description: str = "Does something.",
    *,
    status: str = "active",
    packages: Sequence[Mapping[str, Any]] = (),
    remotes: Sequence[Mapping[str, Any]] = (),
    latest: bool = True,
    updated: str = "2026-10-02T08:00:00Z",
    **server: Any,
) -> Json:
    """Return an item of ``servers`` in the official registry's format."""
    return {
        "server": {
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
            "name": name,
            "description": description,
            "repository": {"url": f"https://example.org/{name}", "source": "github"},
            "version": "1.0.0",
            "packages": list(packages),
            "remotes": list(remotes),
            **server,
        },
        "_meta": {
            OFFICIAL: {
                "status": status,
                "publishedAt": "2026-09-01T08:00:00Z",
                "updatedAt": updated,
                "isLatest": latest,
            }
        },
    }


def package(identifier: str, version: str = "1.0.0", kind: str = "pypi", **more: Any) -> Json:
    """Return an item of ``packages``."""
    return {
        "registryType": kind,
        "identifier": identifier,
        "version": version,
        "transport": {"type": "stdio"},
        **more,
    }


class FakeRegistry(Served):
    """Serves *items* of ``servers``, valid or not, in pages of *page* items."""

    def __init__(self, items: Sequence[object] = (), *, page: int = 2) -> None:
        self.items = list(items)
        self.requests: list[dict[str, str]] = []
        self.faults: list[int] = []
        """HTTP statuses of the next answers, in place of a page."""
        self.body: bytes | None = None
        """Body of every answer, in place of a page."""
        self.encoding = ""
        """``Content-Encoding`` of `body`."""
        self.moved = ""
        """Redirect target of every request."""
        self._page = page
        super().__init__([Route("/v0.1/servers", self._answer)])

    @property
    def url(self) -> str:
        return self.base

    async def _answer(self, request: Request) -> Response:
        self.requests.append(dict(request.query_params))
        if self.faults:
            return Response(b"busy", self.faults.pop(0))
        if self.moved:
            return RedirectResponse(self.moved)
        if self.body is not None:
            packed = {"content-encoding": self.encoding} if self.encoding else None
            return Response(self.body, headers=packed, media_type="application/json")
        start = int(request.query_params.get("cursor", "0").removeprefix("after:") or 0)
        end = start + self._page
        metadata: Json = {"count": len(self.items[start:end])}
        if end < len(self.items):
            metadata["nextCursor"] = f"after:{end}"
        page = {"servers": self.items[start:end], "metadata": metadata}
        return Response(json.dumps(page).encode(), media_type="application/json")
