"""The options that several commands share, as annotations of their parameters."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import Annotated

from gateway import types

DEFAULT_CONFIG = Path("mcp.json")
"""The configuration that commands read if none is named: that of the current folder."""
Texts = list[str] | None
"""An argument that may be repeated."""
Config = Annotated[Path, "--config", "-c", "The configuration."]
Graph = Annotated[
    Path | None, "--graph", "-g", "Your Markdown-LD documents: a folder, file or bundle."
]
Strategy = Annotated[
    types.Strategy | None, "Default: auto with the embedded model installed, else graph."
]
Normalize = Annotated[
    str,
    "--normalize",
    "A chat model that rewrites queries in English; its key is GATEWAY_NORMALIZE_API_KEY.",
]
CHOSEN: ContextVar[tuple[str, ...]] = ContextVar("chosen", default=())
"""What ``--set`` of the running command says, each as KEY=VALUE."""
Set = Annotated[Texts, "--set", "KEY=VALUE for an option, such as search.limit=8; repeat it."]
Verbose = Annotated[bool, "--verbose", "-v", "Show what servers write to standard error, and more."]
Json = Annotated[bool, "--json", "Print one JSON document on standard output."]
Kind = Annotated[Texts, "--kind", "-k", "Only of this kind; repeat it for more."]
Tag = Annotated[Texts, "--tag", "-t", "With this tag; repeat it for more."]
Status = Annotated[Texts, "--status", "Without any: active, beta; repeat it."]
AnyStatus = Annotated[Texts, "--status", "Of this status; repeat it for more."]
Words = Annotated[str, "--text", "With these words in name, title, description or server."]
Server = Annotated[Texts, "--server", "Of this server; repeat it for more."]
Enabled = Annotated[bool | None, "--only-enabled/--only-disabled", "Default: both."]
Scope = Annotated[
    Texts, "--scope", "A scope of the caller; repeat it for more, '*' is every scope."
]
Tenant = Annotated[str, "--tenant", "The caller's tenant."]
User = Annotated[str, "--user", "The caller's user."]
DryRun = Annotated[bool, "--dry-run", "Show what would be done; write nothing."]
Folder = Annotated[Path | None, "--out", "-o", "A folder to write to."]
Force = Annotated[bool, "--force", "Overwrite existing files."]
Registry = Annotated[str, "--registry", "An MCP registry's URL; else none is asked."]
Trust = Annotated[Texts, "--trust", "A namespace/*, or namespace/name, you trust."]
