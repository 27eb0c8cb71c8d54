"""What a gateway is told of: functions, servers, sources. `Sources` does the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gateway.manifests.manifest import Manifest
from gateway.mcp.supervisor import State
from gateway.registration.config_reload import Reloaded
from gateway.registration.sources import Sources
from gateway.sources.protocol import Function, Shape, Source
from gateway.sources.virtual_servers import Alias
from gateway.types import Diagnostic, Hints, ToolDefinition


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
        """Offer a Python function, sync or async, and give its canonical id.

        Its signature, annotations and docstring become the tool's schema and description.

        Args:
            function: Every parameter must be one that a JSON object can carry.
            name: The tool's name; None is the function's own.
            description: None is the docstring's text.
            hints: What else it should be found by, and how it behaves.
            replace: Take the place of a tool of the same name.

        Raises:
            ConfigError: If the signature cannot be called with a JSON object, or the name is
                taken.
            ClosedError: After `close`.
        """
        return self._sources.add_tool(
            function, name=name, description=description, hints=hints, replace=replace
        )

    def remove_tool(self, name: str) -> bool:
        """Take a Python function away again; say whether it was there.

        Args:
            name: Its own name or its canonical id.
        """
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
        """Register an MCP server; it is started or called when something needs its tools.

        Give one of *command* (a child process over stdio), *url* (streamable HTTP) or *server*
        (a server object of the mcp package in this process).

        Args:
            name: How it is called here: at most 64 characters of ``[A-Za-z0-9_.-]``.
            command: The program, run without a shell.
            args: Its arguments.
            env: Added to a safe base environment.
            cwd: Its working folder.
            url: Where it listens.
            headers: Sent with every request; keep secrets in the environment.
            server: The object itself, or a `HttpServer` that signs in.
            hints: More to find its tools by, by the names that are shown.
            trusted: Whether the host stands in for what it says of its tools.
            shapes: What is shown of its tools, such as ``Filter(deny=("delete_*",))``.

        Raises:
            ConfigError: If not exactly one of the three is given, or the name is taken or
                illegal.
            ClosedError: After `close`.
        """
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
        """Register names of your own for things of other servers, which may come later.

        Args:
            name: How it is called here.
            tools: By the name that is shown: ``server/tool``, or an `Alias` with a description.
            description: What it is for.
            resources: By the URI that is shown: ``server/URI``, or an `Alias`.
            prompts: By the name that is shown: ``server/prompt``, or an `Alias`.

        Raises:
            ConfigError: If a name is taken or illegal.
            ClosedError: After `close`.
        """
        self._sources.add_virtual_server(
            name, tools, description=description, resources=resources, prompts=prompts
        )

    def add_config(self, config: str | Path | Manifest) -> tuple[Diagnostic, ...]:
        """Register the servers of an ``mcp.json``, and give what was odd about it.

        Raises:
            ConfigError: If the file cannot be read as one, or a server's name is taken.
            ClosedError: After `close`.
        """
        return self._sources.add_config(config)

    async def reload(self) -> Reloaded:
        """Read the configuration files again, and become what they say.

        What did not change keeps its session, and what was approved meanwhile is let in again.

        Raises:
            ConfigError: A file cannot be used; everything is as it was.
            ClosedError: After `close`.
        """
        return await self._sources.reload()

    def add_source(
        self,
        source: Source,
        *,
        hints: Mapping[str, Hints] | None = None,
        itself: ToolDefinition | None = None,
    ) -> None:
        """Register any source of tools: whatever lists and calls like one is one.

        Args:
            source: Its ``server`` is its name here.
            hints: More to find its tools by, by the source's own tool name.
            itself: The source as something to be found itself: of kind ``server`` and of its name.

        Raises:
            ConfigError: If the name is taken, or *itself* is something else.
            ClosedError: After `close`.
        """
        self._sources.add_source(source, hints=hints, itself=itself)

    async def remove_server(self, name: str) -> bool:
        """Forget a server and close its session; say whether it was there."""
        return await self._sources.remove_server(name)

    def server_states(self) -> Mapping[str, State]:
        """Say of each server: ``idle``, ``connecting``, ``active``, ``failed`` or ``closed``."""
        return self._sources.states()
