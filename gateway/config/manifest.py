"""The content of a configuration file as Python objects. The parser is in another module
(`gateway.config.mcp_json`), because it loads pydantic.
"""

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
    """Settings of the chat model that the commands use to rewrite queries in English."""

    model: str
    base_url: str = ""
    """URL of the model service; "" uses the URL in the environment."""
    api_key: str = field(default="", repr=False)
    """API key of the model service; "" uses the key in the environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The content of a configuration file."""

    servers: Mapping[str, StdioServer | HttpServer]
    """Enabled servers, keyed by name, in the order of the file."""
    warnings: tuple[Diagnostic, ...] = ()
    """Warnings about unknown keys and unusable servers, each with a remedy."""
    unusable: tuple[str, ...] = ()
    """Names of the servers whose entries are invalid."""
    trusted: frozenset[str] = frozenset()
    """Names of the servers whose definitions the host trusts."""
    origin: str = ""
    """Path of the file; "" if the content is not from a file."""
    installation: str = ""
    """Owner of the file's approvals, in place of the file's path; "" uses the path. The file itself
    cannot set it."""
    transforms: Mapping[str, tuple[Transform, ...]] = field(default_factory=dict)
    """Transforms of tools, resources and prompts, keyed by server. Servers that show everything
    unchanged are absent."""
    virtual: Mapping[str, VirtualServer] = field(default_factory=dict)
    """Enabled virtual servers, keyed by name, in the order of the file."""
    access: Mapping[str, Access] = field(default_factory=dict)
    """Access of callers to servers and virtual servers, keyed by server."""
    rules: Mapping[str, Access] = field(default_factory=dict)
    """Access rules, keyed by name pattern; see `CatalogOptions.rules`."""
    policies: tuple[AccessPolicy, ...] = ()
    """Policies about which callers may see and call which entities, in the order of the file; see
    `Options.policies`."""
    kinds: Mapping[str, CustomKind] = field(default_factory=dict)
    """Kinds of entries that the file declares, keyed by name."""
    plugins: tuple[str, ...] | None = None
    """Names of the plugins that commands load; see `Options.plugins`."""
    options: object = field(default_factory=dict)
    """Options of commands as JSON, not parsed yet; see `gateway.cli.settings`."""
    normalizer: NormalizerSettings | None = None
    """Settings of the model that rewrites queries; None if the file has no valid ones."""

    @property
    def targets(self) -> Mapping[str, StdioServer | HttpServer | VirtualServer]:
        """Enabled servers, followed by enabled virtual servers, keyed by name."""
        return {**self.servers, **self.virtual}

    def owner(self, name: str) -> str:
        """Return the owner under which the pins of the server *name* are stored."""
        return f"{self.place}#{name}" if self.place else ""

    @property
    def place(self) -> str:
        """Owner of the file's approvals; "" if the content is not from a file."""
        return self.origin and (self.installation or self.origin)


def names_owner(*places: str) -> str:
    """Return the owner under which the pins of exposed names are stored.

    Args:
        places: The `Manifest.place` of each configuration file of a gateway.
    """
    return f"names:{' '.join(sorted({*filter(None, places)}))}"
