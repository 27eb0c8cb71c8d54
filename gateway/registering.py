"""What a gateway is told of: functions, servers, sources. All of it is `Sources`' work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gateway.catalog.configured import Reloaded
from gateway.catalog.manifests import Manifest
from gateway.catalog.sources import Sources
from gateway.catalog.virtual import Alias
from gateway.types import Diagnostic, Hints, ToolDefinition
from gateway.upstream.shapes import Shape
from gateway.upstream.source import Function, Source
from gateway.upstream.supervisor import State


class Registering:
    """The half of a `Gateway` that registers. Immediate; touches no network.

    Args:
        sources: Who does it.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def add_tool(
        self,
        function: Function,
        *,
        name: str | None = None,
        description: str | None = None,
        hints: Hints | None = None,
        replace: bool = False,
    ) -> str:
        """Offer a Python function, sync or async; see `Sources.add_tool`."""
        return self._sources.add_tool(
            function, name=name, description=description, hints=hints, replace=replace
        )

    def remove_tool(self, name: str) -> bool:
        """Take a Python function away again; see `Sources.remove_tool`."""
        return self._sources.remove_tool(name)

    def add_server(  # noqa: PLR0913  (keyword-only options of the public API)
        self,
        name: str,
        *,
        command: str | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        server: object | None = None,
        hints: Mapping[str, Hints] | None = None,
        trusted: bool = False,
        shapes: Sequence[Shape] = (),
    ) -> None:
        """Register an MCP server by *command*, *url* or *server*; see `Sources.add_server`."""
        self._sources.add_server(
            name,
            command=command,
            args=args,
            env=env,
            cwd=cwd,
            url=url,
            headers=headers,
            server=server,
            hints=hints,
            trusted=trusted,
            shapes=shapes,
        )

    def add_virtual_server(
        self,
        name: str,
        tools: Mapping[str, str | Alias],
        *,
        description: str = "",
        resources: Mapping[str, str | Alias] | None = None,
        prompts: Mapping[str, str | Alias] | None = None,
    ) -> None:
        """Give things of other servers names of your own; see `Sources.add_virtual_server`."""
        self._sources.add_virtual_server(
            name, tools, description=description, resources=resources, prompts=prompts
        )

    def add_config(self, config: str | Path | Manifest) -> tuple[Diagnostic, ...]:
        """Register the servers of an ``mcp.json``; see `Sources.add_config`."""
        return self._sources.add_config(config)

    async def reload(self) -> Reloaded:
        """Read the configuration files again; see `Sources.reload`."""
        return await self._sources.reload()

    def add_source(
        self,
        source: Source,
        *,
        hints: Mapping[str, Hints] | None = None,
        itself: ToolDefinition | None = None,
    ) -> None:
        """Register any source of tools; see `Sources.add_source`."""
        self._sources.add_source(source, hints=hints, itself=itself)

    async def remove_server(self, name: str) -> bool:
        """Forget a server and close its session; say whether it was there."""
        return await self._sources.remove_server(name)

    def server_states(self) -> Mapping[str, State]:
        """Say of each server: ``idle``, ``connecting``, ``active``, ``failed`` or ``closed``."""
        return self._sources.states()
