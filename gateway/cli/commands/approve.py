"""`gateway approve`: approve what changed since it was approved."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

from typer import Argument, Option

from gateway.catalog.approvals import COMMAND_LINE_PIN
from gateway.cli import options
from gateway.cli.command import command, command_group
from gateway.cli.exit_codes import NOTHING, OK
from gateway.cli.output import Output
from gateway.cli.session import read_config
from gateway.errors import InvalidRequestError
from gateway.manifests.manifest import Manifest
from gateway.options import Options
from gateway.options.environment import catalog_store_path
from gateway.storage.listing_store import SqliteListingStore

app = command_group()


@command(app)
def approve(
    names: Annotated[
        list[str] | None,
        Argument(help="A server, or a tool as server/tool; none lists what changed."),
    ] = None,
    *,
    everything: Annotated[bool, Option("--all", help="Approve all that changed.")] = False,
    config: options.Config = None,
) -> Output:
    """Approve tools and command lines that changed since they were approved."""
    manifest = read_config(config)
    with closing(SqliteListingStore(catalog_store_path(Options()))) as records:
        changes = {
            changed_name(server, name): (manifest.owner(server), name)
            for server in (*manifest.servers, *manifest.virtual)
            for name in sorted(records.changed(manifest.owner(server)))
        }
        approved = list(changes) if everything else _select(names or [], changes, manifest)
        for name in approved:
            owner, item = changes[name]
            records.approve(owner, [item])
    pending = [name for name in changes if name not in approved]
    lines = [f"approved  {name}" for name in approved] + [f"changed   {name}" for name in pending]
    return Output(
        {"approved": approved, "changed": pending},
        "\n".join(lines) or "nothing changed",
        OK if approved or not names else NOTHING,
    )


def changed_name(server: str, item: str) -> str:
    """Return how a change is shown: the server for its command line, else ``server/tool``."""
    return server if item == COMMAND_LINE_PIN else f"{server}/{item}"


def _select(names: list[str], changes: dict[str, tuple[str, str]], manifest: Manifest) -> list[str]:
    servers = (*manifest.servers, *manifest.virtual)
    for name in names:
        if name.partition("/")[0] not in servers:
            choices = ", ".join(servers) or "none"
            raise InvalidRequestError(f"{name!r} belongs to no configured server: {choices}")
    # A server's name stands for its command line and for all of its tools.
    return [name for name in changes if name in names or name.partition("/")[0] in names]
