"""What a configuration file says. `gateway.config.mcp_json` reads it, which loads pydantic."""

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
    """The chat model that rewrites queries in English for the commands."""

    model: str
    base_url: str = ""
    """Empty is what the environment says."""
    api_key: str = field(default="", repr=False)
    """Empty is what the environment says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a configuration file says."""

    servers: Mapping[str, StdioServer | HttpServer]
    """By name, in the file's order; the disabled ones are absent."""
    warnings: tuple[Diagnostic, ...] = ()
    """Unknown keys, and servers that cannot be used, each with the mend."""
    unusable: tuple[str, ...] = ()
    """The names of the servers that cannot be used."""
    trusted: frozenset[str] = frozenset()
    """The names of the servers that the host stands in for."""
    origin: str = ""
    """The file's path; empty if it is none."""
    installation: str = ""
    """What approvals of the file belong to instead of its path. The file itself cannot say it."""
    transforms: Mapping[str, tuple[Transform, ...]] = field(default_factory=dict)
    """What is shown of the tools of a server; those that are not in it show all."""
    virtual: Mapping[str, VirtualServer] = field(default_factory=dict)
    """By name, in the file's order; the disabled ones are absent."""
    access: Mapping[str, Access] = field(default_factory=dict)
    """What it says of the use of servers and virtual servers, by name."""
    rules: Mapping[str, Access] = field(default_factory=dict)
    """The same by a pattern of names; see `CatalogOptions.rules`."""
    policies: tuple[AccessPolicy, ...] = ()
    """In their order; see `Options.policies`."""
    kinds: Mapping[str, CustomKind] = field(default_factory=dict)
    """Kinds of entries that the file declares."""
    plugins: tuple[str, ...] | None = None
    """Names of the plugins that commands load; see `Options.plugins`."""
    options: object = field(default_factory=dict)
    """The options of commands as the file has them, unread; see `gateway.cli.settings`."""
    normalizer: NormalizerSettings | None = None
    """None if the file names none, or one that cannot be used."""

    @property
    def targets(self) -> Mapping[str, StdioServer | HttpServer | VirtualServer]:
        """Servers by name, virtual ones last."""
        return {**self.servers, **self.virtual}

    def owner(self, name: str) -> str:
        """Return the name under which the definitions of server *name* are pinned."""
        return f"{self.place}#{name}" if self.place else ""

    @property
    def place(self) -> str:
        """What approvals of the file belong to; empty if it is no file."""
        return self.origin and (self.installation or self.origin)


def names_owner(*places: str) -> str:
    """Return under which owner the exposed names of tools are pinned.

    Args:
        places: The `Manifest.place` of each configuration file of a gateway.
    """
    return f"names:{' '.join(sorted({*filter(None, places)}))}"
