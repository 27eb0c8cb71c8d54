"""Options of provisioning, which finds and installs new servers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from gateway.options.validation import Meta, OptionObject, PositiveCount, Seconds, Share, Timeout

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionOptions(OptionObject):
    """Sources of new servers, and the policy for installing them."""

    registry: str = ""
    """Base URL of an MCP registry (API v0.1), in which new servers are searched; empty uses
    none."""
    known: bool = True
    """True searches new servers in the bundled list of well-known servers."""
    namespaces: tuple[str, ...] = ()
    """Names of trusted servers in a registry: ``namespace/*`` or ``namespace/name``."""
    indexes: tuple[str, ...] = ()
    """Addresses of the package indexes that this machine uses. The entry of a server may name only
    these indexes."""
    enough: Share = 0.9
    """Confidence of the best local tool from which new servers are not searched."""
    min_confidence: Share = 0.9
    """Minimum confidence of a match at which a server is installed without asking a person."""
    candidates: PositiveCount = 5
    """Maximum number of new servers in a result."""
    max_ranked: PositiveCount = 500
    """Maximum number of registry entries that are ranked by the gateway's strategy. They are
    preselected by their words."""
    cache_s: Seconds = 24 * 3600.0
    """Time for which an answer of a registry is cached."""
    fetch_timeout_s: Timeout = 60.0
    """Timeout for all pages of a registry together."""
    max_pages: PositiveCount = 300
    max_page_bytes: Annotated[int, Meta(ge=1024)] = 4 * _MIB
    max_entries: PositiveCount = 30_000
    install_timeout_s: Timeout = 600.0
    """Timeout for each command of an installation."""
    folder: Path | None = None
    """Folder of installed packages and of their audit records; None is ``servers`` in the user's
    data folder."""

    def _fault(self) -> str:
        for pattern in self.namespaces:
            namespace, slash, name = pattern.partition("/")
            is_whole = bool(namespace and slash and name) and "*" not in namespace
            if not is_whole or (name != "*" and "*" in name):
                return f"{pattern!r} is no namespace/* and no namespace/name"
        return ""
