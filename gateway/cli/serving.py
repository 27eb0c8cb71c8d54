"""`gateway serve`, as typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from gateway.cli.options import (
    ConfigOption,
    GraphOption,
    RegistryOption,
    StrategyOption,
    TrustOption,
)
from gateway.cli.screen import reported


def serve(  # noqa: PLR0913  (one for each option)
    *,
    http: Annotated[
        bool, typer.Option("--http/--stdio", help="Streamable HTTP, or this process's own pipes.")
    ] = False,
    expose: Annotated[
        Literal["meta", "all"],
        typer.Option(help="meta: search and call; all: the catalog's tools, in pages."),
    ] = "meta",
    host: Annotated[
        str | None, typer.Option(help="Where to listen.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="0 takes a free one.", show_default="8930")
    ] = None,
    token_env: Annotated[
        str,
        typer.Option(help="The environment variable that holds the token clients must bear."),
    ] = "",
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Another name that requests may call it by.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="A web origin whose pages may speak to it.")
    ] = None,
    extra: Annotated[
        list[str] | None,
        typer.Option(
            "--with", help="discover; provision, which plans; install, which does it; route; next."
        ),
    ] = None,
    api: Annotated[
        bool, typer.Option("--api/--no-api", help="With --http: the catalog as JSON, beside it.")
    ] = True,
    tokens: Annotated[
        Path | None,
        typer.Option(help="With --http: a TOML file of who may use that, with which scopes."),
    ] = None,
    registry: RegistryOption = "",
    trust: TrustOption = None,
    config: ConfigOption = None,
    documents: GraphOption = None,
    strategy: StrategyOption = None,
) -> None:
    """Serve the configured servers' tools as one MCP server."""
    with reported(as_json=False):
        from gateway.cli import served  # noqa: PLC0415  (the door)

        if http:
            where = served.where(
                host=host,
                port=port,
                token_env=token_env,
                hosts=allow_host or (),
                origins=allow_origin or (),
            )
        else:
            given = {
                "--host": host,
                "--port": port,
                "--token-env": token_env,
                "--allow-host": allow_host,
                "--allow-origin": allow_origin,
                "--tokens": tokens,
            }
            served.check_pipes(
                [option for option, said in given.items() if said not in (None, "", [])]
            )
            where = None
        code = served.serve(
            where,
            expose=expose,
            more=served.More(
                extras=served.extras_of(extra or ()),
                advice=frozenset(extra or ()) & served.ADVICE.keys(),
                registry=registry,
                trust=tuple(trust or ()),
                api=api,
                tokens=tokens,
            ),
            config=config,
            documents=documents,
            strategy=strategy,
        )
    raise typer.Exit(code)
