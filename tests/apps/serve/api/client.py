"""HTTP clients of the API that need no network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2

from gateway.gateway import Gateway
from gateway.serve.api.app import api_app
from gateway.serve.auth import BearerToken
from gateway.serve.http_options import HttpOptions
from gateway.types import Caller

HERE = HttpOptions()
SECRET = "s3cret-of-the-test"
URL = "http://127.0.0.1:8930"


@asynccontextmanager
async def open_client(
    gateway: Gateway,
    http: HttpOptions = HERE,
    *,
    scopes: Sequence[str] | None = None,
    tokens: Sequence[BearerToken] = (),
    **options: Any,
) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client of *gateway*, whose token `SECRET` has the *scopes*, unless None."""
    own_tokens = (
        []
        if scopes is None
        else [BearerToken.from_secret("me", SECRET, Caller(scopes=frozenset(scopes)))]
    )
    app = api_app(gateway, replace(http, tokens=(*tokens, *own_tokens)), **options)
    headers = {"Authorization": f"Bearer {SECRET}"} if own_tokens else {}
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=app), base_url=URL, headers=headers
    ) as client:
        yield client


async def until(client: httpx2.AsyncClient, path: str, key: str, value: object) -> None:
    """Repeat a GET request until the response has *value* for *key*."""
    while (await client.get(path)).json()[key] != value:  # noqa: ASYNC110  (it is the server's news)
        await asyncio.sleep(0)


def ids(answer: httpx2.Response, group: str = "results") -> list[str]:
    return [item["id"] for item in answer.json()[group]]
