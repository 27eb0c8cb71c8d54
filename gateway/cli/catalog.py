"""`gateway catalog`, as typed. What a command does stands behind a door: see `gateway.cli.app`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.exits import EPILOG
from gateway.cli.options import ConfigOption, JsonOption, KindOption, StatusOption, TagOption
from gateway.cli.screen import reported
from gateway.types import Status

catalog = typer.Typer(
    name="catalog",
    help="Keep agents, skills, servers and things of your own beside the tools.",
    epilog=EPILOG,
    no_args_is_help=True,
)
Namespace = Annotated[str, typer.Option(help="Whose it is; part of the id.")]


@catalog.command(epilog=EPILOG)
def add(  # noqa: PLR0913  (one for each option)
    kind: Annotated[str, typer.Argument(help="agent, skill, server, or a kind of your own.")],
    name: Annotated[str, typer.Argument(help="Its name.")],
    *,
    title: Annotated[str, typer.Option(help="What people call it.")] = "",
    description: Annotated[str, typer.Option("--description", "-d", help="What it is for.")] = "",
    namespace: Namespace = "catalog",
    tag: TagOption = None,
    scope: Annotated[list[str] | None, typer.Option(help="What a caller needs; repeat it.")] = None,
    status: Annotated[Status, typer.Option(help="Drafts are found only on demand.")] = "active",
    metadata: Annotated[str, typer.Option(help="A JSON object; '-' reads standard input.")] = "{}",
    as_json: JsonOption = False,
) -> None:
    """Add an entry, or replace the one with the same kind, namespace and name."""
    with reported(as_json=as_json):
        from gateway.cli import catalogued  # noqa: PLC0415  (the door)

        code = catalogued.add(
            {
                "kind": kind,
                "name": name,
                "title": title,
                "description": description,
                "namespace": namespace,
                "status": status,
                "hints": {"tags": tag or []},
                "scopes": scope or [],
            },
            metadata=metadata,
            as_json=as_json,
        )
    raise typer.Exit(code)


@catalog.command(name="list", epilog=EPILOG)
def list_(  # noqa: PLR0913  (one for each option)
    *,
    kind: KindOption = None,
    tag: TagOption = None,
    status: StatusOption = None,
    after: Annotated[str, typer.Option(help="The id that the page before ended with.")] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Entities a page.")] = 100,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what there is, by id: entries, and what the configured servers have."""
    with reported(as_json=as_json):
        from gateway.cli import catalogued  # noqa: PLC0415  (the door)

        code = catalogued.listed(
            kinds=kind,
            tags=tag,
            statuses=status,
            after=after,
            limit=limit,
            config=config,
            as_json=as_json,
        )
    raise typer.Exit(code)


@catalog.command(epilog=EPILOG)
def show(
    key: Annotated[str, typer.Argument(metavar="ID", help="As list gives it.")],
    *,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", "-f", help="Only this of its metadata, as a.b; repeat it."),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one entity whole, or parts of its metadata."""
    with reported(as_json=as_json):
        from gateway.cli import catalogued  # noqa: PLC0415  (the door)

        code = catalogued.show(key, fields=field, config=config, as_json=as_json)
    raise typer.Exit(code)


@catalog.command(epilog=EPILOG)
def remove(
    key: Annotated[str, typer.Argument(metavar="ID", help="As list gives it.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Remove an entry. What a server lists goes with its server."""
    with reported(as_json=as_json):
        from gateway.cli import catalogued  # noqa: PLC0415  (the door)

        code = catalogued.remove(key, as_json=as_json)
    raise typer.Exit(code)


@catalog.command(name="import", epilog=EPILOG)
def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Agent cards, SKILL.md, mcp.json, bundles, or folders of these."),
    ],
    *,
    namespace: Namespace = "catalog",
    as_json: JsonOption = False,
) -> None:
    """Read manifests into the catalog. Servers are described, not started."""
    with reported(as_json=as_json):
        from gateway.cli import catalogued  # noqa: PLC0415  (the door)

        code = catalogued.imported(paths, namespace=namespace, as_json=as_json)
    raise typer.Exit(code)


@catalog.command(epilog=EPILOG)
def export(
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A .json file, or a folder; default: print a bundle."),
    ] = None,
    kind: KindOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the entries: a bundle as one file; into a folder, agent cards and SKILL.md files."""
    with reported(as_json=as_json):
        from gateway.cli import catalogued  # noqa: PLC0415  (the door)

        code = catalogued.exported(out, kinds=kind, force=force, as_json=as_json)
    raise typer.Exit(code)
