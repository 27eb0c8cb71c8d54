"""Attention page, with real servers that change, fail or require a sign-in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.gateway import Gateway
from gateway.mcp import HttpServer, OAuth
from gateway.runtime.background_loop import Bridge
from gateway.serve.auth import ADMIN, BearerToken
from gateway.serve.console.attention import MAX_ISSUES
from gateway.serve.http_options import HttpOptions
from gateway.types import Caller
from tests.apps.serve.console.catalogs import MARKUP
from tests.apps.serve.console.conftest import Open, Serve, Served, check_access
from tests.apps.serve.console.test_access import SECRET
from tests.conftest import OpenGateway
from tests.core.attention.test_attention import POISON
from tests.core.mcp.conftest import until
from tests.core.servers.live_servers import guarded_server, live_server, patient
from tests.fakes import ListSource, tool

ONLY_ADMIN = BearerToken.from_secret("admin", SECRET, Caller(scopes=frozenset({ADMIN})))


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    """Event loop on another thread, on which the upstream servers run."""
    upstream_bridge = Bridge("upstream")
    yield upstream_bridge
    upstream_bridge.close()


async def kinds(served: Served, **query: str) -> list[tuple[str, str]]:
    data = await served.data("/attention", **query)
    return [(issue["kind"], issue["id"]) for issue in data["issues"]]


async def do(served: Served, action: str, **fields: str) -> str:
    """Submit the form of *action*, and return the HTML of the next page."""
    async with served.signed_in() as client:
        answer = await served.send(client, f"/attention/{action}", fields)
        assert 303 == answer.status_code, answer.text
        return (await client.get(answer.headers["location"].removeprefix("/console"))).text


async def test_attention_page_shows_and_approves_a_changed_definition(
    open_gateway: OpenGateway, bridge: Bridge, tmp_path: Path, serve_console: Serve, visit: Open
) -> None:
    gateway = open_gateway(options=patient(tmp_path, on_change="block"))
    async with live_server(bridge, [tool("add", "Add two numbers.")]) as server:
        gateway.add_server("srv", url=server.url)
        await gateway.report()
        server.shelf.tools[0] = tool("add", f"Add three numbers. {MARKUP}")
        await gateway.refresh()
        served = await serve_console(gateway, config=tmp_path / "mcp.json")
        page = await visit(served, "/attention?kind=waiting")
        await check_access(page)
        difference = await page.locator("pre").inner_text()
        command = await page.get_by_text("gateway approve srv/add").count()
        await page.get_by_role("button", name="Approve").click()
        note = await page.get_by_role("status").inner_text()
        remaining = await page.locator("article").count()
        broken = await page.evaluate("window.broken")
        result = await gateway.search("add three numbers")

    assert "-" == difference.splitlines()[1][0]
    assert "<script>window.broken=1</script>" in difference
    assert 1 == command
    assert "Approved srv/add" in note
    assert (0, None) == (remaining, broken)
    assert "srv/add" == result.matches[0].id


async def test_attention_page_retries_a_failed_server(
    open_gateway: OpenGateway, bridge: Bridge, tmp_path: Path, serve_console: Serve
) -> None:
    gateway = open_gateway(options=patient(tmp_path))
    served = await serve_console(gateway)
    async with live_server(bridge, [tool("add")]) as server:
        pass
    gateway.add_server("srv", url=server.url)
    before = await kinds(served)
    still = await do(served, "retry", id="srv", kind="failing")
    async with live_server(bridge, [tool("add")], server.port):
        after = await do(served, "retry", id="srv")

    assert [("failing", "srv")] == before
    assert "Not done: " in still
    assert "nothing answers" in still
    assert 'aria-current="true">Failing (1)' in still
    assert "srv answers, and its listing is up to date." in after
    assert "There are no open issues." in after


async def test_attention_page_starts_the_sign_in_of_a_server(
    open_gateway: OpenGateway, bridge: Bridge, tmp_path: Path, serve_console: Serve
) -> None:
    gateway = open_gateway(options=patient(tmp_path))
    served = await serve_console(gateway)
    async with guarded_server(bridge, tmp_path) as server:
        gateway.add_server("srv", server=HttpServer(server.url, auth=OAuth()))
        before = await kinds(served)
        begun = await do(served, "sign_in", id="srv")
        (issue,) = (await served.data("/attention"))["issues"]
        await server.agree(issue["address"])
        await until(lambda: not gateway.bridge.call(gateway.issues))
        after = await kinds(served)

    assert [("signed_out", "srv")] == before
    assert "<code>gateway login srv</code>" in begun
    assert issue["address"].split("?")[0] in begun
    assert [] == after


async def test_disabling_an_entity_requires_the_scope(
    open_gateway: OpenGateway, tmp_path: Path, serve_console: Serve
) -> None:
    gateway = open_gateway(options=patient(tmp_path))
    gateway.add_source(ListSource("srv", [tool("poison", POISON)]))
    limited = await serve_console(
        gateway, http=HttpOptions(port=0, tokens=(ONLY_ADMIN,)), token=SECRET
    )
    async with limited.signed_in() as client:
        difference = await client.get("/attention")
        refused = await limited.send(client, "/attention/disable", {"id": "srv/poison"})
    served = await serve_console(gateway)
    before = await kinds(served)
    await do(served, "disable", id="srv/poison")
    after = await kinds(served)

    assert [("suspicious", "srv/poison")] == before
    assert ("srv/poison" in difference.text, "Disable" in difference.text) == (True, False)
    assert 403 == refused.status_code
    assert [] == after


async def test_attention_page_filters_and_limits_issues(
    open_gateway: OpenGateway, tmp_path: Path, serve_console: Serve
) -> None:
    gateway = open_gateway(options=patient(tmp_path))
    gateway.add_source(ListSource("a", [tool(f"get_{n:03}_role") for n in range(105)]))
    gateway.add_source(ListSource("b", [tool(f"get_{n:03}_roles") for n in range(105)]))
    gateway.add_source(ListSource("bad", [replace(tool("x"), input_schema={"type": 7})]))
    served = await serve_console(gateway)
    everything = await served.data("/attention")
    similar = await served.data("/attention", kind="similar")

    assert {"quarantined": 1, "similar": 105} == everything["counts"] == similar["counts"]
    assert [("quarantined", "bad")] == await kinds(served, kind="quarantined")
    assert (MAX_ISSUES, 5) == (len(similar["issues"]), similar["more"])
    await do(served, "accept", id=similar["issues"][0]["id"])
    assert 104 == (await served.data("/attention"))["counts"]["similar"]


async def test_attention_page_reloads_a_repaired_configuration(
    open_gateway: OpenGateway, tmp_path: Path, serve_console: Serve
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"bad": {"args": []}}}), "utf-8")
    gateway: Gateway = open_gateway(options=patient(tmp_path))
    gateway.add_config(file)
    served = await serve_console(gateway, config=file)
    before = await kinds(served)
    file.write_text(json.dumps({"mcpServers": {}}), "utf-8")
    after = await do(served, "reload", id="config_warning")
    again = await do(served, "refresh", id="")
    async with served.signed_in() as client:
        unknown = await served.send(client, "/attention/destroy", {"id": "x"})

    assert [("configuration", "config_warning")] == before
    assert "There are no open issues." in after
    assert "listed again" in again
    assert 404 == unknown.status_code
