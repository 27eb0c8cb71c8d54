"""The content of a configuration file. `gateway.config.mcp_json` reads it, which loads pydantic."""

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
    """Settings of the chat model that rewrites queries in English for the commands."""

    model: str
    base_url: str = ""
    """URL of the service; "" uses the environment's."""
    api_key: str = field(default="", repr=False)
    """API key; "" uses the environment's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The content of a configuration file."""

    servers: Mapping[str, StdioServer | HttpServer]
    """Enabled servers, keyed by name, in the order of the file."""
    warnings: tuple[Diagnostic, ...] = ()
    """Unknown keys and unusable servers, each with a remedy."""
    unusable: tuple[str, ...] = ()
    """Names of the servers whose entries are invalid."""
    trusted: frozenset[str] = frozenset()
    """Names of the servers whose definitions the host trusts."""
    origin: str = ""
    """Path of the file; "" if the content is not from a file."""
    installation: str = ""
    """Owner of the file's approvals in place of its path. The file itself cannot set it."""
    transforms: Mapping[str, tuple[Transform, ...]] = field(default_factory=dict)
    """Transforms of the servers that do not show all of their tools unchanged, keyed by server."""
    virtual: Mapping[str, VirtualServer] = field(default_factory=dict)
    """Enabled virtual servers, keyed by name, in the order of the file."""
    access: Mapping[str, Access] = field(default_factory=dict)
    """Access of servers and virtual servers, keyed by name."""
    rules: Mapping[str, Access] = field(default_factory=dict)
    """Access rules, keyed by name pattern; see `CatalogOptions.rules`."""
    policies: tuple[AccessPolicy, ...] = ()
    """Policies, in the order of the file; see `Options.policies`."""
    kinds: Mapping[str, CustomKind] = field(default_factory=dict)
    """Kinds of entries that the file declares."""
    plugins: tuple[str, ...] | None = None
    """Names of the plugins that commands load; see `Options.plugins`."""
    options: object = field(default_factory=dict)
    """Options of commands as JSON, not parsed yet; see `gateway.cli.settings`."""
    normalizer: NormalizerSettings | None = None
    """None if the file has no valid normalizer."""

    @property
    def targets(self) -> Mapping[str, StdioServer | HttpServer | VirtualServer]:
        """Servers, then virtual servers, keyed by name."""
        return {**self.servers, **self.virtual}

    def owner(self, name: str) -> str:
        """Return the owner of the pins of server *name*."""
        return f"{self.place}#{name}" if self.place else ""

    @property
    def place(self) -> str:
        """Owner of the file's approvals; "" if the content is not from a file."""
        return self.origin and (self.installation or self.origin)


def names_owner(*places: str) -> str:
    """Return the owner of the pins of exposed names.

    Args:
        places: The `Manifest.place` of each configuration file of a gateway.
    """
    return f"names:{' '.join(sorted({*filter(None, places)}))}"
