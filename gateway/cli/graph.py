"""`gateway graph`, as typed. What a command does stands behind a door, as in `gateway.cli.app`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from gateway.cli.exits import EPILOG
from gateway.cli.options import ConfigOption, GraphOption, JsonOption
from gateway.cli.screen import reported

Form = Literal["turtle", "json-ld", "n-triples", "mermaid", "dot", "svg"]

graph = typer.Typer(
    name="graph",
    help="See, draw, ask, check and write down the graph of the tools.",
    epilog=EPILOG,
    no_args_is_help=True,
)


@graph.command(epilog=EPILOG)
def show(
    tool: Annotated[str, typer.Argument(help="Its id or its name; without one: counts.")] = "",
    *,
    config: ConfigOption = None,
    documents: GraphOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count what the graph holds, or list the edges around one tool and where they come from."""
    with reported(as_json=as_json):
        from gateway.cli import graphing  # noqa: PLC0415  (the door)

        code = graphing.show(tool, config=config, documents=documents, as_json=as_json)
    raise typer.Exit(code)


@graph.command(epilog=EPILOG)
def export(
    *,
    form: Annotated[Form, typer.Option("--format", "-f", help="RDF, or a picture.")] = "turtle",
    centre: Annotated[str, typer.Option(help="For a picture: the tool in its middle.")] = "",
    hops: Annotated[int, typer.Option(min=1, help="Edges from the centre, at most.")] = 1,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file to write.")] = None,
    config: ConfigOption = None,
    documents: GraphOption = None,
) -> None:
    """Write the graph as RDF, or draw it, as a whole or around one tool."""
    with reported(as_json=False):
        from gateway.cli import graphing  # noqa: PLC0415  (the door)

        code = graphing.export(
            form, centre=centre, hops=hops, out=out, config=config, documents=documents
        )
    raise typer.Exit(code)


@graph.command(epilog=EPILOG)
def derive(
    *,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder to write to.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.")] = False,
    config: ConfigOption = None,
    documents: GraphOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write what the rules derive as Markdown-LD, for you to read, edit and commit.

    One document a rule and tool; what you declare or forbid yourself is left out. With --json it
    is a bundle that --graph reads.
    """
    with reported(as_json=as_json):
        from gateway.cli import graphing  # noqa: PLC0415  (the door)

        code = graphing.derive(
            out=out, force=force, config=config, documents=documents, as_json=as_json
        )
    raise typer.Exit(code)


@graph.command(epilog=EPILOG)
def validate(
    path: Annotated[Path, typer.Argument(help="A folder, a file or a bundle.")],
    *,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="An mcp.json whose tools the documents may name."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check Markdown-LD documents, and the graph they make with SHACL if pyshacl is installed."""
    with reported(as_json=as_json):
        from gateway.cli import graphcheck  # noqa: PLC0415  (the door)

        code = graphcheck.validate(path, config=config, as_json=as_json)
    raise typer.Exit(code)


@graph.command(epilog=EPILOG)
def propose(  # noqa: PLR0913  (the options of a command)
    *,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder to write to.")] = None,
    model: Annotated[str, typer.Option(help="The chat model; its key is OPENAI_API_KEY.")] = "",
    base_url: Annotated[str, typer.Option(help="Another endpoint of the same wire format.")] = "",
    server: Annotated[list[str] | None, typer.Option(help="Only this one; repeatable.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be asked.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a chat model which tools belong together, for you to read, edit and commit.

    One document a server. What the model says counts for nothing until you give the folder to
    --graph yourself.
    """
    with reported(as_json=as_json):
        from gateway.cli import graphpropose  # noqa: PLC0415  (the door)

        code = graphpropose.propose(
            out=out,
            asking=graphpropose.Asking(
                model=model, base_url=base_url, servers=tuple(server or ()), dry_run=dry_run
            ),
            force=force,
            config=config,
            as_json=as_json,
        )
    raise typer.Exit(code)


@graph.command(epilog=EPILOG)
def query(
    text: Annotated[str, typer.Argument(help="A read-only SPARQL query.")],
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Rows at most.")] = 1000,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds that the query may take.")
    ] = 10.0,
    config: ConfigOption = None,
    documents: GraphOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the graph in SPARQL; nothing is changed and nothing is fetched."""
    with reported(as_json=as_json):
        from gateway.cli import graphing  # noqa: PLC0415  (the door)

        code = graphing.query(
            text,
            limit=limit,
            timeout_s=timeout_s,
            config=config,
            documents=documents,
            as_json=as_json,
        )
    raise typer.Exit(code)
