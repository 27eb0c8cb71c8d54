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
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be; write nothing.")]
