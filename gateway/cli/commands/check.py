"""`gateway check`: whether tools can be called, before an unattended run."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated

from typer import Argument

from gateway.catalog.approvals import COMMAND_LINE_PIN
from gateway.cli import options
from gateway.cli.command import Output, command, command_group
from gateway.cli.commands.servers import is_about, start_server
from gateway.cli.exit_codes import NEEDS_PERSON, OK, RETRY_LATER, UNKNOWN
from gateway.cli.session import ONE_COMMAND, command_options, open_gateway, open_store, read_config
from gateway.cli.tables import table
from gateway.config.manifest import Manifest
from gateway.errors import InvalidRequestError
from gateway.mcp.servers import HttpServer, OAuth
from gateway.options import Options
from gateway.plugins.quality.tool_checks import VERDICTS, ServerState, check_tools, worst
from gateway.storage.oauth_tokens import OpenTokens, open_tokens, with_token_store
from gateway.sync import SyncGateway
from gateway.types import ANYONE, Caller

_CODES = dict(zip(VERDICTS, (OK, RETRY_LATER, NEEDS_PERSON, UNKNOWN), strict=True))
_WITH_DIGEST = re.compile(r"(.+)@([0-9a-f]{16})")
_FAILED = frozenset({"source_load_failed", "source_stale"})

app = command_group()


@command(app)
def check(
    ids: Annotated[
        list[str],
        Argument(
            metavar="ID…",
            help="Tools as server/name; server/name@DIGEST for the schemas of that digest alone.",
        ),
    ],
    *,
    live: Annotated[bool, "Start the servers of these tools and list them first."] = False,
    config: options.Config = options.DEFAULT_CONFIG,
    caller: Caller | None = None,
) -> Output:
    """Check whether tools can be called, before an unattended run.

    Each is ready (0), to be retried later (10), in need of a person (11), or unknown (12); the
    highest of these is the exit code. Without --live no server is started or asked. With --json
    the digest of each tool's schemas is printed.
    """
    manifest = read_config(config)
    wanted = dict(map(_wanted, ids))
    behind = {tool: _server_behind(manifest, tool) for tool in wanted}
    live_faults = _start(manifest, behind.values()) if live else {}
    own = command_options(manifest, ONE_COMMAND)
    # What changed has to be seen here; nothing can be called through this gateway.
    stored = replace(own, upstream=replace(own.upstream, stored_only=True, on_change="warn"))
    with open_gateway(manifest, strategy="graph", options=stored) as gateway:
        snapshot = SyncGateway(gateway).snapshot()
    states = _states(manifest, own, frozenset(behind.values()), live_faults)
    by_tool = {tool: states[server] for tool, server in behind.items()}
    checks = check_tools(wanted, snapshot, by_tool, caller=caller or ANYONE)
    verdict = worst(each.verdict for each in checks)
    view = table(checks, "tool", "verdict", "reasons", "detail")
    return Output({"verdict": verdict, "tools": checks}, view, code=_CODES[verdict])


def _wanted(text: str) -> tuple[str, str]:
    found = _WITH_DIGEST.fullmatch(text)
    tool, digest = found.groups() if found else (text, "")
    if not all(tool.partition("/")):
        raise InvalidRequestError(f"a tool is named by its id, server/name, not {text!r}")
    return tool, digest


def _server_behind(manifest: Manifest, tool: str) -> str:
    """Return the server of a tool; for one of a virtual server that which it stands for."""
    server, _, name = tool.partition("/")
    virtual = manifest.virtual.get(server)
    return virtual.tools[name].server if virtual and name in virtual.tools else server


def _start(manifest: Manifest, servers: Iterable[str]) -> Mapping[str, str]:
    """Start and list each of *servers* that is configured; return why it failed, "" if not."""
    tests = [start_server(name, manifest) for name in set(servers) & manifest.servers.keys()]
    return {
        test.name: "; ".join(item.detail for item in test.diagnostics if item.code in _FAILED)
        for test in tests
    }


def _states(
    manifest: Manifest, own: Options, servers: frozenset[str], live: Mapping[str, str]
) -> dict[str, ServerState]:
    targets = {name: manifest.servers[name] for name in servers & manifest.servers.keys()}
    with open_store(own) as store:
        stored = store.listings.read(
            {target.fingerprint: manifest.owner(name) for name, target in targets.items()}
        )
        tokens = open_tokens(own, store)
        without = {name for name, target in targets.items() if _is_empty(name, target, tokens)}
    states = {}
    for name in servers - targets.keys():
        reasons = [item.detail for item in manifest.warnings if is_about(item, name)]
        why = "; ".join(reasons) or f"no server {name!r} is configured, or it lacks the tool"
        states[name] = ServerState(name=name, listed=False, unusable=why)
    for name, target in targets.items():
        of = stored[target.fingerprint]
        noted = of.recent_failure(time.time(), own.upstream.failure_ttl_s)
        failure = live.get(name, noted)
        approved, seen = of.pins.get(COMMAND_LINE_PIN, ("", ""))
        states[name] = ServerState(
            name=name,
            listed=of.listing is not None,
            changed=approved != seen,
            signed_out=name in without or f"gateway login {name}" in failure,
            failure=failure,
        )
    return states


def _is_empty(name: str, target: object, tokens: OpenTokens) -> bool:
    """Return whether *target* signs in, and no token is kept."""
    auth = with_token_store(name, target, tokens).auth if isinstance(target, HttpServer) else None
    if not isinstance(auth, OAuth) or auth.per_user or auth.tokens is None:
        return False
    return not auth.tokens.read()
