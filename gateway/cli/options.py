"""Options that several commands share, as annotations of parameters."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import Annotated

from gateway import types

DEFAULT_CONFIG = Path("mcp.json")
Texts = list[str] | None
"""Values of a repeatable argument or option; None if it is missing."""
Config = Annotated[Path, "--config", "-c", "Configuration file."]
Graph = Annotated[
    Path | None, "--graph", "-g", "Your Markdown-LD documents: a folder, a file or a bundle."
]
Strategy = Annotated[
    types.Strategy | None,
    "Ranking; by default auto if the embedding model is installed, else graph.",
]
Normalize = Annotated[
    str,
    "--normalize",
    "Chat model that rewrites queries in English; its key is in GATEWAY_NORMALIZE_API_KEY.",
]
CHOSEN: ContextVar[tuple[str, ...]] = ContextVar("chosen", default=())
"""Values of ``--set``, each as KEY=VALUE."""
Set = Annotated[Texts, "--set", "Set an option, such as search.limit=8; repeatable."]
Verbose = Annotated[bool, "--verbose", "-v", "Print the log and the standard error of servers."]
Json = Annotated[bool, "--json", "Print one JSON document on standard output."]
Kind = Annotated[Texts, "--kind", "-k", "Only entities of this kind; repeatable."]
Tag = Annotated[Texts, "--tag", "-t", "Only entities with this tag; repeatable."]
Status = Annotated[
    Texts, "--status", "Only entities with this status; repeatable. Default: active and beta."
]
AnyStatus = Annotated[Texts, "--status", "Only entities with this status; repeatable."]
Words = Annotated[
    str, "--text", "Only entities with these words in name, title, description or server."
]
Server = Annotated[Texts, "--server", "Only entities of this server; repeatable."]
Enabled = Annotated[
    bool | None, "--only-enabled/--only-disabled", "Only enabled or disabled entities."
]
Scope = Annotated[Texts, "--scope", "Scope of the caller; repeatable. '*' grants every scope."]
Tenant = Annotated[str, "--tenant", "Tenant of the caller."]
User = Annotated[str, "--user", "User id of the caller."]
DryRun = Annotated[bool, "--dry-run", "Show the changes without writing anything."]
Folder = Annotated[
    Path | None, "--out", "-o", "Folder to write to; by default the output is printed."
]
Force = Annotated[bool, "--force", "Overwrite existing files."]
Registry = Annotated[str, "--registry", "URL of an MCP registry; by default no registry is asked."]
Trust = Annotated[
    Texts, "--trust", "Trusted servers of the registry: namespace/* or namespace/name; repeatable."
]
