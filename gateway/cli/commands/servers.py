"""`gateway servers`: list, test, add and remove the servers of a configuration."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from rich.text import Text
from typer import Argument, Option

from gateway.cli import options
from gateway.cli.command import command, command_group
from gateway.cli.commands.approve import changed_name
from gateway.cli.exit_codes import NOTHING, OK, UNAVAILABLE
from gateway.cli.import_clients.conversion import Conversion
from gateway.cli.output import Output
from gateway.cli.session import DEFAULT_CONFIG, ONE_COMMAND, read_config, select_server
from gateway.cli.tables import plain_table
from gateway.embed.cache import MemoryVectorStore
from gateway.errors import ConfigError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.manifests.config_file import read_text, server_table, set_server, write_text
from gateway.manifests.json_edit import without_member
from gateway.manifests.manifest import Manifest
from gateway.manifests.mcp_json import parse_manifest
from gateway.mcp.servers import StdioServer
from gateway.options import Options
from gateway.options.environment import catalog_store_path
from gateway.storage.listing_store import SqliteListingStore
from gateway.sync import SyncGateway
from gateway.types import Diagnostic

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_REFERENCE = re.compile(
    rf"\$\{{{_VARIABLE.pattern}\}}|env:{_VARIABLE.pattern}|keyring:.+/.+"
)
_ANY_REFERENCE = re.compile(r"\$\{[^}]*\}|\b(?:env|keyring):[\w./-]+")
_OAUTH_KEYS = (
    "callback_port",
    "client_id",
    "client_metadata_url",
    "client_secret",
    "scope",
    "store",
)

app = command_group(
    "servers", help_text="Add, list, test and remove the servers of your configuration."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """What the configuration and the stores hold of one server."""

    name: str
    kind: Literal["program", "address", "virtual", ""] = ""
    target: str = ""
    """The program, the address without its path, or the number of aliases."""
    state: Literal["listed", "never listed", "unusable", "disabled"]
    tools: int | None = None
    """How many it listed last; None if it was never listed."""
    age_s: float | None = None
    """Seconds since then."""
    pins: Literal["kept", "changed", "none"] = "none"
    changed: tuple[str, ...] = ()
    """What is not as it was approved; the server's own name stands for its command line."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each tool's definition as the server sent it; an alias may be pinned to it."""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTest:
    """The result of starting one server."""

    name: str
    works: bool
    seconds: float
    """To start it, connect and list its tools."""
    tools: tuple[str, ...] = ()
    """The names as clients see them."""
    diagnostics: tuple[Diagnostic, ...] = ()


@command(app)
def add(  # noqa: PLR0913  (one for each option)
    name: Annotated[str, Argument(help="Its name in the configuration.")],
    command: Annotated[
        list[str] | None, Argument(help="After '--': the program and its arguments.")
    ] = None,
    *,
    url: Annotated[str, Option(help="Instead of a program: its address.")] = "",
    env: Annotated[
        list[str] | None, Option("--env", "-e", help="NAME=VALUE for the program.")
    ] = None,
    header: Annotated[
        list[str] | None, Option("--header", "-H", help="'Name: value' for the address.")
    ] = None,
    cwd: Annotated[str, Option(help="The program's folder.")] = "",
    bearer_env: Annotated[
        str, Option(metavar="NAME", help="Sign in with the token in this variable.")
    ] = "",
    oauth: Annotated[bool, Option("--oauth", help="Sign in by OAuth.")] = False,
    oauth_set: Annotated[
        list[str] | None, Option(help="KEY=VALUE of it, such as scope=read.")
    ] = None,
    replace: Annotated[bool, Option("--replace", help="Overwrite one of that name.")] = False,
    config: options.Config = None,
) -> Output:
    """Write a server into your configuration. Secrets become references, never copies."""
    auth = _auth_entry(url=url, bearer_env=bearer_env, oauth=oauth, settings=oauth_set or [])
    typed = _entry(command or [], url=url, env=env or [], headers=header or [], cwd=cwd)
    path = config or DEFAULT_CONFIG
    conversion = Conversion()
    entry = conversion.entry(name, typed) | ({} if auth is None else {"auth": auth})
    _check_entry(name, entry)
    text = read_text(path)
    _, table = server_table(text, where=str(path))
    if name in table and not replace and table[name] != entry:
        raise ConfigError(f"{str(path)!r} has a server {name!r}: take another name, or --replace")
    if table.get(name) != entry:
        write_text(path, set_server(text, name, entry, where=str(path)), expected=text)
    notes = [
        f"{item.where} is a secret: it is written as a reference; set {item.variable}"
        for item in conversion.required
    ]
    notes += conversion.notes
    if auth is not None and auth["type"] == "oauth":
        notes.append(f"sign in once: gateway login {name}")
    return Output(
        {"config": str(path), "name": name, "entry": entry, "variables": conversion.required},
        f"{name!r} is in {path}; try it: gateway servers test {name}",
        notes=notes,
    )


def _entry(
    words: Sequence[str], *, url: str, env: Sequence[str], headers: Sequence[str], cwd: str
) -> dict[str, object]:
    if bool(words) == bool(url):
        raise InvalidRequestError("give a program after '--', or an address with --url")
    if url:
        parts = {"headers": _parse_pairs(headers, ":", "--header takes 'Name: value'")}
        return {"url": url, **{key: value for key, value in parts.items() if value}}
    more = {
        "args": list(words[1:]),
        "env": _parse_pairs(env, "=", "--env takes NAME=VALUE"),
        "cwd": cwd,
    }
    return {"command": words[0], **{key: value for key, value in more.items() if value}}


def _parse_pairs(items: Sequence[str], separator: str, message: str) -> dict[str, str]:
    pairs = [item.partition(separator) for item in items]
    if not all(name.strip() and found for name, found, _ in pairs):
        raise InvalidRequestError(message)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _auth_entry(
    *, url: str, bearer_env: str, oauth: bool, settings: Sequence[str]
) -> dict[str, object] | None:
    """Return the member ``auth`` of an entry; None if the server has no sign-in."""
    if not (bearer_env or oauth or settings):
        return None
    if not url:
        raise InvalidRequestError("only an address signs in: give --url")
    if bearer_env and (oauth or settings):
        raise InvalidRequestError("a server takes --bearer-env or --oauth, not both")
    if bearer_env:
        if not _VARIABLE.fullmatch(bearer_env):
            raise InvalidRequestError("--bearer-env takes the name of a variable, not a token")
        return {"type": "bearer", "token": f"env:{bearer_env}"}
    return {"type": "oauth", **dict(map(_parse_oauth_setting, settings))}


def _parse_oauth_setting(text: str) -> tuple[str, object]:
    key, sign, value = (part.strip() for part in text.partition("="))
    if key not in _OAUTH_KEYS or not sign or not value:
        keys = ", ".join(_OAUTH_KEYS)
        raise InvalidRequestError(f"--oauth-set takes KEY=VALUE, KEY one of {keys}")
    if key == "client_secret" and not _SECRET_REFERENCE.fullmatch(value):
        raise InvalidRequestError(
            "client_secret is a reference such as env:NAME: what is typed stays in the history"
        )
    if key != "callback_port":
        return key, value
    if not value.isdecimal():
        raise InvalidRequestError("callback_port is a whole number")
    return key, int(value)


def _check_entry(name: str, entry: Mapping[str, object]) -> None:
    # The values of references are not known here and do not matter.
    plain = _ANY_REFERENCE.sub("x", json.dumps(entry))
    manifest = parse_manifest({"mcpServers": {name: json.loads(plain)}}, where="the server")
    if manifest.unusable:
        raise ConfigError(manifest.warnings[-1].detail)


@command(app)
def remove(
    names: Annotated[list[str], Argument(help="Which.")], *, config: options.Config = None
) -> Output:
    """Take servers out of your configuration."""
    path = config or DEFAULT_CONFIG
    read_config(config)
    before = text = read_text(path)
    for name in names:
        key, table = server_table(text, where=str(path))
        after = without_member(text, (key, name), where=str(path))
        if after == text:
            after = without_member(text, ("virtualServers", name), where=str(path))
        if after == text:
            choices = ", ".join(table) or "none"
            raise InvalidRequestError(f"{name!r} is no configured server: {choices}")
        text = after
    write_text(path, text, expected=before)
    return Output(
        {"config": str(path), "removed": names}, f"taken out of {path}: {', '.join(names)}"
    )


@command(app, "list")
def list_(*, config: options.Config = None) -> Output:
    """Show what is known of each server: state, tools, pins. None is started."""
    statuses = server_statuses(config)
    rows = (
        (
            status.name,
            status.kind,
            status.target,
            "" if status.tools is None else str(status.tools),
            f"changed: {', '.join(status.changed)}" if status.changed else status.pins,
            status.detail
            or ("" if status.age_s is None else f"listed {age_text(status.age_s)}")
            or status.state,
        )
        for status in statuses
    )
    return Output(
        {"config": str(config or DEFAULT_CONFIG), "servers": statuses},
        plain_table("server", "", "", "tools", "pins", "", rows=rows)
        if statuses
        else "No servers are configured: gateway servers add",
        OK if statuses else NOTHING,
    )


def server_statuses(config: Path | None) -> tuple[ServerStatus, ...]:
    """Return the status of each configured server.

    Raises:
        ConfigError: The file cannot be read.
        StoreError: The catalog store cannot be used.
    """
    manifest = read_config(config)
    path = config or DEFAULT_CONFIG
    _, table = server_table(read_text(path), where=str(path))
    names = (*table, *manifest.virtual, *(set(manifest.unusable) - set(table)))
    with closing(SqliteListingStore(catalog_store_path(Options()))) as records:
        return tuple(_status(name, manifest, records) for name in names)


def _status(name: str, manifest: Manifest, records: SqliteListingStore) -> ServerStatus:
    items = sorted(records.changed(manifest.owner(name)))
    changed = tuple(changed_name(name, item) for item in items)
    if virtual := manifest.virtual.get(name):
        aliases = len(virtual.tools) + len(virtual.resources) + len(virtual.prompts)
        return ServerStatus(
            name=name,
            kind="virtual",
            target=f"{aliases} aliases",
            state="listed",
            tools=len(virtual.tools),
            pins="changed" if changed else "kept",
            changed=changed,
        )
    target = manifest.servers.get(name)
    if target is None:
        if name not in manifest.unusable:
            return ServerStatus(name=name, state="disabled", detail="disabled")
        reasons = [item.detail for item in manifest.warnings if _is_about(item, name)] or [""]
        detail = reasons[-1].partition(": ")[2] or reasons[-1]
        return ServerStatus(name=name, state="unusable", detail=detail)
    is_program = isinstance(target, StdioServer)
    status = ServerStatus(
        name=name,
        kind="program" if is_program else "address",
        target=target.command if isinstance(target, StdioServer) else target.origin,
        state="never listed",
        pins="changed" if changed else "none",
        changed=changed,
    )
    stored = records.listing(target.fingerprint)
    if stored is None:
        return status
    return replace(
        status,
        state="listed",
        tools=len(stored.listing.tools),
        age_s=max(time.time() - stored.listed_at, 0.0),
        pins="changed" if changed else "kept",
        digests=stored.listing.digests,
    )


def _is_about(warning: Diagnostic, name: str) -> bool:
    return f"server {name!r}" in warning.detail or f"server name {name!r}" in warning.detail


def age_text(seconds: float) -> str:
    """Return how long ago *seconds* are, in the largest unit that fits."""
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


@command(app, "test")
def run_tests(
    names: Annotated[list[str] | None, Argument(help="Which; none is all.")] = None,
    *,
    config: options.Config = None,
) -> Output:
    """Start servers, list their tools, time it, and show what is wrong."""
    manifest = read_config(config)
    every = tuple(dict.fromkeys((*manifest.servers, *manifest.virtual, *manifest.unusable)))
    for name in names or ():
        if name not in every:
            choices = ", ".join(every) or "none"
            raise InvalidRequestError(f"{name!r} is no configured server: {choices}")
    tests = [start_server(name, manifest) for name in names or every]
    rows = (
        (
            test.name,
            Text("works", style="green") if test.works else Text("fails", style="red"),
            f"{test.seconds:.2f} s",
            str(len(test.tools)),
            "\n".join(f"{item.detail} [{item.code}]" for item in test.diagnostics),
        )
        for test in tests
    )
    return Output(
        {"config": str(config or DEFAULT_CONFIG), "servers": tests},
        plain_table("server", "", "time", "tools", "", rows=rows),
        OK if all(test.works for test in tests) else UNAVAILABLE,
    )


def start_server(name: str, manifest: Manifest) -> ServerTest:
    """Start one server, list its tools and stop it."""
    if name in manifest.unusable:
        warnings = tuple(item for item in manifest.warnings if _is_about(item, name))
        return ServerTest(name=name, works=False, seconds=0.0, diagnostics=warnings)
    with closing(Gateway(vector_store=MemoryVectorStore(), options=ONE_COMMAND)) as gateway:
        gateway.add_config(select_server(manifest, name))
        sync = SyncGateway(gateway)
        started = time.perf_counter()
        report = sync.refresh()
        seconds = time.perf_counter() - started
        tools = tuple(tool.name for tool in sync.list_tools() if tool.server == name)
    return ServerTest(
        name=name,
        works=all(item.code != "source_load_failed" for item in report.diagnostics),
        seconds=seconds,
        tools=tools,
        diagnostics=report.diagnostics,
    )
