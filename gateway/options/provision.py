"""Options of provisioning: what it may fetch, trust and install, and how long it may take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from gateway.options.validation import Meta, OptionObject, PositiveCount, Seconds, Share, Timeout

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionOptions(OptionObject):
    """Where servers outside the catalog are searched, and the policy that lets them in."""

    registry: str = ""
    """Base URL of an MCP registry (API v0.1); empty fetches nothing."""
    known: bool = True
    """Use the bundled list of well-known servers."""
    namespaces: tuple[str, ...] = ()
    """Trusted names of a registry: ``namespace/*``, or one ``namespace/name``."""
    indexes: tuple[str, ...] = ()
    """Addresses of package indexes that an entry may name: those that this machine uses."""
    enough: Share = 0.9
    """A local tool of this confidence serves: nothing outside is searched."""
    min_confidence: Share = 0.9
    """A server below this is never taken without asking a person."""
    candidates: PositiveCount = 5
    """Servers that a result lists."""
    max_ranked: PositiveCount = 500
    """Of more entries, words preselect so many; the gateway's own strategy ranks those."""
    cache_s: Seconds = 24 * 3600.0
    """How long a registry's answer serves before it is fetched again."""
    fetch_timeout_s: Timeout = 60.0
    """For all pages together."""
    max_pages: PositiveCount = 300
    max_page_bytes: Annotated[int, Meta(ge=1024)] = 4 * _MIB
    max_entries: PositiveCount = 30_000
    install_timeout_s: Timeout = 600.0
    """For each command of an install."""
    folder: Path | None = None
    """The folder of packages and the audit; None is ``servers`` in the user's data folder."""

    def _fault(self) -> str:
        for pattern in self.namespaces:
            namespace, slash, name = pattern.partition("/")
            is_whole = bool(namespace and slash and name) and "*" not in namespace
            if not is_whole or (name != "*" and "*" in name):
                return f"{pattern!r} is no namespace/* and no namespace/name"
        return ""
