"""The part of a gateway that reads configuration files, and reads them again when they changed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from gateway.config.manifest import Manifest
from gateway.errors import ConfigError, attempt
from gateway.options import CustomKind
from gateway.registration.config_files import ConfigFiles, Reloaded
from gateway.registration.sources import GatewaySources
from gateway.types import Diagnostic


class GatewayConfiguration(GatewaySources):
    """The configuration files of one gateway. Safe from any thread."""

    def add_config(self, config: str | Path | Manifest) -> tuple[Diagnostic, ...]:
        """Register the servers of an ``mcp.json``; return warnings about it.

        Raises:
            ConfigError: If the file cannot be read as one, or a server's name is taken.
            ClosedError: After `close`.
        """
        self._bridge.check_open()
        if not isinstance(config, str | Path | Manifest):
            raise ConfigError(
                f"config must be a path or a Manifest, got {type(config).__name__}: for what is "
                "read already, parse_manifest(…)"
            )
        from gateway.config.mcp_json import read_manifest  # noqa: PLC0415  (pydantic is heavy: only who reads a file pays for it)

        manifest = config if isinstance(config, Manifest) else read_manifest(Path(config))
        manifest = replace(manifest, installation=self._installation)
        for name, entry in self._config_files.add(manifest, self._registry).items():
            self._servers.add(name, entry)
        self._declare_kinds(self._config_files.kinds)
        self._registry.set_rules("files", *self._config_files.rules)
        self._registry.set_policies("files", self._config_files.policies)
        return manifest.warnings

    async def reload(self) -> Reloaded:
        """Read the configuration files again and apply what changed.

        What did not change keeps its session, and what was approved meanwhile is let in again.

        Raises:
            ConfigError: A file cannot be used; everything is as it was.
            ClosedError: After `close`.
        """
        return await self._bridge.run(self._reload)

    @cached_property
    def _reloading(self) -> asyncio.Lock:
        """Held while the files are read again."""
        return asyncio.Lock()

    async def _reload(self) -> Reloaded:
        async with self._reloading:
            before = self._config_files
            after, changes = await asyncio.to_thread(before.read, self._registry)
            async with self.gate.auditor.change("config.reload", detail=changes.summary):
                await self._apply(before, after, changes)
            return changes

    async def _apply(self, before: ConfigFiles, after: ConfigFiles, changes: Reloaded) -> None:
        restarted = [
            name
            for name in changes.changed
            if not before.servers[name].is_same_session(after.servers[name])
        ]
        cached = self._servers.cached
        ended = (cached[name] for name in (*changes.removed, *restarted) if name in cached)
        await asyncio.gather(*(attempt(source.close()) for source in ended))
        for name in changes.removed:
            self._drop(name)
        for name in (*changes.added, *changes.changed):
            self._servers.change(name, after.servers[name], restart=name in restarted)
        self._config_files = after
        self._declare_kinds(after.kinds)
        self._registry.set_rules("files", *after.rules)
        self._registry.set_policies("files", after.policies)
        self._servers.recheck(changes.kept)
        if self._entity_registry.recheck():
            self._registry.mark_dirty(self._entries.server)

    def _declare_kinds(self, kinds: Mapping[str, CustomKind]) -> None:
        if self._entries.declare(kinds):
            self._registry.mark_dirty(self._entries.server)
