"""Content of a configuration file, parsed by `gateway.config.mcp_json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.mcp.servers import HttpServer, StdioServer
from gateway.options import AccessPolicy, CustomKind
from gateway.sources.protocol import Transform
from gateway.sources.virtual import VirtualServer
from gateway.types import Access, Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalizerSettings:
    """Chat model of the commands, which rewrites queries in English."""

    model: str
    base_url: str = ""
    """URL of the service; "" uses the environment."""
    api_key: str = field(default="", repr=False)
    """API key; "" uses the environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Content of a configuration file."""

    servers: Mapping[str, StdioServer | HttpServer]
    """Enabled servers, keyed by name, in the order of the file."""
    warnings: tuple[Diagnostic, ...] = ()
    """Warnings about unknown keys and unusable servers, with remedies."""
    unusable: tuple[str, ...] = ()
    """Names of servers with invalid entries."""
    trusted: frozenset[str] = frozenset()
    """Names of servers whose definitions the host trusts."""
    origin: str = ""
    """Path of the file, or ""."""
    installation: str = ""
    """Owner of the file's approvals in place of its path, or "". The file itself cannot set it."""
    transforms: Mapping[str, tuple[Transform, ...]] = field(default_factory=dict)
    """Transforms of tools, resources and prompts, keyed by the servers that have some."""
    virtual: Mapping[str, VirtualServer] = field(default_factory=dict)
    """Enabled virtual servers, keyed by name, in the order of the file."""
    access: Mapping[str, Access] = field(default_factory=dict)
    """Access to servers and virtual servers, keyed by name."""
    rules: Mapping[str, Access] = field(default_factory=dict)
    """Access rules, keyed by name pattern; see `CatalogOptions.rules`."""
    policies: tuple[AccessPolicy, ...] = ()
    """Policies in the order of the file; see `Options.policies`."""
    kinds: Mapping[str, CustomKind] = field(default_factory=dict)
    """Declared kinds of entries, keyed by name."""
    plugins: tuple[str, ...] | None = None
    """Plugins that commands load; see `Options.plugins`."""
    options: object = field(default_factory=dict)
    """Options of commands as JSON, not parsed yet; see `gateway.cli.settings`."""
    normalizer: NormalizerSettings | None = None
    """Model that rewrites queries; None without valid settings."""

    @property
    def targets(self) -> Mapping[str, StdioServer | HttpServer | VirtualServer]:
        """Enabled servers, then virtual servers, keyed by name."""
        return {**self.servers, **self.virtual}

    def owner(self, name: str) -> str:
        """Return the owner of a server's approvals."""
        return f"{self.place}#{name}" if self.place else ""

    @property
    def place(self) -> str:
        """Owner of the file's approvals; "" without a file."""
        return self.origin and (self.installation or self.origin)


def names_owner(*places: str) -> str:
    """Return the owner of approvals of exposed names, from the `Manifest.place` of each file."""
    return f"names:{' '.join(sorted({*filter(None, places)}))}"
