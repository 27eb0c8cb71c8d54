"""The options that several commands share, as annotations of their parameters."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import Annotated

from typer import Option

from gateway import types

DEFAULT_CONFIG = Path("mcp.json")
"""The configuration that commands read if none is named: that of the current folder."""
Texts = list[str] | None
"""An argument that may be repeated."""
Config = Annotated[Path, Option("--config", "-c", help="The configuration.")]
Graph = Annotated[
    Path | None,
    Option("--graph", "-g", help="Your Markdown-LD documents: a folder, file or bundle."),
]
Strategy = Annotated[
    types.Strategy | None,
    Option(help="Default: auto with the embedded model installed, else graph."),
]
Normalize = Annotated[
    str,
    Option(
        "--normalize",
        help="A chat model that rewrites queries in English; its key is GATEWAY_NORMALIZE_API_KEY.",
    ),
]
CHOSEN: ContextVar[tuple[str, ...]] = ContextVar("chosen", default=())
"""What ``--set`` of the running command says, each as KEY=VALUE."""
Set = Annotated[
    Texts, Option("--set", help="KEY=VALUE for an option, such as search.limit=8; repeat it.")
]
Verbose = Annotated[
    bool, Option("--verbose", "-v", help="Show what servers write to standard error, and more.")
]
Json = Annotated[bool, Option("--json", help="Print one JSON document on standard output.")]
Kind = Annotated[Texts, Option("--kind", "-k", help="Only of this kind; repeat it for more.")]
Tag = Annotated[Texts, Option("--tag", "-t", help="With this tag; repeat it for more.")]
Status = Annotated[Texts, Option("--status", help="Without any: active, beta; repeat it.")]
AnyStatus = Annotated[Texts, Option("--status", help="Of this status; repeat it for more.")]
Words = Annotated[
    str, Option("--text", help="With these words in name, title, description or server.")
]
Server = Annotated[Texts, Option("--server", help="Of this server; repeat it for more.")]
Enabled = Annotated[bool | None, Option("--only-enabled/--only-disabled", help="Default: both.")]
Scope = Annotated[
    Texts, Option("--scope", help="A scope of the caller; repeat it for more, '*' is every scope.")
]
Tenant = Annotated[str, Option("--tenant", help="The caller's tenant.")]
User = Annotated[str, Option("--user", help="The caller's user.")]
DryRun = Annotated[bool, Option("--dry-run", help="Show what would be done; write nothing.")]
Folder = Annotated[Path | None, Option("--out", "-o", help="A folder to write to.")]
Force = Annotated[bool, Option("--force", help="Overwrite existing files.")]
Registry = Annotated[str, Option("--registry", help="An MCP registry's URL; else none is asked.")]
Trust = Annotated[Texts, Option("--trust", help="A namespace/*, or namespace/name, you trust.")]
