"""`gateway approve` and `gateway login`: what a person has to agree to."""

from __future__ import annotations

import asyncio
import threading
import webbrowser
from contextlib import closing
from typing import Annotated

from typer import Argument, Option

from gateway.catalog.approvals import COMMAND_LINE_PIN
from gateway.cli import options
from gateway.cli.command import Output, command, command_group, note
from gateway.cli.session import check_configured, read_config
from gateway.errors import ConfigError
from gateway.mcp.servers import HttpServer
from gateway.mcp.session import sign_in
from gateway.options import Options, UpstreamOptions
from gateway.options.environment import catalog_store_path, tokens_path
from gateway.storage.catalog import SqliteCatalog
from gateway.storage.oauth_tokens import with_token_store

_SIGN_IN_S = 600
"""A person has to find a password."""

app = command_group()


@command(app)
def approve(
    names: Annotated[
        options.Texts, Argument(help="A server, or a tool as server/tool; none lists what changed.")
    ] = None,
    *,
    everything: Annotated[bool, Option("--all", help="Approve all that changed.")] = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Approve tools and command lines that changed since they were approved."""
    manifest = read_config(config)
    servers, wanted = (*manifest.servers, *manifest.virtual), frozenset(names or ())
    for name in wanted:
        check_configured(name.partition("/")[0], servers)
    with closing(SqliteCatalog(catalog_store_path(Options()))) as records:
        changes = {
            changed_name(server, item): (server, item)
            for server in servers
            for item in sorted(records.changed(manifest.owner(server)))
        }
        approved = []
        for name, (server, item) in changes.items():
            # A server's name stands for its command line and for all of its tools.
            if everything or not wanted.isdisjoint((name, server)):
                records.approve(manifest.owner(server), [item])
                approved.append(name)
    pending = [name for name in changes if name not in approved]
    data = {"approved": approved, "changed": pending}
    return Output(data, None if changes else "nothing changed", found=approved or not names)


def changed_name(server: str, item: str) -> str:
    """Return how a change is shown: the server for its command line, else ``server/tool``."""
    return server if item == COMMAND_LINE_PIN else f"{server}/{item}"


@command(app)
def login(
    server: Annotated[str, Argument(help="Its name in the configuration.")],
    *,
    browser: Annotated[
        bool, Option("--browser/--no-browser", help="Open one, or only print the address.")
    ] = True,
    forget: Annotated[bool, Option("--forget", help="Sign out instead.")] = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Sign in to a server that wants it (OAuth); its tokens are kept and refreshed."""
    servers = read_config(config).servers
    check_configured(server, servers)
    target = servers[server]
    if not isinstance(target, HttpServer):
        raise ConfigError(f"server {server!r} is a program of this machine: it has no sign-in")
    target = with_token_store(server, target, tokens_path(Options()))
    if forget:
        if target.auth is not None and target.auth.tokens is not None:
            target.auth.tokens.forget()
        return Output({"server": server, "signed_in": False})

    def on_address(url: str) -> None:
        note(f"sign in here: {url}")
        if browser:
            # Some browsers return only when they are closed.
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    limits = UpstreamOptions(connect_timeout_s=_SIGN_IN_S)
    listing = asyncio.run(sign_in(server, target, limits, on_address))
    return Output({"server": server, "signed_in": True, "tools": len(listing.tools)})
