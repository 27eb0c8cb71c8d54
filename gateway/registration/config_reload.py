"""The configuration files of a gateway, and what changes when they are read again.

* Equal entries are equal servers: what did not change keeps its session.
* A file that cannot be read changes nothing; an entry that cannot be used leaves its server as it
  was.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gateway.errors import ConfigError
from gateway.manifests.manifest import Manifest
from gateway.mcp.servers import HttpServer, StdioServer
from gateway.options import CustomKind
from gateway.sources.protocol import Transform
from gateway.sources.virtual import VirtualServer
from gateway.types import Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """One server as its file has it."""

    target: StdioServer | HttpServer | VirtualServer
    transforms: tuple[Transform, ...] = ()
    owner: str = ""
    """The file and the name in it; empty if there is no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """What reading the configuration again changed, by name of server."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """As they were: their sessions live on."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What is odd about the files."""


def server_entries(manifest: Manifest) -> dict[str, Configured]:
    """Return the entry of each server in *manifest*, virtual ones last."""
    real = {
        name: Configured(
            target=target, transforms=manifest.transforms.get(name, ()), owner=manifest.owner(name)
        )
        for name, target in manifest.servers.items()
    }
    virtual = {
        name: Configured(target=table, owner=manifest.owner(name))
        for name, table in manifest.virtual.items()
    }
    return real | virtual


def compare(
    before: Mapping[str, Configured], after: Mapping[str, Configured], notes: tuple[Diagnostic, ...]
) -> Reloaded:
    """Return what changed from *before* to *after*."""
    both = [name for name in after if name in before]
    return Reloaded(
        added=tuple(name for name in after if name not in before),
        changed=tuple(name for name in both if after[name] != before[name]),
        removed=tuple(name for name in before if name not in after),
        kept=tuple(name for name in both if after[name] == before[name]),
        diagnostics=notes,
    )


@dataclass(slots=True)
class ConfigFiles:
    """The configuration files of one gateway."""

    servers: dict[str, Configured] = field(default_factory=dict)
    """As they were read last."""
    origins: list[str] = field(default_factory=list)
    """The files, in the order in which they came."""
    kinds: dict[str, CustomKind] = field(default_factory=dict)
    """The kinds that they declare, as they were read last."""
    fixed_kinds: dict[str, CustomKind] = field(default_factory=dict)
    """The kinds that were declared without a file."""

    def add(self, manifest: Manifest, names: Container[str]) -> dict[str, Configured]:
        """Add a file, and return its servers.

        Args:
            manifest: What it says.
            names: The names of servers that are there.

        Raises:
            ConfigError: If the file is there already, or one of its names is taken; nothing is
                added then.
        """
        if manifest.origin and manifest.origin in self.origins:
            raise ConfigError(f"{manifest.origin!r} was added already: reload() reads it again")
        new = server_entries(manifest)
        _check_free(new, names)
        self.servers |= new
        self.kinds |= manifest.kinds
        if manifest.origin:
            self.origins.append(manifest.origin)
        else:
            self.fixed_kinds |= manifest.kinds
        return new

    def read(
        self, names: Container[str]
    ) -> tuple[dict[str, Configured], dict[str, CustomKind], tuple[Diagnostic, ...]]:
        """Read all files again; return their servers, the kinds that they declare, and warnings.

        What came without a file stays as it is.

        Raises:
            ConfigError: If a file cannot be read, or a new name is taken.
        """
        from gateway.manifests.mcp_json import read_manifest  # noqa: PLC0415  (pydantic is heavy: only who reads a file pays for it)

        after = {name: entry for name, entry in self.servers.items() if not entry.owner}
        kinds = dict(self.fixed_kinds)
        notes: list[Diagnostic] = []
        for origin in self.origins:
            manifest = read_manifest(Path(origin))
            kinds |= manifest.kinds
            new = server_entries(manifest)
            notes += manifest.warnings
            for name in manifest.unusable:
                before = self.servers.get(name)
                if before is not None and before.owner == manifest.owner(name):
                    new[name] = before
                    detail = f"{Path(origin).name}: server {name!r} stays as it was"
                    notes.append(Diagnostic(stage="catalog", code="config_warning", detail=detail))
            _check_free(
                {name: entry for name, entry in new.items() if name not in self.servers}, names
            )
            _check_free(new, after)
            after |= new
        return after, kinds, tuple(notes)


def _check_free(new: Mapping[str, Configured], names: Container[str]) -> None:
    for name in new:
        if name in names:
            raise ConfigError(
                f"a server {name!r} is there already: remove it first, or choose another name"
            )
