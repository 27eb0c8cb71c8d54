"""`gateway login`."""

from __future__ import annotations

import asyncio
import webbrowser
from pathlib import Path

import pytest

from gateway.runtime.background_loop import Bridge
from tests.apps.cli.running import Place
from tests.core.mcp.conftest import placed
from tests.core.mcp.servers.authority import Authority
from tests.core.mcp.sign_in_place import visit

ECHO = '{"text": "hi"}'


class Visitor(webbrowser.BaseBrowser):
    """A browser whose user agrees at once to every sign-in."""

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        visit(url)
        return True


webbrowser.register("visitor", None, Visitor(), preferred=True)


@pytest.fixture
def cache(place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GATEWAY_CACHE_DIR", str(place.cache))
    return place.cache


async def test_server_can_be_used_after_login_until_sign_out(place: Place, cache: Path) -> None:
    """While the user is signed out, commands name `gateway login`."""
    bridge = Bridge("giver")
    authority = Authority()
    async with (
        placed(bridge, authority.app) as giver,
        placed(bridge, lambda port: authority.guarded(port, giver, cache / "record")) as port,
    ):
        entry = {"url": f"http://127.0.0.1:{port}/mcp", "auth": {"type": "oauth"}}
        config = place.config({"srv": entry})
        before = await asyncio.to_thread(place.run, "tools", "-c", config)
        signed = await asyncio.to_thread(place.run, "login", "srv", "-c", config, "--json")
        after = await asyncio.to_thread(place.run, "tools", "-c", config)
        gone = await asyncio.to_thread(place.run, "login", "srv", "--forget", "-c", config)
        called = await asyncio.to_thread(place.run, "call", "srv/echo", ECHO, "-c", config)
    await asyncio.to_thread(bridge.close)

    assert "gateway login srv" in before.err
    assert f"sign in here: http://127.0.0.1:{giver}/authorize?" in signed.err
    assert (0, {"server": "srv", "signed_in": True, "tools": 4}) == (signed.code, signed.json)
    assert (0, True) == (after.code, "echo" in after.out)
    assert (0, "signed_in  no") == (gone.code, gone.out.split("\n")[1].strip())
    assert (3, True) == (called.code, "gateway login srv" in called.err)


@pytest.mark.parametrize(
    ("server", "entry", "message"),
    [
        (
            "other",
            {"url": "https://a/mcp"},
            "no server 'other' is configured; configured servers: srv",
        ),
        ("srv", {"url": "https://a/mcp"}, 'add "auth"'),
        ("srv", {"command": "x"}, "is a program on this machine"),
    ],
)
def test_login_refuses_servers_that_need_no_sign_in(
    place: Place, server: str, entry: dict[str, object], message: str
) -> None:
    ended = place.run("login", server, "-c", place.config({"srv": entry}))

    assert (2, True) == (ended.code, message in ended.err)
