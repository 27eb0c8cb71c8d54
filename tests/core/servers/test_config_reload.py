"""Reloads of configuration files while their servers run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gateway.catalog import COMMAND_LINE_PIN
from gateway.config.mcp_json import parse_manifest
from gateway.errors import ConfigError, UnknownToolError
from gateway.gateway import Gateway
from gateway.options import Options, UpstreamOptions
from gateway.servers.config_files import Reloaded
from gateway.storage import SqlCatalog
from gateway.sync import SyncGateway
from tests.core.mcp.conftest import HERE, lines, lives
from tests.fakes import ListSource, tool

Entries = Mapping[str, object]
URL = {"url": "http://127.0.0.1:9/mcp"}


class Desk:
    """A gateway with a configuration file that a test can rewrite."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "mcp.json"
        self.store = folder / "catalog.sqlite3"
        self.made: list[Gateway] = []

    def entry(self, name: str, mode: str = "pid", **more: object) -> dict[str, object]:
        args = [str(HERE / "hostile.py"), mode, str(self.record(name))]
        return {"command": sys.executable, "args": args, **more}

    def record(self, name: str) -> Path:
        return self.folder / f"{name}.record"

    def write(self, servers: Entries, **more: object) -> None:
        self.path.write_text(json.dumps({"mcpServers": servers, **more}), "utf-8")

    def gateway(self, **upstream: object) -> Gateway:
        options = UpstreamOptions(**upstream)  # type: ignore[arg-type]  # passed on as they came
        gateway = Gateway(
            strategy="graph", options=Options(upstream=options, catalog_store_path=self.store)
        )
        gateway.add_config(self.path)
        self.made.append(gateway)
        return gateway

    def children(self, name: str) -> list[int]:
        return [int(line) for line in lines(self.record(name)) if line.isdecimal()]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Yield a gateway with a configuration file."""
    desk = Desk(tmp_path)
    yield desk
    for gateway in desk.made:
        gateway.close()


async def ids(gateway: Gateway) -> list[str]:
    return sorted(entity.id for entity in await gateway.list_tools())


def changed_servers(reloaded: Reloaded) -> list[tuple[str, ...]]:
    return [reloaded.added, reloaded.changed, reloaded.removed, reloaded.kept]


async def test_reload_restarts_only_changed_servers(desk: Desk) -> None:
    """The file is changed so that one server stays, one has another environment, one is removed,
    and one is added.
    """
    desk.write({name: desk.entry(name) for name in ("stays", "turns", "goes")})
    gateway = desk.gateway()
    before = await ids(gateway)
    (stayed,), (turned,), (gone,) = (desk.children(name) for name in ("stays", "turns", "goes"))

    turns = desk.entry("turns", env={"NEW": "1"})
    desk.write({"stays": desk.entry("stays"), "turns": turns, "comes": desk.entry("comes")})
    reloaded = await gateway.reload()
    after = await ids(gateway)
    await gateway.invoke("stays/good", {})

    assert ["goes/good", "stays/good", "turns/good"] == before
    assert [("comes",), ("turns",), ("goes",), ("stays",)] == changed_servers(reloaded)
    assert ["comes/good", "stays/good", "turns/good"] == after
    assert ([stayed], 2) == (desk.children("stays"), len(desk.children("turns")))
    assert [True, False, False] == [lives(process) for process in (stayed, turned, gone)]
    with pytest.raises(UnknownToolError):
        await gateway.invoke("goes/good", {})


async def test_reload_after_changed_transforms_and_aliases_keeps_sessions(desk: Desk) -> None:
    desk.write({"srv": desk.entry("srv")})
    gateway = desk.gateway()
    await ids(gateway)
    virtual = {"v": {"tools": {"fine": "srv/good"}}}

    desk.write({"srv": desk.entry("srv", tools={"prefix": "p_"})}, virtualServers=virtual)
    shaped = await gateway.reload()
    tool_ids = await ids(gateway)
    desk.write({"srv": desk.entry("srv")}, virtualServers={"v": {"tools": {"best": "srv/good"}}})
    turned = await gateway.reload()
    later = await ids(gateway)
    desk.write({"srv": desk.entry("srv")})
    await gateway.reload()

    assert ([("v",), ("srv",), (), ()], ["srv/p_good", "v/fine"]) == (
        changed_servers(shaped),
        tool_ids,
    )
    assert ([(), ("srv", "v"), (), ()], ["srv/good", "v/best"]) == (changed_servers(turned), later)
    assert ["srv/good"] == await ids(gateway)
    assert 1 == len(desk.children("srv"))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"mcpServers": {\n  "srv": }}', "line 2, column 10"),
        ('{"mcpServers": []}', "needs an object 'mcpServers'"),
        (None, "no configuration at"),
    ],
)
async def test_reload_of_a_broken_file_changes_nothing(
    desk: Desk, text: str | None, named: str
) -> None:
    """The error names the position in the file and the remedy. A later valid file is applied."""
    desk.write({"srv": desk.entry("srv")})
    gateway = desk.gateway()
    await ids(gateway)
    desk.path.unlink()
    if text is not None:
        desk.path.write_text(text, "utf-8")

    with pytest.raises(ConfigError, match=named):
        await gateway.reload()
    after = await ids(gateway)
    desk.write({"srv": desk.entry("srv")})

    assert ["srv/good"] == after
    assert ("srv",) == (await gateway.reload()).kept
    assert 1 == len(desk.children("srv"))


async def test_reload_with_an_invalid_entry_keeps_its_server(desk: Desk) -> None:
    """A person may still be editing the file. A new server with an invalid entry is not added."""
    desk.write({"srv": desk.entry("srv")})
    gateway = desk.gateway()
    await ids(gateway)
    desk.write({"srv": desk.entry("srv", cwd=7), "new": {"args": []}})
    reloaded = await gateway.reload()

    assert [(), (), (), ("srv",)] == changed_servers(reloaded)
    assert [
        "mcp.json: server 'srv': cwd must be a text",
        "mcp.json: server 'new' needs a 'command' (stdio) or a 'url' (streamable HTTP)",
        "mcp.json: server 'srv' stays as it was",
    ] == [note.detail for note in reloaded.diagnostics]
    assert ["srv/good"] == await ids(gateway)


@pytest.mark.parametrize("policy", ["warn", "block"])
async def test_changed_command_line_needs_approval_under_the_block_policy(
    desk: Desk, policy: str
) -> None:
    """Otherwise anyone who can write the file could run a program under a trusted name."""
    desk.write({"srv": desk.entry("srv")})
    gateway = desk.gateway(on_change=policy)
    await ids(gateway)
    desk.write({"srv": desk.entry("srv", mode="plain")})
    await gateway.reload()
    after, report = await ids(gateway), await gateway.report()
    codes = [note.code for note in report.diagnostics]
    records = SqlCatalog.in_files(desk.store)
    records.approve(f"{desk.path}#srv", [COMMAND_LINE_PIN])
    records.close()
    await gateway.reload()

    if policy == "warn":
        assert (["srv/good"], ["server_changed"]) == (after, codes)
    else:
        assert ([], ["source_load_failed"]) == (after, codes)
        assert "gateway approve srv" in report.diagnostics[0].detail
    assert ["srv/good"] == await ids(gateway)
    assert () == (await gateway.report()).diagnostics


async def test_changed_environment_variable_of_a_server_needs_approval(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment variable may contain code, and a reference in the file may resolve to another
    value at any time.
    """
    monkeypatch.setenv("GATEWAY_TEST_KEY", "one")
    env = {"PYTHONPATH": str(desk.folder), "KEY": "${GATEWAY_TEST_KEY}"}
    desk.write({"srv": desk.entry("srv", env=env)})
    before = await ids(desk.gateway(on_change="block"))
    monkeypatch.setenv("GATEWAY_TEST_KEY", "two")
    gateway = desk.gateway(on_change="block")
    rotated = await ids(gateway)
    starts = len(desk.children("srv"))

    desk.write({"srv": desk.entry("srv", env={**env, "PYTHONPATH": "/elsewhere"})})
    await gateway.reload()
    after = await ids(gateway), await ids(desk.gateway(on_change="block"))
    with pytest.raises(UnknownToolError):
        await gateway.invoke("srv/good", {})

    assert (["srv/good"], ["srv/good"], ([], [])) == (before, rotated, after)
    assert starts == len(desk.children("srv"))
    assert b"elsewhere" not in desk.store.read_bytes()


async def test_reload_starts_a_new_session_if_trust_in_a_server_changes(desk: Desk) -> None:
    """A session that began while the server was not trusted must not be used after it is."""
    desk.write({"srv": desk.entry("srv")})
    gateway = desk.gateway()
    (before,) = await gateway.list_tools()
    desk.write({"srv": desk.entry("srv", trusted=True)})
    reloaded = await gateway.reload()
    (after,) = await gateway.list_tools()

    assert ("srv",) == reloaded.changed
    assert [(False, False), (True, True)] == [
        (entity.trusted, entity.vouched) for entity in (before, after)
    ]


async def test_reload_with_a_taken_name_changes_nothing(desk: Desk) -> None:
    """The name is taken by a server from code, or from another file. The same file cannot be added
    twice.
    """
    desk.write({"srv": desk.entry("srv")})
    gateway = desk.gateway()
    gateway.add_source(ListSource("mine", [tool("a")]))
    other = desk.folder / "other.json"
    other.write_text(json.dumps({"mcpServers": {"srv": {"command": "x"}}}), "utf-8")
    for path, named in ((other, "'srv' is there already"), (desk.path, "was added already")):
        with pytest.raises(ConfigError, match=named):
            gateway.add_config(path)
    other.write_text(json.dumps({"mcpServers": {}}), "utf-8")
    gateway.add_config(other)

    desk.write({"mine": desk.entry("mine")})
    with pytest.raises(ConfigError, match="'mine' is there already"):
        await gateway.reload()
    desk.write({"srv": desk.entry("srv")})
    other.write_text(json.dumps({"mcpServers": {"srv": {"command": "x"}}}), "utf-8")
    with pytest.raises(ConfigError, match="'srv' is there already"):
        await gateway.reload()

    assert ["mine/a", "srv/good"] == await ids(gateway)


async def test_reload_restores_servers_removed_by_code(desk: Desk) -> None:
    """The file determines its own servers; servers without a file stay as they are."""
    desk.write({"srv": desk.entry("srv")})
    gateway = desk.gateway()
    gateway.add_config(parse_manifest({"mcpServers": {"loose": desk.entry("loose")}}))
    await gateway.remove_server("srv")
    gone = await ids(gateway)
    reloaded = await gateway.reload()

    assert ["loose/good"] == gone
    assert [("srv",), (), (), ("loose",)] == changed_servers(reloaded)
    assert ["loose/good", "srv/good"] == await ids(gateway)


def test_sync_gateway_reloads_with_the_current_environment(desk: Desk, tmp_path: Path) -> None:
    desk.write({"srv": desk.entry("srv", env={"KEY": "${GATEWAY_TEST_KEY:-none}"})})
    twin = SyncGateway(desk.gateway())
    os.environ["GATEWAY_TEST_KEY"] = "one"
    try:
        assert ("srv",) == twin.reload().changed
    finally:
        del os.environ["GATEWAY_TEST_KEY"]
