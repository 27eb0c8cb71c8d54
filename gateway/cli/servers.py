"""`gateway servers list` and `test`: what is known of each server, what comes of starting it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from rich.text import Text

from gateway.catalog.approvals import LAUNCH
from gateway.cli.exits import NOTHING, OK, UNAVAILABLE
from gateway.cli.files import text_of
from gateway.cli.importing import servers_of
from gateway.cli.jsonable import jsonable
from gateway.cli.screen import emit, out, printable
from gateway.cli.settings import DEFAULT_CONFIG, OPTIONS, manifest_at, narrowed
from gateway.cli.show import plain_table
from gateway.embed.cache import MemoryVectorStore
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.manifests.manifest import Manifest
from gateway.mcp.servers import HttpServer, StdioServer
from gateway.options import Options
from gateway.options.environment import catalog_store_path
from gateway.storage.listing_store import SqliteRecords
from gateway.sync import SyncGateway
from gateway.types import Diagnostic

State = Literal["listed", "never listed", "unusable", "disabled"]
Kind = Literal["program", "address", "virtual", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of one server without starting it."""

    name: str
    kind: Kind = ""
    target: str = ""
    """The program, the address without its path, or how many aliases."""
    state: State
    tools: int | None = None
    """As they were listed last, before shapes; None if they never were."""
    age_s: float | None = None
    """How long ago that was."""
    pins: Literal["kept", "changed", "none"] = "none"
    changed: tuple[str, ...] = ()
    """What is not as it was approved; the server's own name stands for its command line."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each tool's definition as it came: what an alias may be pinned to."""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What came of starting one server."""

    name: str
    works: bool
    seconds: float
    """To start it, connect and list."""
    tools: tuple[str, ...] = ()
    """As they are shown."""
    diagnostics: tuple[Diagnostic, ...] = ()


def list_(*, config: Path | None, as_json: bool) -> int:
    """Say what is known of each server; none is started."""
    known = known_servers(config)
    if as_json:
        emit({"config": str(config or DEFAULT_CONFIG), "servers": jsonable(known)})
        return OK if known else NOTHING
    table = plain_table("server", "", "", "tools", "pins", "")
    for each in known:
        tools = "" if each.tools is None else str(each.tools)
        age = "" if each.age_s is None else f"listed {ago(each.age_s)}"
        told = each.detail or age or each.state
        cells = (each.name, each.kind, each.target, tools, _pins(each), told)
        table.add_row(*(printable(cell) for cell in cells))
    out().print(table if known else Text("No servers are configured: gateway servers add"))
    return OK if known else NOTHING


def known_servers(config: Path | None) -> tuple[Known, ...]:
    """Give what is known of each configured server.

    Raises:
        ConfigError: The file cannot be read.
        StoreError: The catalog store cannot be used.
    """
    manifest = manifest_at(config)
    path = config or DEFAULT_CONFIG
    _, table = servers_of(text_of(path), str(path))
    records = SqliteRecords(catalog_store_path(Options()))
    try:
        names = (*table, *manifest.virtual, *(set(manifest.unusable) - set(table)))
        return tuple(_known(name, manifest, records) for name in names)
    finally:
        records.close()


def _known(name: str, manifest: Manifest, records: SqliteRecords) -> Known:
    changed = records.changed(manifest.owner(name))
    told = tuple(name if each == LAUNCH else f"{name}/{each}" for each in sorted(changed))
    if name in manifest.virtual:
        table = manifest.virtual[name]
        aliases = len(table.tools) + len(table.resources) + len(table.prompts)
        known = Known(name=name, kind="virtual", target=f"{aliases} aliases", state="listed")
        return replace(
            known, tools=len(table.tools), pins="changed" if told else "kept", changed=told
        )
    target = manifest.servers.get(name)
    if target is None:
        reason = ([_reason(each) for each in manifest.warnings if _about(each, name)] or [""])[-1]
        unusable = name in manifest.unusable
        return Known(
            name=name,
            state="unusable" if unusable else "disabled",
            detail=reason if unusable else "disabled",
        )
    known = Known(name=name, kind=_kind(target), target=_target(target), state="never listed")
    recorded = records.listing(target.fingerprint)
    if recorded is None:
        return replace(known, changed=told, pins="changed" if told else "none")
    return replace(
        known,
        state="listed",
        tools=len(recorded.listing.tools),
        age_s=max(time.time() - recorded.listed_at, 0.0),
        pins="changed" if told else "kept",
        changed=told,
        digests=recorded.listing.digests,
    )


def _about(warning: Diagnostic, name: str) -> bool:
    return f"server {name!r}" in warning.detail or f"server name {name!r}" in warning.detail


def _reason(warning: Diagnostic) -> str:
    return warning.detail.partition(": ")[2] or warning.detail


def _kind(target: StdioServer | HttpServer) -> Kind:
    return "program" if isinstance(target, StdioServer) else "address"


def _target(target: StdioServer | HttpServer) -> str:
    return target.command if isinstance(target, StdioServer) else target.origin


def _pins(known: Known) -> str:
    return known.pins if known.pins != "changed" else f"changed: {', '.join(known.changed)}"


def ago(seconds: float) -> str:
    """Say how long ago *seconds* are, in the largest unit that fits."""
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def try_(names: Sequence[str], *, config: Path | None, as_json: bool) -> int:
    """Start servers one after another, list them, time it, and say what is wrong.

    Raises:
        InvalidRequestError: One is not there.
    """
    manifest = manifest_at(config)
    done = [tested(name, manifest) for name in _chosen(names, manifest)]
    if as_json:
        emit({"config": str(config or DEFAULT_CONFIG), "servers": jsonable(done)})
    else:
        table = plain_table("server", "", "time", "tools", "")
        for each in done:
            told = "\n".join(f"{one.detail} [{one.code}]" for one in each.diagnostics)
            works = Text("works", style="green") if each.works else Text("fails", style="red")
            count = str(len(each.tools))
            table.add_row(each.name, works, f"{each.seconds:.2f} s", count, printable(told))
        out().print(table)
    return OK if all(each.works for each in done) else UNAVAILABLE


def tested(name: str, manifest: Manifest) -> Tested:
    """Start one server, connect and list it; end it again."""
    if name in manifest.unusable:
        notes = tuple(each for each in manifest.warnings if _about(each, name))
        return Tested(name=name, works=False, seconds=0.0, diagnostics=notes)
    with closing(Gateway(vector_store=MemoryVectorStore(), options=OPTIONS)) as gateway:
        gateway.add_config(narrowed(manifest, name))
        began = time.perf_counter()
        report = SyncGateway(gateway).refresh()
        seconds = time.perf_counter() - began
        tools = [each for each in SyncGateway(gateway).list_tools() if each.server == name]
    works = all(each.code != "source_load_failed" for each in report.diagnostics)
    return Tested(
        name=name,
        works=works,
        seconds=seconds,
        tools=tuple(each.name for each in tools),
        diagnostics=report.diagnostics,
    )


def _chosen(names: Sequence[str], manifest: Manifest) -> Sequence[str]:
    every = tuple(dict.fromkeys((*manifest.servers, *manifest.virtual, *manifest.unusable)))
    for name in names:
        if name not in every:
            told = ", ".join(every) or "none"
            raise InvalidRequestError(f"{name!r} is no configured server: {told}")
    return names or every
