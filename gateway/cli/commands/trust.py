"""`gateway approve` and `gateway login`: decisions of a person."""

from __future__ import annotations

import asyncio
import threading
import webbrowser
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated

from rich.console import Group
from rich.text import Text

from gateway.attention.changes import (
    NAME,
    Change,
    difference_lines,
    difference_of,
    find_changes,
    find_similar,
)
from gateway.catalog.approvals import COMMAND_LINE_PIN
from gateway.cli import options
from gateway.cli.command import Output, command, command_group, note
from gateway.cli.session import audited, check_configured, command_options, open_store, read_config
from gateway.cli.tables import document, printable
from gateway.config.manifest import Manifest, names_owner
from gateway.errors import ConfigError
from gateway.mcp.servers import HttpServer, OAuth
from gateway.options import Options
from gateway.sources.listing_store import ListingStore
from gateway.storage.oauth_tokens import open_tokens, with_token_store

_SIGN_IN_S = 600
"""Maximum time for a sign-in in seconds. A person may have to find a password first."""

app = command_group()


@command(app)
def approve(
    names: Annotated[
        options.Texts, "Servers, or tools as server/tool; by default changes are only listed."
    ] = None,
    *,
    everything: Annotated[bool, "--all", "Approve all changes."] = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Approve tools and command lines that changed since they were approved.

    The differences are shown. name:NAME gives a tool name to another tool after the server of the
    former tool left the configuration.
    """
    manifest = read_config(config)
    servers, wanted_names = (*manifest.servers, *manifest.virtual), frozenset(names or ())
    for name in wanted_names:
        if not name.startswith(NAME):
            check_configured(name.partition("/")[0], servers)
    own_options = command_options(manifest)
    with open_store(own_options) as store:
        records = store.listings
        changes = changes_of(manifest, records)
        differences = {
            change.label: difference_of(change, records.definition) for change in changes
        }
        similar = similar_of(manifest, records)
        approved = []
        for change in changes:
            # A server's name selects its command line and all of its tools.
            if everything or not wanted_names.isdisjoint((change.label, change.server)):
                with audited(own_options, store, "approve", change.label):
                    records.approve(change.owner, [change.item], seen=change.after)
                approved.append(change.label)
    pending = [label for label in differences if label not in approved]
    data = {"approved": approved, "changed": pending, "differences": differences}
    notes = [f"nearly equal names: {', '.join(keys)}" for keys in similar]
    parts = (
        Text(f"\n{printable(label)}\n{text}") for label, text in _difference_texts(differences)
    )
    view = Group(document({"approved": approved, "changed": pending}), *parts)
    return Output(
        data | {"similar": similar},
        view if changes else "nothing changed since the last approval",
        found=approved or not names,
        notes=notes,
    )


def changes_of(manifest: Manifest, records: ListingStore) -> tuple[Change, ...]:
    """Return the items of *manifest* that differ from their approval.

    Raises:
        StoreError: If the store cannot be read.
    """
    servers = (*manifest.servers, *manifest.virtual)
    owners = {server: manifest.owner(server) for server in servers}
    return find_changes(records, owners, names_owner(manifest.place))


def similar_of(manifest: Manifest, records: ListingStore) -> tuple[tuple[str, ...], ...]:
    """Return groups of the configured servers' tools with nearly equal names.

    Raises:
        StoreError: If the store cannot be read.
    """
    own_names = {
        f"{server}/{item}": item
        for server in manifest.servers
        for item in records.pins(manifest.owner(server))
        if item and ":" not in item
    }
    return find_similar(own_names, records, names_owner(manifest.place))


def _difference_texts(differences: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, str]]:
    """Yield each label with its changed lines, marked with - and +."""
    for label, difference in differences.items():
        lines = difference_lines(difference)
        changed_lines = [line for line in lines if line[:1] in "+-" and line[2:].strip(" {}[],")]
        yield label, printable("\n".join(changed_lines) or str(difference.get("note", "")))


@command(app)
def login(
    server: Annotated[str, "Name of the server in the configuration."],
    *,
    browser: Annotated[bool, "Open a browser, or only print the address."] = True,
    forget: Annotated[bool, "Sign out instead."] = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Sign in to a server that uses OAuth; its tokens are stored and refreshed."""
    manifest = read_config(config)
    check_configured(server, manifest.servers)
    target = manifest.servers[server]
    if not isinstance(target, HttpServer):
        raise ConfigError(f"server {server!r} is a program on this machine, which has no sign-in")
    own_options = command_options(manifest)
    if own_options.upstream.on_change == "block":
        _check_address(own_options, manifest.owner(server), server, target)
    with open_store(own_options) as store:
        target = with_token_store(server, target, open_tokens(own_options, store))
        return _sign_in(server, target, own_options, browser=browser, forget=forget)


def _sign_in(
    server: str, target: HttpServer, own_options: Options, *, browser: bool, forget: bool
) -> Output:
    if forget:
        if isinstance(target.auth, OAuth) and target.auth.tokens is not None:
            target.auth.tokens.forget()
        return Output({"server": server, "signed_in": False})

    def on_address(url: str) -> None:
        note(f"sign in here: {url}")
        if browser:
            # Some browsers return only when they are closed.
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    limits = replace(own_options.upstream, connect_timeout_s=_SIGN_IN_S)
    from gateway.mcp.session import sign_in  # noqa: PLC0415  (mcp is heavy: a search needs none)

    listing = asyncio.run(sign_in(server, target, limits, on_address))
    return Output({"server": server, "signed_in": True, "tools": len(listing.tools)})


def _check_address(own_options: Options, owner: str, server: str, target: HttpServer) -> None:
    with open_store(own_options) as store:
        if store.listings.record_seen(owner, {COMMAND_LINE_PIN: target.launch}):
            raise ConfigError(
                f"the address of {server!r} changed since it was approved: review its "
                f"configuration, then: gateway approve {server}"
            )
