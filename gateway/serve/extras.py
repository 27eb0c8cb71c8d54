"""The meta-tools that a server offers on demand: discover and provision.

* ``discover`` tells what is in the catalog, ``provision`` plans a server for what it cannot do.
  With ``install`` it may also bring one in, if every gate passes: nobody can be asked here.
* A model may give no inputs: it could name any secret of the environment and have it handed over.
* The list of tools stays fixed; what is brought in is found by search.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from mcp import types
from mcp.server import Server
from mcp.server.context import ServerRequestContext

from gateway.errors import ConfigError, GatewayError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.provision import rendering
from gateway.provision.discover import LIMIT, discover
from gateway.provision.provisioner import Provisioner

Extra = Literal["discover", "provision", "install"]

_Context = ServerRequestContext[Any]
_INTENT = {"type": "string", "description": "What is wanted, in words."}
_DISCOVER = types.Tool(
    name="discover",
    description="Tell which servers and tools are here, with their schemas; nothing is installed.",
    input_schema={
        "type": "object",
        "properties": {
            "intent": {**_INTENT, "description": "What is wanted; none tells of everything."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": LIMIT},
        },
        "additionalProperties": False,
    },
    annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
)
_PICK = {"type": "string", "description": "One of the candidates of an earlier answer, by name."}
_APPLY = {
    "type": "boolean",
    "default": False,
    "description": "Install it, if every gate passes; then find its tools by search.",
}


class Extras:
    """The optional meta-tools of one server.

    Args:
        gateway: Whose catalog it is.
        wanted: Which of them.
        provisioner: Plans and installs; needed for all but ``discover``. Its ``consent`` decides
            what may come in.

    Raises:
        ConfigError: There is no provisioner for what is wanted.
    """

    def __init__(
        self,
        gateway: Gateway,
        wanted: frozenset[Extra],
        provisioner: Provisioner | None = None,
    ) -> None:
        if wanted - {"discover"} and provisioner is None:
            raise ConfigError("provision and install need a Provisioner")
        self._gateway = gateway
        self._provisioner = provisioner
        self._installs = "install" in wanted
        self.tools = (
            *((_DISCOVER,) if "discover" in wanted else ()),
            *((_provision(applies=self._installs),) if wanted - {"discover"} else ()),
        )
        """As they are listed."""

    def join(self, server: Server) -> None:
        """List them after the tools of *server*, and answer calls of them."""
        if not self.tools:
            return
        listed = server.get_request_handler("tools/list")
        called = server.get_request_handler("tools/call")
        if listed is None or called is None:
            raise AssertionError(server.name)
        names = {tool.name for tool in self.tools}

        async def list_tools(context: _Context, params: Any) -> Any:
            result = await listed.handler(context, params)
            if isinstance(result, types.ListToolsResult) and result.next_cursor is None:
                result.tools = [*result.tools, *self.tools]
            return result

        async def call_tool(context: _Context, params: types.CallToolRequestParams) -> Any:
            if params.name not in names:
                return await called.handler(context, params)
            return await self.call(params.name, params.arguments or {})

        server.add_request_handler("tools/list", listed.params_type, list_tools)
        server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)

    async def call(self, name: str, arguments: Mapping[str, object]) -> types.CallToolResult:
        """Run the tool *name*; a fault becomes an answer that says so."""
        try:
            known = next(tool for tool in self.tools if tool.name == name)
            _check(arguments, known.input_schema["properties"])
            work = self._discover if name == "discover" else self._provision
            answer = await work(arguments)
        except GatewayError as error:
            block = types.TextContent(type="text", text=str(error))
            return types.CallToolResult(content=[block], is_error=True)
        text = types.TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=answer)

    async def _discover(self, arguments: Mapping[str, object]) -> dict[str, object]:
        intent, limit = arguments.get("intent"), arguments.get("limit", LIMIT)
        found = await discover(
            self._gateway,
            intent if isinstance(intent, str) else None,
            limit=limit if isinstance(limit, int) else LIMIT,
        )
        return rendering.discovered(found, max_chars=self._gateway.options.chat.max_result_chars)

    async def _provision(self, arguments: Mapping[str, object]) -> dict[str, object]:
        if self._provisioner is None:
            raise AssertionError(self._installs)
        result = await self._provisioner.provision(
            str(arguments.get("intent", "")),
            apply=self._installs and arguments.get("apply") is True,
            pick=str(arguments.get("pick", "")),
        )
        return rendering.provisioned(result)


def _provision(*, applies: bool) -> types.Tool:
    properties: dict[str, object] = {"intent": _INTENT, "pick": _PICK}
    return types.Tool(
        name="provision",
        description=(
            "Find a server for what no tool here can do"
            + (" and, with apply, bring it in." if applies else ": tells a plan, installs nothing.")
        ),
        input_schema={
            "type": "object",
            "properties": {**properties, "apply": _APPLY} if applies else properties,
            "required": ["intent"],
            "additionalProperties": False,
        },
        annotations=types.ToolAnnotations(
            read_only_hint=not applies, destructive_hint=False, open_world_hint=True
        ),
    )


_TYPES: Mapping[str, type] = {"string": str, "integer": int, "boolean": bool}


def _check(arguments: Mapping[str, object], properties: Mapping[str, Mapping[str, object]]) -> None:
    for name, value in arguments.items():
        wanted = properties.get(name)
        if wanted is None:
            raise InvalidRequestError(f"there is no argument {name!r}: {', '.join(properties)}")
        kind = _TYPES[str(wanted["type"])]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise InvalidRequestError(f"{name!r} must be of type {wanted['type']}")
