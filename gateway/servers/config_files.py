"""The configuration files of a gateway: the servers that they name, and what changed in them."""

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
    """One server as its file, or code, has it."""

    target: object
    transforms: tuple[Transform, ...] = ()
    owner: str = ""
    """The file and the name in it; empty if there is no file."""
    access: Access = NO_ACCESS_RULE
    """What the host says of the use of all of it."""
    trusted: bool = False
    """Whether the host stands in for what it says of its tools."""

    def is_same_session(self, other: Configured) -> bool:
        """Whether a session of *other* serves this one too."""
        return (self.target, self.trusted) == (other.target, other.trusted)


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

    @property
    def summary(self) -> str:
        """What changed, in words."""
        parts = {"added": self.added, "changed": self.changed, "removed": self.removed}
        listed = (f"{what} {', '.join(names)}" for what, names in parts.items() if names)
        return "; ".join(listed) or "no server changed"


@dataclass(slots=True)
class ConfigFiles:
    """The configuration files of one gateway.

    Equal entries are equal servers: what did not change keeps its session. A file that cannot be
    read changes nothing; an entry that cannot be used leaves its server as it was.
    """

    servers: dict[str, Configured] = field(default_factory=dict)
    """As they were read last, and those that came without a file."""
    manifests: list[Manifest] = field(default_factory=list)
    """What the files say, in the order in which they came; one without an origin is no file."""

    @property
    def kinds(self) -> dict[str, CustomKind]:
        """The kinds that they declare."""
        return {name: kind for each in self.manifests for name, kind in each.kinds.items()}

    @property
    def rules(self) -> tuple[Mapping[str, Access], ...]:
        """The rules of each file."""
        return tuple(each.rules for each in self.manifests)

    @property
    def policies(self) -> tuple[AccessPolicy, ...]:
        """The policies of all files, in their order."""
        return tuple(policy for each in self.manifests for policy in each.policies)

    def add(self, manifest: Manifest, names: Container[str]) -> dict[str, Configured]:
        """Add a file, and return its servers.

        Args:
            manifest: What it says.
            names: The names of servers that are there.

        Raises:
            ConfigError: If the file is there already, or one of its names is taken; nothing is
                added then.
        """
        if manifest.origin and manifest.origin in [each.origin for each in self.manifests]:
            raise ConfigError(f"{manifest.origin!r} was added already: reload() reads it again")
        new = _server_entries(manifest)
        _check_free(new, names)
        self.servers |= new
        self.manifests.append(manifest)
        return new

    def read(self, names: Container[str]) -> tuple[ConfigFiles, Reloaded]:
        """Return the files as they are now, and what changed.

        What came without a file stays as it is.

        Raises:
            ConfigError: If a file cannot be read, or a new name is taken.
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
    """Return the entry of each server in *manifest*, virtual ones last."""
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
