"""A client that can be asked, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from mcp import types

from gateway.types import JsonObject


class Person:
    """Answers every form with the same name, once a door is open; knows what was asked."""

    listens = True

    def __init__(self, capabilities: JsonObject, *, who: object = "me") -> None:
        self.capabilities = capabilities
        self.who = who
        self.asked: list[str] = []
        self.heard: list[tuple[float, float | None, str | None]] = []
        self.called = asyncio.Event()
        self.door = asyncio.Event()
        self.door.set()

    async def ask(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        self.asked += requests
        self.called.set()
        await self.door.wait()
        return {
            key: types.ElicitResult(action="accept", content={"name": "Ada"}) for key in requests
        }

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self.door.wait()
        self.heard.append((progress, total, message))
