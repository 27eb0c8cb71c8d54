from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gateway.config.manifest import Manifest
from gateway.errors import ConfigError
from gateway.options import AccessPolicy, CustomKind
from gateway.sources.protocol import Transform
from gateway.types import Access, Diagnostic
from gateway.types.access import NO_ACCESS_RULE


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """Settings of one server, from a file or from code."""

    target: object
    transforms: tuple[Transform, ...] = ()
    owner: str = ""
    """Owner of the server's pins: the file, and the server's name in it. "" without a file."""
    access: Access = NO_ACCESS_RULE
    """Access of callers to the whole server."""
    trusted: bool = False
    """True if the host trusts the server's definitions."""

    def is_same_session(self, other: Configured) -> bool:
        """Return whether *other*'s running session can be used for this server."""
        return (self.target, self.trusted) == (other.target, other.trusted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """Outcome of a reload, with the names of the servers."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Names of unchanged servers, whose sessions continue."""
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def summary(self) -> str:
        """The changes in one line, for people."""
        parts = {"added": self.added, "changed": self.changed, "removed": self.removed}
        listed = (f"{what} {', '.join(names)}" for what, names in parts.items() if names)
        return "; ".join(listed) or "no server changed"


@dataclass(slots=True)
class ConfigFiles:
    """The configuration files of one gateway.

    If a file is unreadable, a reload changes nothing. An invalid entry keeps its server unchanged.
    """

    servers: dict[str, Configured] = field(default_factory=dict)
    """Settings of all servers, from files and code, keyed by name."""
    manifests: list[Manifest] = field(default_factory=list)
    """Contents of the files, in their order. Manifests without an `origin` come from code."""

    @property
    def kinds(self) -> dict[str, CustomKind]:
        """Kinds that the files declare, keyed by name."""
        return {name: kind for manifest in self.manifests for name, kind in manifest.kinds.items()}

    @property
    def rules(self) -> tuple[Mapping[str, Access], ...]:
        """Access rules of each file, keyed by pattern."""
        return tuple(manifest.rules for manifest in self.manifests)

    @property
    def policies(self) -> tuple[AccessPolicy, ...]:
        """Policies of all files, in their order."""
        return tuple(policy for manifest in self.manifests for policy in manifest.policies)

    def add(self, manifest: Manifest, names: Container[str]) -> dict[str, Configured]:
        """Add a file, and return the settings of its servers, keyed by name.

        Raises:
            ConfigError: If the file was added before, or a server name is in *names*; nothing is
                added then.
        """
        if manifest.origin and manifest.origin in [other.origin for other in self.manifests]:
            raise ConfigError(f"{manifest.origin!r} was added already: reload() reads it again")
        new = _server_entries(manifest)
        _check_free(new, names)
        self.servers |= new
        self.manifests.append(manifest)
        return new

    def read(self, names: Container[str]) -> tuple[ConfigFiles, Reloaded]:
        """Read all files again. Return their new content, and the names of changed servers.

        *names* are the names of all existing servers.

        Raises:
            ConfigError: If a file is unreadable, or the name of a new server is taken.
        """
        from gateway.config.mcp_json import read_manifest  # noqa: PLC0415  (pydantic is heavy: only who reads a file pays for it)

        before = self.servers
        now = {name: entry for name, entry in before.items() if not entry.owner}
        manifests = [
            replace(read_manifest(Path(each.origin)), installation=each.installation)
            if each.origin
            else each
            for each in self.manifests
        ]
        notes: list[Diagnostic] = []
        for manifest in manifests:
            if not manifest.origin:
                continue
            new = _server_entries(manifest)
            notes += manifest.warnings
            for name in manifest.unusable:
                if name in before and before[name].owner == manifest.owner(name):
                    new[name] = before[name]
                    file = Path(manifest.origin).name
                    detail = f"{file}: server {name!r} stays as it was"
                    notes.append(Diagnostic(stage="catalog", code="config_warning", detail=detail))
            _check_free(new.keys() - before.keys(), names)
            _check_free(new, now)
            now |= new
        both = [name for name in now if name in before]
        changes = Reloaded(
            added=tuple(name for name in now if name not in before),
            changed=tuple(name for name in both if now[name] != before[name]),
            removed=tuple(name for name in before if name not in now),
            kept=tuple(name for name in both if now[name] == before[name]),
            diagnostics=tuple(notes),
        )
        return ConfigFiles(servers=now, manifests=manifests), changes


def _server_entries(manifest: Manifest) -> dict[str, Configured]:
    return {
        name: Configured(
            target=target,
            transforms=manifest.transforms.get(name, ()),
            owner=manifest.owner(name),
            access=manifest.access.get(name, NO_ACCESS_RULE),
            trusted=name in manifest.trusted,
        )
        for name, target in manifest.targets.items()
    }


def _check_free(new: Iterable[str], names: Container[str]) -> None:
    for name in new:
        if name in names:
            raise ConfigError(
                f"a server {name!r} is there already: remove it first, or choose another name"
            )
