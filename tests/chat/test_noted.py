"""The calls of one request of a user are one task in the ledger of calls."""

from __future__ import annotations

from pathlib import Path

from openai import OpenAI

from gateway import AutoDiscoveryClient, Options
from gateway.options import UsageOptions
from gateway.testing import Call, Turn
from tests.chat.stage import ASK, Stage, find
from tests.conftest import OpenGateway


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_each_call_of_the_wrapper_is_a_task(
    stage: Stage, openai: OpenAI, open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Two calls in the first, one in the second."""
    gateway = open_gateway(
        options=Options(
            catalog_store_path=tmp_path / "catalog.sqlite3", usage=UsageOptions(record=True)
        )
    )
    gateway.add_tool(add)
    client = AutoDiscoveryClient(openai, gateway)
    sums = (Call("add", {"a": 1, "b": 2}), Call("add", {"a": 3, "b": 4}))
    for calls in (sums, sums[:1]):
        role = stage.cast(find("add two numbers"), Turn(calls=calls), Turn("Done."))
        client.chat.completions.create(model=role.model, messages=ASK)

    lines = [*gateway.usage.call_log.lines()]
    tasks = [line["task"] for line in lines]
    assert ["local/add"] * 3 == [line["tool"] for line in lines]
    assert 2 == len(set(tasks))
    assert tasks[0] == tasks[1]
    assert all(tasks)
