"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.types import Strategy

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="An mcp.json; default: the one in this folder."),
]
GraphOption = Annotated[
    Path | None,
    typer.Option("--graph", "-g", help="Your Markdown-LD documents: a folder, file or bundle."),
]
StrategyOption = Annotated[
    Strategy | None,
    typer.Option(help="Default: auto with the embedded model installed, else graph."),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output.")
]
KindOption = Annotated[
    list[str] | None, typer.Option("--kind", "-k", help="Only of this kind; repeat it for more.")
]
TagOption = Annotated[
    list[str] | None, typer.Option("--tag", "-t", help="With this tag; repeat it for more.")
]
StatusOption = Annotated[
    list[str] | None,
    typer.Option("--status", help="active (without any), draft or deprecated; repeat it."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be; write nothing.")]
RegistryOption = Annotated[
    str, typer.Option("--registry", help="An MCP registry's URL; without one, nothing is fetched.")
]
TrustOption = Annotated[
    list[str] | None,
    typer.Option("--trust", help="A registry's namespace/*, or namespace/name, that you trust."),
]
