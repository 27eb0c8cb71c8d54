"""Gateways that close while a server is listed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.errors import GatewayError
from gateway.gateway import Gateway
from tests.conftest import OpenGateway
from tests.core.mcp.conftest import lines, until
from tests.core.mcp.verbatim import ANSWERS, Answers, opening, over_stdio, result
from tests.core.servers.live_servers import patient

LISTS: Answers = {
    "initialize": [opening('{"tools": {}, "prompts": {}, "resources": {}}')],
    "resources/list": [result('{"resources": []}')],
    "resources/templates/list": [result('{"resourceTemplates": []}')],
    "prompts/list": [result('{"prompts": [{"name": "p"}]}')],
}


def add_server(gateway: Gateway, folder: Path, answers: Answers) -> None:
    target = over_stdio(folder, answers)
    gateway.add_server("srv", command=target.command, args=target.args)


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "prompts/list"])
async def test_closing_during_a_relisting_does_not_count_as_a_server_failure(
    open_gateway: OpenGateway, tmp_path: Path, method: str
) -> None:
    slow = {method: [*{**ANSWERS, **LISTS}[method], None]}
    closing = open_gateway(options=patient(tmp_path))
    add_server(closing, tmp_path, {**LISTS, **slow})
    before = [entity.id for entity in await closing.list_tools()]
    listing = asyncio.create_task(closing.refresh())
    record = tmp_path / "record"
    await until(lambda: 2 == sum(line.startswith(f"{method} ") for line in lines(record)))
    await closing.aclose()
    with suppress(GatewayError):
        await listing

    later = open_gateway(options=patient(tmp_path))
    add_server(later, tmp_path, LISTS)

    assert (["srv/good"], ["srv/good"]) == (before, [e.id for e in await later.list_tools()])
    assert ((), ()) == (await later.issues(), (await later.report()).diagnostics)


async def test_closing_during_a_server_start_does_not_count_as_a_server_failure(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    first = open_gateway(options=patient(tmp_path))
    add_server(first, tmp_path, LISTS)
    await first.list_tools()
    await first.aclose()
    (tmp_path / "record").unlink()
    closing = open_gateway(options=patient(tmp_path))
    add_server(closing, tmp_path, {"initialize": [None]})
    listing = asyncio.create_task(closing.refresh())
    await until(lambda: any("initialize" in line for line in lines(tmp_path / "record")))
    await closing.aclose()
    with suppress(GatewayError):
        await listing

    later = open_gateway(options=patient(tmp_path))
    add_server(later, tmp_path, LISTS)

    assert ["srv/good"] == [entity.id for entity in await later.list_tools()]
    assert ((), ()) == (await later.issues(), (await later.report()).diagnostics)
