"""Options of provisioning: what it may fetch, trust and install, and how long it may take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gateway.checks import at_least, check, share

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionOptions:
    """Where servers outside the catalog are searched, and the policy that lets them in."""

    registry: str = ""
    """Base URL of an MCP registry (API v0.1); empty fetches nothing."""
    known: bool = True
    """Use the bundled list of well-known servers."""
    namespaces: tuple[str, ...] = ()
    """Trusted names of a registry: ``namespace/*``, or one ``namespace/name``."""
    indexes: tuple[str, ...] = ()
    """Addresses of package indexes that an entry may name: those that this machine uses."""
    enough: float = 0.9
    """A local tool of this confidence serves: nothing outside is searched."""
    min_confidence: float = 0.9
    """A server below this is never taken without asking a person."""
    candidates: int = 5
    """Servers that a result lists."""
    max_ranked: int = 500
    """Of more entries, words preselect so many; the gateway's own strategy ranks those."""
    cache_s: float = 24 * 3600.0
    """How long a registry's answer serves before it is fetched again."""
    fetch_timeout_s: float = 60.0
    """For all pages together."""
    max_pages: int = 300
    max_page_bytes: int = 4 * _MIB
    max_entries: int = 30_000
    install_timeout_s: float = 600.0
    """For each command of an install."""
    folder: Path | None = None
    """The folder of packages and the audit; None is ``servers`` in the user's data folder."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        check(
            self,
            share("enough", self.enough),
            share("min_confidence", self.min_confidence),
            at_least("candidates", self.candidates, 1),
            at_least("max_ranked", self.max_ranked, 1),
            at_least("cache_s", self.cache_s, 0),
            at_least("fetch_timeout_s", self.fetch_timeout_s, 0.001),
            at_least("max_pages", self.max_pages, 1),
            at_least("max_page_bytes", self.max_page_bytes, 1024),
            at_least("max_entries", self.max_entries, 1),
            at_least("install_timeout_s", self.install_timeout_s, 0.001),
            *map(_pattern, self.namespaces if isinstance(self.namespaces, tuple) else ()),
        )


def _pattern(text: str) -> str:
    namespace, slash, name = str(text).partition("/")
    whole = bool(namespace and slash and name) and "*" not in namespace
    fits = whole and (name == "*" or "*" not in name)
    return "" if fits else f"{text!r} is no namespace/* and no namespace/name"
