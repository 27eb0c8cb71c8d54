"""Options of provisioning: registry, trust, installation and limits."""

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
    """Base URL of an MCP registry (API v0.1); empty fetches nothing."""
    known: bool = True
    """True searches the bundled list of well-known servers."""
    namespaces: tuple[str, ...] = ()
    """Trusted names in a registry: ``namespace/*`` or ``namespace/name``."""
    indexes: tuple[str, ...] = ()
    """Addresses of package indexes that an entry may name: the indexes that this machine
    uses."""
    enough: Share = 0.9
    """Confidence of a local tool at which servers outside the catalog are not searched."""
    min_confidence: Share = 0.9
    """Minimum confidence for installing a server without asking a person."""
    candidates: PositiveCount = 5
    """Maximum number of servers in a result."""
    max_ranked: PositiveCount = 500
    """Maximum number of entries that the gateway's strategy ranks. Words preselect them."""
    cache_s: Seconds = 24 * 3600.0
    """Lifetime of a registry's answer."""
    fetch_timeout_s: Timeout = 60.0
    """Timeout for all pages together."""
    max_pages: PositiveCount = 300
    max_page_bytes: Annotated[int, Meta(ge=1024)] = 4 * _MIB
    max_entries: PositiveCount = 30_000
    install_timeout_s: Timeout = 600.0
    """Timeout for each command of an installation."""
    folder: Path | None = None
    """Folder of packages and the audit; None is ``servers`` in the user's data folder."""

    def _fault(self) -> str:
        for pattern in self.namespaces:
            namespace, slash, name = pattern.partition("/")
            is_whole = bool(namespace and slash and name) and "*" not in namespace
            if not is_whole or (name != "*" and "*" in name):
                return f"{pattern!r} is no namespace/* and no namespace/name"
        return ""
