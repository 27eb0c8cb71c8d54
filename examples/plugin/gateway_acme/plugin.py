"""The hooks of the example. Modules that take long to import are imported inside the functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.hookspecs import PluginCommand, hookimpl


class Pinned:
    """A signal of ranking: tools with the tag ``pinned`` gain half a deviation."""

    name, order, weight = "pinned", 1000, 0.5

    def score(self, pool: Any) -> Any:
        """Return 1 for each candidate with the tag, else 0."""
        return pool.snapshot.eligibility.has("tag", "pinned")[pool.positions].astype("float32")


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

    about: dict[str, Any] = {"name": "count_tools", "description": "Count what {search} can find."}
    return [MetaTool(**about, properties={}, answer=count_tools, read_only=True)]


@hookimpl
def register_signals() -> Sequence[object]:
    """Register a term of the score of the strategy ``auto``."""
    return [Pinned()]


@hookimpl
def register_routes(gateway: Any) -> Mapping[str, object]:
    """Register ``/plugins/acme/tools`` of ``gateway serve --http``."""
    from starlette.requests import Request  # noqa: PLC0415
    from starlette.responses import JSONResponse  # noqa: PLC0415
    from starlette.routing import Route, Router  # noqa: PLC0415

    from gateway.serve.auth import CALLER  # noqa: PLC0415

    async def tools(request: Request) -> JSONResponse:
        found = await gateway.list_tools(caller=request.scope[CALLER])
        return JSONResponse([tool.id for tool in found])

    return {"acme": Router(routes=[Route("/tools", tools)])}
