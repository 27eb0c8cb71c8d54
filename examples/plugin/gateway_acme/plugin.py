"""The hooks of the example. Modules that take long to import are imported inside the functions.

pip install examples/plugin
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.hookspecs import PluginCommand, hookimpl


@hookimpl
def register_embedders() -> Mapping[str, Callable[[], Any]]:
    """Register the embedder of ``Gateway(embedder="acme")``."""
    from .embedder import AcmeEmbedder  # noqa: PLC0415

    return {"acme": AcmeEmbedder}


@hookimpl
def register_call_hooks() -> Sequence[object]:
    """Register a guardrail around every call."""
    from .guardrail import Guardrail  # noqa: PLC0415

    return [Guardrail()]


@hookimpl
def register_commands() -> Mapping[str, PluginCommand]:
    """Register ``gateway acme``."""
    summary = "Show the words that the embedder of Acme reads."
    return {"acme": PluginCommand(summary=summary, module="gateway_acme.command")}


@hookimpl
def register_meta_tools(gateway: Any) -> Sequence[object]:  # noqa: ARG001  (a call has the gateway)
    """Register a tool that models see beside search and call."""
    from gateway.discovery.call_handler import MetaCall  # noqa: PLC0415
    from gateway.discovery.meta_tools import MetaTool  # noqa: PLC0415

    async def count_tools(call: MetaCall) -> str:
        tools = await call.gateway.list_tools(caller=call.tools.caller)
        return f"{len(tools)} tools"

    return [
        MetaTool(
            name="count_tools",
            description="Count the tools that {search} can find.",
            properties={},
            answer=count_tools,
            read_only=True,
        )
    ]


@hookimpl
def register_routes(gateway: Any) -> Mapping[str, object]:
    """Register ``/plugins/acme/tools`` of ``gateway serve --http``."""
    from starlette.applications import Starlette  # noqa: PLC0415
    from starlette.requests import Request  # noqa: PLC0415
    from starlette.responses import JSONResponse  # noqa: PLC0415
    from starlette.routing import Route  # noqa: PLC0415

    from gateway.serve.auth import CALLER  # noqa: PLC0415

    async def tools(request: Request) -> JSONResponse:
        found = await gateway.list_tools(caller=request.scope[CALLER])
        return JSONResponse([tool.id for tool in found])

    return {"acme": Starlette(routes=[Route("/tools", tools)])}
