"""What `gateway serve` does. Standard output is for the protocol, standard error for people."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from gateway.cli.exits import OK
from gateway.cli.screen import note, warn
from gateway.cli.settings import QUIET, chosen, made
from gateway.cli.watching import followed
from gateway.config import variables
from gateway.errors import ConfigError, Failed, attempt
from gateway.gateway import Gateway
from gateway.serve.http import HttpOptions, serve_http
from gateway.serve.server import Expose, mcp_server
from gateway.serve.stdio import serve_stdio
from gateway.types import Strategy


def where(
    *, host: str, port: int, token_env: str, hosts: Sequence[str], origins: Sequence[str]
) -> HttpOptions:
    """Read where to listen, the token from the environment.

    Raises:
        ConfigError: If the variable is not set, or the address may not be served like that.
    """
    token = variables(frozenset({token_env})).get(token_env, "").strip() if token_env else ""
    if token_env and not token:
        raise ConfigError(f"the environment variable {token_env} is not set: it holds the token")
    return HttpOptions(
        host=host, port=port, token=token, hosts=tuple(hosts), origins=tuple(origins)
    )


def serve(
    http: HttpOptions | None,
    *,
    expose: Expose,
    config: Path | None,
    documents: Path | None,
    strategy: Strategy | None,
) -> int:
    """Serve until the client hangs up or the process is told to stop.

    Requests are taken at once; the first that needs the catalog waits until it is listed. The
    configuration is read again when it changes, or at SIGHUP.
    """
    with made(config, strategy=chosen(strategy), documents=documents) as (gateway, manifest):
        warn(manifest.warnings)
        asyncio.run(_serve(gateway, http, expose, [Path(manifest.origin)]))
    return OK


async def _serve(
    gateway: Gateway, http: HttpOptions | None, expose: Expose, files: Sequence[Path]
) -> None:
    server = mcp_server(gateway, expose=expose)
    listing = asyncio.create_task(_listed(gateway))
    try:
        async with followed(files, lambda: _reloaded(gateway)):
            if http is None:
                await serve_stdio(server)
            else:
                await serve_http(server, http, listening=lambda url: note(f"serving {url}"))
    finally:
        listing.cancel()


async def _reloaded(gateway: Gateway) -> None:
    """Take up what the configuration says now, and say what that is."""
    done = await attempt(gateway.reload())
    if isinstance(done, Failed):
        note(f"the servers stay as they were: {done.reason}; mend it, and it is read again")
        return
    warn(done.diagnostics)
    parts = {"added": done.added, "changed": done.changed, "removed": done.removed}
    told = "; ".join(f"{what} {', '.join(names)}" for what, names in parts.items() if names)
    note(f"configuration read again: {told or 'nothing changed'}")
    await _listed(gateway)


async def _listed(gateway: Gateway) -> None:
    """List and index before anybody asks, and say what could not be used."""
    report = await attempt(gateway.report())
    if isinstance(report, Failed):
        note(f"the catalog could not be indexed: {report.reason}")
        return
    warn(each for each in report.diagnostics if each.code not in QUIET)
