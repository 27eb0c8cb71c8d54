"""The meta-tools that a server offers on demand: discover and provision.

* ``discover`` describes the catalog, ``provision`` plans a server for what it cannot do. With
  ``install`` it may also bring one in, if every policy check passes: there is no person to ask.
* A model may give no inputs: it could name any secret of the environment and have it handed over.
* The list of tools stays fixed; the tools of a new server are found by search.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Literal, TypeVar

from mcp import types
from pydantic import BaseModel, Field

from gateway.errors import ConfigError, GatewayError
from gateway.gateway import Gateway
from gateway.provision.discover import LIMIT, discover, overview_for_model
from gateway.provision.provisioner import Provisioner, result_for_model
from gateway.runtime.json_models import StrictModel, read_value
from gateway.serve.mcp_server import ExtraTool
from gateway.types import JsonObject

ExtraName = Literal["discover", "provision", "install"]
M = TypeVar("M", bound=BaseModel)


class _DiscoverArguments(StrictModel):
    intent: str = Field("", description="What is wanted; none tells of everything.")
    limit: int = Field(LIMIT, ge=1, le=50)


class _PlanArguments(StrictModel):
    intent: str = Field(description="What is wanted, in words.")
    pick: str = Field("", description="One of the candidates of an earlier answer, by name.")


class _InstallArguments(_PlanArguments):
    apply: bool = Field(
        default=False,
        description="Install it, if every gate passes; then find its tools by search.",
    )


def extra_tools(
    gateway: Gateway, names: frozenset[ExtraName], provisioner: Provisioner | None = None
) -> Iterator[ExtraTool]:
    """Yield the optional meta-tools for `gateway.serve.mcp_server.mcp_server`.

    Args:
        gateway: The gateway of the catalog.
        names: Which tools are wanted.
        provisioner: Plans and installs; needed for all but ``discover``. Its ``consent`` decides
            which servers may come in.

    Raises:
        ConfigError: A tool needs a provisioner and there is none.
    """
    if "discover" in names:
        yield _discover_tool(gateway)
    if names - {"discover"}:
        if provisioner is None:
            raise ConfigError("provision and install need a Provisioner")
        yield _provision_tool(provisioner, installs="install" in names)


def _discover_tool(gateway: Gateway) -> ExtraTool:
    async def run(arguments: _DiscoverArguments) -> dict[str, object]:
        overview = await discover(gateway, arguments.intent or None, limit=arguments.limit)
        return overview_for_model(overview, max_chars=gateway.options.chat.max_result_chars)

    tool = types.Tool(
        name="discover",
        description=(
            "Tell which servers and tools are here, with their schemas; nothing is installed."
        ),
        input_schema=_schema(_DiscoverArguments),
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
    return ExtraTool(tool=tool, run=_checked(_DiscoverArguments, run))


def _provision_tool(provisioner: Provisioner, *, installs: bool) -> ExtraTool:
    model = _InstallArguments if installs else _PlanArguments

    async def run(arguments: _PlanArguments) -> dict[str, object]:
        apply = isinstance(arguments, _InstallArguments) and arguments.apply
        result = await provisioner.provision(arguments.intent, apply=apply, pick=arguments.pick)
        return result_for_model(result)

    outcome = " and, with apply, bring it in." if installs else ": tells a plan, installs nothing."
    tool = types.Tool(
        name="provision",
        description=f"Find a server for what no tool here can do{outcome}",
        input_schema=_schema(model),
        annotations=types.ToolAnnotations(
            read_only_hint=not installs, destructive_hint=False, open_world_hint=True
        ),
    )
    return ExtraTool(tool=tool, run=_checked(model, run))


def _checked(
    model: type[M], run: Callable[[M], Awaitable[dict[str, object]]]
) -> Callable[[JsonObject], Awaitable[types.CallToolResult]]:
    """Return *run* with its arguments checked, and its errors as answers to the model."""

    async def call(arguments: JsonObject) -> types.CallToolResult:
        try:
            answer = await run(read_value(model, dict(arguments), where=""))
        except GatewayError as error:
            block = types.TextContent(type="text", text=str(error))
            return types.CallToolResult(content=[block], is_error=True)
        text = types.TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=answer)

    return call


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of *model*, without the titles that pydantic makes of names."""
    schema = model.model_json_schema()
    del schema["title"]
    for property_schema in schema["properties"].values():
        del property_schema["title"]
    return schema
