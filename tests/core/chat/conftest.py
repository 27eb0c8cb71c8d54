"""The shared scripted server, clients for it, and a gateway with functions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from openai import OpenAI

from gateway import Gateway, Options
from tests.conftest import OpenGateway
from tests.core.chat.stage import Speaker, Stage


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    shared_stage = Stage()
    with shared_stage.server:
        yield shared_stage


@pytest.fixture(scope="session")
def openai(stage: Stage) -> Iterator[OpenAI]:
    with OpenAI(base_url=stage.server.base_url, api_key="test", max_retries=0) as client:
        yield client


@pytest.fixture
async def speaker(openai: OpenAI) -> AsyncIterator[Speaker]:
    """Yield an object that sends requests in any of the four ways."""
    async with Speaker(openai) as open_speaker:
        yield open_speaker


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def divide(a: int, b: int) -> float:
    """Divide one number by another."""
    return a / b


async def greet(name: str) -> str:
    """Greet a person by name."""
    return f"Hello {name}!"


def summing(open_gateway: OpenGateway, **options: Any) -> Gateway:
    """Return a gateway with the functions `add` and `divide`."""
    gateway = open_gateway(options=Options(**options))
    gateway.add_tool(add)
    gateway.add_tool(divide)
    return gateway


@pytest.fixture
def functions(open_gateway: OpenGateway) -> Gateway:
    gateway = open_gateway()
    for function in (add, divide, greet):
        gateway.add_tool(function)
    return gateway
