"""`gateway servers`: the servers of a configuration."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from typer import Option

from gateway.attention.changes import change_label
from gateway.cli import options
from gateway.cli.command import Output, command, command_group, parse_pairs
from gateway.cli.exit_codes import OK, UNAVAILABLE
from gateway.cli.session import (
    ONE_COMMAND,
    check_configured,
    command_options,
    open_store,
    read_config,
    select_server,
)
from gateway.cli.tables import age_text, table, to_jsonable
from gateway.config.config_file import read_text, server_table, set_server, write_text
from gateway.config.json_edit import without_member
from gateway.config.manifest import Manifest
from gateway.config.mcp_json import parse_manifest
from gateway.embed.cache import MemoryVectorStore
from gateway.errors import ConfigError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.mcp.servers import StdioServer
from gateway.runtime.naming import check_server_name, to_server_name
from gateway.runtime.text import counted
from gateway.sources.listing_store import ListingStore
from gateway.sync import SyncGateway
from gateway.types import Diagnostic

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_REFERENCE = re.compile(
    rf"\$\{{{_VARIABLE.pattern}\}}|env:{_VARIABLE.pattern}|keyring:.+/.+"
)
_REFERENCE = re.compile(r"\$\{[^}]*\}|\b(?:env|keyring):[\w./-]+")

app = command_group("servers")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """The configured and stored state of one server."""

    name: str
    kind: Literal["program", "address", "virtual", ""] = ""
    target: str = ""
    """Program, address without the path, or number of aliases of a virtual server."""
    state: Literal["listed", "never listed", "unusable", "disabled"]
    tools: int | None = None
    """Number of tools in the last listing; None without a listing."""
    age_s: float | None = None
    """Age of the last listing in seconds; None without a listing."""
    pins: Literal["kept", "changed", "none"] = "none"
    changed: tuple[str, ...] = ()
    """Ids that differ from their approval. The server's name means its command line."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each tool's definition as the server sent it, which an alias may require, keyed by
    tool."""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTest:
    """The result of starting one server."""

    name: str
    works: bool
    seconds: float
    """Duration of start, connection and listing."""
    tools: tuple[str, ...] = ()
    """Tool names as clients see them."""
    diagnostics: tuple[Diagnostic, ...] = ()


@command(app)
def add(
    name: Annotated[str, "Name of the server in the configuration."],
    command: Annotated[options.Texts, "Program and arguments, after '--'."] = None,
    *,
    url: Annotated[str, "Address of the server, instead of a program."] = "",
    env: Annotated[
        options.Texts,
        "--env",
        "-e",
        "Environment variable of the program, as NAME=VALUE; repeatable.",
    ] = None,
    header: Annotated[
        options.Texts,
        "--header",
        "-H",
        "HTTP header for the address, as 'Name: value'; repeatable.",
    ] = None,
    cwd: Annotated[str, "Working folder of the program."] = "",
    bearer_env: Annotated[
        str,
        Option(metavar="NAME", help="Environment variable with a bearer token for the address."),
    ] = "",
    oauth: Annotated[bool, "Sign in by OAuth."] = False,
    oauth_set: Annotated[
        options.Texts, "Setting of OAuth as KEY=VALUE, such as scope=read; repeatable."
    ] = None,
    replace: Annotated[bool, "Overwrite a server with the same name."] = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Add a server to your configuration. Secrets become references, never copies."""
    from gateway.plugins.manifests.client_files import Conversion  # noqa: PLC0415  (it may not be installed)

    check_server_name(name)
    if bool(command) == bool(url):
        raise InvalidRequestError("give a program after '--', or an address with --url")
    program, *arguments = command or [""]
    typed: dict[str, object] = {
        "command": program,
        "args": arguments,
        "env": parse_pairs(env or (), "=", "--env requires NAME=VALUE"),
        "cwd": cwd,
        "url": url,
        "headers": parse_pairs(header or (), ":", "--header requires 'Name: value'"),
    }
    auth = _auth_entry(url, bearer_env, is_oauth=oauth, settings=oauth_set or ())
    conversion = Conversion()
    entry = conversion.entry(name, {key: value for key, value in typed.items() if value}) | auth
    # Checked with placeholders, because references are not resolved here.
    plain = json.loads(_REFERENCE.sub("x", json.dumps(entry)))
    manifest = parse_manifest({"mcpServers": {name: plain}}, where="the server")
    if manifest.unusable:
        raise ConfigError(manifest.warnings[-1].detail)
    text = read_text(config)
    present = server_table(text, where=str(config))[1].get(name)
    if present not in (None, entry) and not replace:
        raise ConfigError(f"{str(config)!r} has a server {name!r}: use another name, or --replace")
    if present != entry:
        write_text(config, set_server(text, name, entry, where=str(config)), expected=text)
    notes = [
        f"{item.where} is a secret, so a reference was written: set {item.variable}"
        for item in conversion.required
    ]
    notes += [*conversion.notes, f"to test it: gateway servers test {name}"]
    if auth and not bearer_env:
        notes.append(f"to sign in: gateway login {name}")
    data = {"config": str(config), "name": name, "entry": entry}
    return Output({**data, "variables": conversion.required}, notes=notes)


def _auth_entry(
    url: str, bearer_env: str, *, is_oauth: bool, settings: Sequence[str]
) -> dict[str, object]:
    """Return the member ``auth`` of an entry; empty without a sign-in."""
    if not (bearer_env or is_oauth or settings):
        return {}
    if not url:
        raise InvalidRequestError("only servers with an address have a sign-in: give --url")
    if bearer_env:
        if is_oauth or settings:
            raise InvalidRequestError("use --bearer-env or --oauth, not both")
        if not _VARIABLE.fullmatch(bearer_env):
            raise InvalidRequestError("--bearer-env requires the name of a variable, not a token")
        return {"auth": {"type": "bearer", "token": f"env:{bearer_env}"}}
    values = {**parse_pairs(settings, "=", "--oauth-set requires KEY=VALUE")}
    if not _SECRET_REFERENCE.fullmatch(str(values.get("client_secret", "env:NAME"))):
        raise InvalidRequestError(
            "client_secret must be a reference such as env:NAME: the shell stores typed secrets"
        )
    return {"auth": {"type": "oauth", **{key: _typed(key, value) for key, value in values.items()}}}


def _typed(key: str, text: str) -> object:
    """Convert *text* to the type of the OAuth setting *key*."""
    if key == "callback_port" and text.isdecimal():
        return int(text)
    return text == "true" if key == "per_user" else text


@command(app)
def remove(
    names: Annotated[list[str], "Servers to remove."],
    *,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Remove servers from your configuration."""
    read_config(config)
    before = text = read_text(config)
    for name in names:
        key, servers = server_table(text, where=str(config))
        after = without_member(text, (key, name), where=str(config))
        if after == text:
            after = without_member(text, ("virtualServers", name), where=str(config))
        if after == text:
            check_configured(name, servers)
        text = after
    write_text(config, text, expected=before)
    return Output({"config": str(config), "removed": names})


@command(app, "list")
def list_(*, config: options.Config = options.DEFAULT_CONFIG) -> Output:
    """List the servers with their state, tools and approvals, without starting them."""
    statuses = server_statuses(config)
    data = {"config": str(config), "servers": statuses}
    if not statuses:
        return Output(data, "No servers are configured; add one: gateway servers add", found=False)
    rows = [{**to_jsonable(status), "listed": age_text(status.age_s)} for status in statuses]
    columns = ("kind", "target", "state", "tools", "listed", "approval=pins", "changed", "detail")
    return Output(data, table(rows, "server=name", *columns))


def server_statuses(config: Path) -> tuple[ServerStatus, ...]:
    """Return the status of each configured server.

    Raises:
        ConfigError: If the file cannot be read.
        StoreError: If the catalog store cannot be used.
    """
    manifest = read_config(config)
    _, servers = server_table(read_text(config), where=str(config))
    names = dict.fromkeys((*map(to_server_name, servers), *manifest.virtual, *manifest.unusable))
    with open_store(command_options(manifest)) as store:
        return tuple(_status(name, manifest, store.listings) for name in names)


def _status(name: str, manifest: Manifest, records: ListingStore) -> ServerStatus:
    if name in manifest.unusable:
        reasons = [item.detail for item in manifest.warnings if is_about(item, name)]
        return ServerStatus(name=name, state="unusable", detail="; ".join(reasons))
    items = sorted(records.changed(manifest.owner(name)))
    status = partial(
        ServerStatus,
        name=name,
        pins="changed" if items else "kept",
        changed=tuple(change_label(name, item) for item in items),
    )
    if virtual := manifest.virtual.get(name):
        tools = len(virtual.tools)
        aliases = counted(tools + len(virtual.resources) + len(virtual.prompts), "alias", "aliases")
        return status(kind="virtual", target=aliases, state="listed", tools=tools)
    target = manifest.servers.get(name)
    if target is None:
        return ServerStatus(name=name, state="disabled")
    if isinstance(target, StdioServer):
        status = partial(status, kind="program", target=target.command)
    else:
        status = partial(status, kind="address", target=target.origin)
    stored = records.listing(target.fingerprint)
    if stored is None:
        return status(state="never listed", **({} if items else {"pins": "none"}))
    return status(
        state="listed",
        tools=len(stored.listing.tools),
        age_s=max(time.time() - stored.listed_at, 0.0),
        digests=stored.listing.digests,
    )


def is_about(warning: Diagnostic, server: str) -> bool:
    """Return whether a configuration's warning names *server*."""
    return f"server {server!r}" in warning.detail or f"server name {server!r}" in warning.detail


@command(app, "test")
def run_tests(
    names: Annotated[options.Texts, "Servers to start; by default all."] = None,
    *,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Start servers, list their tools, and report times and problems."""
    manifest = read_config(config)
    every = tuple(dict.fromkeys((*manifest.servers, *manifest.virtual, *manifest.unusable)))
    for name in names or ():
        check_configured(name, every)
    tests = [start_server(name, manifest) for name in names or every]
    return Output(
        {"config": str(config), "servers": tests},
        table(tests, "server=name", "works", "seconds", "tools", "problems=diagnostics.detail"),
        code=OK if all(test.works for test in tests) else UNAVAILABLE,
    )


def start_server(name: str, manifest: Manifest) -> ServerTest:
    """Start one server, list its tools and stop it."""
    if name in manifest.unusable:
        warnings = tuple(item for item in manifest.warnings if is_about(item, name))
        return ServerTest(name=name, works=False, seconds=0.0, diagnostics=warnings)
    own_options = command_options(manifest, ONE_COMMAND)
    with closing(
        Gateway(strategy="graph", vector_store=MemoryVectorStore(), options=own_options)
    ) as gateway:
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
