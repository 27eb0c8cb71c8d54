"""Requests to the Responses API through the wrapper, blocking or async, whole or streamed."""

from __future__ import annotations

from typing import Any

from openai import OpenAI
from openai.types.responses import Response, ResponseStreamEvent

from gateway import AsyncAutoDiscoveryClient, AutoDiscoveryClient, Gateway
from gateway.chat.accounting import Observer
from tests.core.chat.stage import Role, Speaker, Way


class Answering:
    """Wrappers of one server's client, each with its own conversations."""

    def __init__(
        self, speaker: Speaker, gateway: Gateway, observer: Observer | None = None
    ) -> None:
        self.blocking = AutoDiscoveryClient(speaker.openai, gateway, observer=observer)
        self.asynchronous = AsyncAutoDiscoveryClient(
            speaker.asynchronous, gateway, observer=observer
        )

    async def events(self, way: Way, role: Role, **options: Any) -> list[ResponseStreamEvent]:
        """Send a streamed request in the given way, and return all events."""
        options = {"model": role.model, "input": "Please help me.", **options}
        if way == "async stream":
            stream = await self.asynchronous.responses.create(stream=True, **options)
            return [event async for event in stream]
        return list(self.blocking.responses.create(stream=True, **options))

    async def ask(self, way: Way, role: Role, **options: Any) -> Response:
        """Send a request in the given way."""
        options = {"model": role.model, "input": "Please help me.", **options}
        if way == "whole":
            whole: Response = self.blocking.responses.create(**options)
            return whole
        if way == "async whole":
            other: Response = await self.asynchronous.responses.create(**options)
            return other
        last = (await self.events(way, role, **options))[-1]
        assert last.type == "response.completed"
        return last.response


def wrap(openai: OpenAI, gateway: Gateway) -> AutoDiscoveryClient:
    return AutoDiscoveryClient(openai, gateway)
