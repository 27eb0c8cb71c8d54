"""`gateway check`: tests before an unattended run."""

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
            help="Tools as server/name; server/name@DIGEST also requires this digest of schemas.",
        ),
    ],
    *,
    live: Annotated[bool, "Start the servers of these tools and list them first."] = False,
    config: options.Config = options.DEFAULT_CONFIG,
    caller: Caller | None = None,
) -> Output:
    """Check whether tools can be called, before an unattended run.

    Each tool is ready (0), to be retried later (10), blocked until a person acts (11), or unknown
    (12).
    The highest number is the exit code. Without --live no server is started or contacted. --json
    also prints the digest of each tool's schemas.
    """
    manifest = read_config(config)
    digests = dict(map(_parse_id, ids))
    server_of_tool = {tool: _original_server(manifest, tool) for tool in digests}
    live_failures = _start(manifest, server_of_tool.values()) if live else {}
    own_options = command_options(manifest, ONE_COMMAND)
    # Shows changed definitions. This gateway makes no calls, so "warn" is safe.
    stored = replace(
        own_options, upstream=replace(own_options.upstream, stored_only=True, on_change="warn")
    )
    with open_gateway(manifest, strategy="graph", options=stored) as gateway:
        snapshot = SyncGateway(gateway).snapshot()
    states = _states(manifest, own_options, frozenset(server_of_tool.values()), live_failures)
    by_tool = {tool: states[server] for tool, server in server_of_tool.items()}
    checks = check_tools(digests, snapshot, by_tool, caller=caller or ANYONE)
    verdict = worst(tool_check.verdict for tool_check in checks)
    view = table(checks, "tool", "verdict", "reasons", "detail")
    return Output({"verdict": verdict, "tools": checks}, view, code=_CODES[verdict])


def _parse_id(text: str) -> tuple[str, str]:
    match = _WITH_DIGEST.fullmatch(text)
    tool, digest = match.groups() if match else (text, "")
    if not all(tool.partition("/")):
        raise InvalidRequestError(f"a tool id has the form server/name, got {text!r}")
    return tool, digest


def _original_server(manifest: Manifest, tool: str) -> str:
    """Return the server that offers *tool*, or the original of a virtual server's tool."""
    server, _, name = tool.partition("/")
    virtual = manifest.virtual.get(server)
    return virtual.tools[name].server if virtual and name in virtual.tools else server


def _start(manifest: Manifest, servers: Iterable[str]) -> Mapping[str, str]:
    """Start the configured *servers*. Return each failure, keyed by server; "" if it works."""
    tests = [start_server(name, manifest) for name in set(servers) & manifest.servers.keys()]
    return {
        test.name: "; ".join(item.detail for item in test.diagnostics if item.code in _FAILED)
        for test in tests
    }


def _states(
    manifest: Manifest, own_options: Options, servers: frozenset[str], live: Mapping[str, str]
) -> dict[str, ServerState]:
    targets = {name: manifest.servers[name] for name in servers & manifest.servers.keys()}
    with open_store(own_options) as store:
        stored = store.listings.read(
            {target.fingerprint: manifest.owner(name) for name, target in targets.items()}
        )
        tokens = open_tokens(own_options, store)
        signed_out = {
            name for name, target in targets.items() if _lacks_tokens(name, target, tokens)
        }
    states = {}
    for name in servers - targets.keys():
        reasons = [item.detail for item in manifest.warnings if is_about(item, name)]
        fault = "; ".join(reasons) or f"server {name!r} is not configured, or lacks the tool"
        states[name] = ServerState(name=name, listed=False, unusable=fault)
    for name, target in targets.items():
        record = stored[target.fingerprint]
        stored_failure = record.recent_failure(time.time(), own_options.upstream.failure_ttl_s)
        failure = live.get(name, stored_failure)
        approved, current = record.pins.get(COMMAND_LINE_PIN, ("", ""))
        states[name] = ServerState(
            name=name,
            listed=record.listing is not None,
            changed=approved != current,
            signed_out=name in signed_out or f"gateway login {name}" in failure,
            failure=failure,
        )
    return states


def _lacks_tokens(name: str, target: object, tokens: OpenTokens) -> bool:
    auth = with_token_store(name, target, tokens).auth if isinstance(target, HttpServer) else None
    if not isinstance(auth, OAuth) or auth.per_user or auth.tokens is None:
        return False
    return not auth.tokens.read()
