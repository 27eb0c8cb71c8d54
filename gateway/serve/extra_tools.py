"""Optional meta-tools of the server: discover and provision.

``discover`` describes the catalog. ``provision`` plans the installation of a server for a missing
capability. With ``install`` it may also install the server if all policy checks pass.

Models cannot set a server's inputs, because they could name any secret of the environment.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any, Literal

from mcp import types
from pydantic import Field

from gateway.errors import ConfigError, GatewayError, NotApprovedError
from gateway.gateway import Gateway
from gateway.serve.mcp_server import ExtraTool
from gateway.sources.function_schema import describe_function
from gateway.types import ANYONE, Caller, Hints, JsonObject

ExtraName = Literal["discover", "provision", "install"]
Answer = dict[str, Any]
Function = Callable[..., Awaitable[Answer]]


def extra_tools(
    gateway: Gateway,
    names: frozenset[ExtraName],
    provisioner: Any = None,
    *,
    install_scope: str = "",
) -> Iterator[ExtraTool]:
    """Yield the optional meta-tools *names*.

    Args:
        gateway: The gateway of the catalog.
        names: Names of the requested tools.
        provisioner: A `Provisioner`, required for all tools but ``discover``. Its ``consent``
            decides which servers may be installed.
        install_scope: Scope required to install servers. Empty permits all callers.

    Raises:
        ConfigError: If a tool needs a provisioner and none is given.
    """
    if "discover" in names:
        yield _discover_tool(gateway)
    if names - {"discover"}:
        if provisioner is None:
            raise ConfigError("provision and install need a Provisioner")
        yield _provision_tool(provisioner, installs="install" in names, scope=install_scope)


def _discover_tool(gateway: Gateway) -> ExtraTool:
    from gateway.plugins.provision.discover import LIMIT, discover, overview_for_model  # noqa: PLC0415  (it may not be installed)

    def for_caller(caller: Caller) -> Function:
        async def describe(
            intent: str = "", limit: Annotated[int, Field(ge=1, le=50)] = LIMIT
        ) -> Answer:
            """Tell which servers and tools are here, with their schemas; nothing is installed.

            Args:
                intent: What is wanted; none tells of everything.
                limit: At most so many tools.
            """
            overview = await discover(gateway, intent or None, limit=limit, caller=caller)
            return overview_for_model(overview, max_chars=gateway.options.chat.max_result_chars)

        return describe

    annotations = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return _extra_tool("discover", for_caller, annotations)


def _provision_tool(provisioner: Any, *, installs: bool, scope: str) -> ExtraTool:
    from gateway.plugins.provision.provisioner import result_for_model  # noqa: PLC0415  (it may not be installed)

    def for_caller(caller: Caller) -> Function:
        async def install(intent: str, pick: str = "", apply: bool = False) -> Answer:
            """Find a server for what no tool here can do and, with apply, bring it in.

            Args:
                intent: What is wanted, in words.
                pick: One of the candidates of an earlier answer, by name.
                apply: Install it, if every gate passes; then find its tools by search.
            """
            if apply and scope and not caller.holds({scope}):
                raise NotApprovedError(f"installing requires a token with the scope {scope!r}")
            return result_for_model(
                await provisioner.provision(intent, apply=apply, pick=pick, caller=caller)
            )

        async def plan(intent: str, pick: str = "") -> Answer:
            """Find a server for what no tool here can do: tells a plan, installs nothing.

            Args:
                intent: What is wanted, in words.
                pick: One of the candidates of an earlier answer, by name.
            """
            return await install(intent, pick)

        return install if installs else plan

    annotations = types.ToolAnnotations(
        read_only_hint=not installs, destructive_hint=False, open_world_hint=True
    )
    return _extra_tool("provision", for_caller, annotations)


def _extra_tool(
    name: str, for_caller: Callable[[Caller], Function], annotations: types.ToolAnnotations
) -> ExtraTool:
    """Return an additional tool, which checks its arguments and returns errors to the model.

    The signature and docstring of the function from *for_caller* are its definition.
    """
    described = describe_function(for_caller(ANYONE), name=name, description=None, hints=Hints())

    async def run(arguments: JsonObject, caller: Caller) -> types.CallToolResult:
        try:
            answer = await for_caller(caller)(**described.bind(arguments))
        except GatewayError as error:
            block = types.TextContent(type="text", text=str(error))
            return types.CallToolResult(content=[block], is_error=True)
        text = types.TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=answer)

    tool = types.Tool(
        name=name,
        description=described.definition.description,
        input_schema=dict(described.definition.input_schema),
        annotations=annotations,
    )
    return ExtraTool(tool=tool, run=run)
