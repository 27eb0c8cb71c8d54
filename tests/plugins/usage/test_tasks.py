"""Tasks, which connect searches and calls in the call log."""

from __future__ import annotations

import json
from pathlib import Path

from gateway import Options
from gateway.discovery import ToolList
from gateway.discovery.call_handler import ToolCall, handle_call
from gateway.options import UsageOptions
from gateway.testing import Call, Turn
from gateway.types import ANYONE
from tests.conftest import OpenGateway
from tests.core.chat.conftest import summing
from tests.core.chat.stage import Speaker, Stage, find
from tests.core.discovery.test_call_handler import NAMES, transfer


async def test_calls_of_one_request_have_the_same_task(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, tmp_path: Path
) -> None:
    path, usage = tmp_path / "catalog.sqlite3", UsageOptions(record=True)
    gateway = summing(open_gateway, catalog_store_path=path, usage=usage)
    sums = (Call("add", {"a": 1, "b": 2}), Call("add", {"a": 3, "b": 4}))
    for calls in (sums, sums[:1]):
        role = stage.cast(find("add two numbers"), Turn(calls=calls), Turn("Done."))
        await speaker.ask("whole", gateway, role)

    lines = [*gateway.usage.call_log.lines()]
    first, second, third = [line["task"] for line in lines]
    assert ["local/add"] * 3 == [line["tool"] for line in lines]
    assert first == second != third
    assert "" not in {first, third}


async def test_search_by_the_model_has_the_same_task_as_its_calls(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    gateway = open_gateway(
        options=Options(
            catalog_store_path=tmp_path / "catalog.sqlite3",
            usage=UsageOptions(record=True, record_queries=True),
        )
    )
    gateway.add_tool(transfer)
    tools = ToolList(names=NAMES, mode="proxy", caller=ANYONE)
    calls = {"search_tools": {"query": "move money"}, "transfer": {"account": "A", "amount": 1}}
    for name, arguments in calls.items():
        call = ToolCall(id="1", name=name, arguments=json.dumps(arguments))
        assert not (await handle_call(gateway, tools, call, task="1")).failed

    (served,) = gateway.usage.call_log.served_queries()
    assert ("move money", ("local/transfer",)) == (served.query, served.tools)
