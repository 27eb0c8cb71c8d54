from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from gateway.config.manifest import Manifest
from gateway.errors import ConfigError, attempt
from gateway.servers.config_files import ConfigFiles, Reloaded
from gateway.servers.servers import Servers
from gateway.types import Diagnostic


@dataclass(eq=False, repr=False)
class Configuration:
    """Adds and reloads the configuration files of one gateway. Safe from any thread.

    *change* returns a context manager that records a change of the gateway.
    """

    servers: Servers
    change: Callable[..., AbstractAsyncContextManager[None]]
    _reloading: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def add(self, config: str | Path | Manifest) -> tuple[Diagnostic, ...]:
        """Add the servers of an ``mcp.json``, and return warnings about the file.

        Raises:
            ConfigError: If the file is invalid, or a server's name is taken.
            ClosedError: If the gateway was closed.
        """
        self.servers.bridge.check_open()
        if not isinstance(config, str | Path | Manifest):
            raise ConfigError(
                f"config must be a path or a Manifest, got {type(config).__name__}; parse a "
                "document by parse_manifest(…)"
            )
        from gateway.config.mcp_json import read_manifest  # noqa: PLC0415  (pydantic is heavy: only who reads a file pays for it)

        manifest = config if isinstance(config, Manifest) else read_manifest(Path(config))
        manifest = replace(manifest, installation=self.servers.options.installation)
        files, registry = self.servers.files, self.servers.registry
        registry.make_visibility(manifest.policies)  # refuses policies that no plugin would enforce
        for name, entry in files.add(manifest, registry).items():
            self.servers.pool.add(name, entry)
        self._declare(files)
        return manifest.warnings

    async def reload(self) -> Reloaded:
        """Read the configuration files again, and apply the changes.

        Unchanged servers keep their session. Newly approved definitions become available.

        Raises:
            ConfigError: If a file is invalid; then nothing changes.
            ClosedError: If the gateway was closed.
        """
        return await self.servers.bridge.run(self._reload)

    async def _reload(self) -> Reloaded:
        async with self._reloading:
            before = self.servers.files
            after, changes = await asyncio.to_thread(before.read, self.servers.registry)
            self.servers.registry.make_visibility(after.policies)
            async with self.change("config.reload", detail=changes.summary):
                await self._apply(before, after, changes)
            return changes

    async def _apply(self, before: ConfigFiles, after: ConfigFiles, changes: Reloaded) -> None:
        pool = self.servers.pool
        restarted = [
            name
            for name in changes.changed
            if not before.servers[name].is_same_session(after.servers[name])
        ]
        ended = (*changes.removed, *restarted)
        sources = (pool.cached[name] for name in ended if name in pool.cached)
        await asyncio.gather(*(attempt(source.close()) for source in sources))
        for name in changes.removed:
            pool.remove(name)
        for name in (*changes.added, *changes.changed):
            pool.change(name, after.servers[name], restart=name in restarted)
        self.servers.files = after
        self._declare(after)
        await self.servers.recheck(changes.kept)

    def _declare(self, files: ConfigFiles) -> None:
        if self.servers.entries.declare(files.kinds):
            self.servers.mark_entries()
        self.servers.registry.set_rules("files", *files.rules)
        self.servers.registry.set_policies("files", files.policies)
