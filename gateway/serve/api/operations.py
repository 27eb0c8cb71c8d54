"""Operations of the API: routes, checks and the OpenAPI 3.1 document are made from them.

The schemas of the document are those of the pydantic models.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from types import MethodType
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from pydantic_core import PydanticSerializationError
from starlette.requests import Request
from starlette.responses import Response

from gateway.runtime import VERSION
from gateway.runtime.text import visible_json
from gateway.serve.api.problems import MEDIA_TYPE, ProblemDetails, RefusedError
from gateway.serve.auth import LIVENESS, WRITE
from gateway.types import Caller

DOCUMENT_PATH = "/openapi.json"
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_REF = "#/components/schemas/{model}"
_ALWAYS = frozenset({403, 404, 405, 421, 500, 503})
"""Problems of any request: wrong origin, no such path, no such method, wrong host, ..."""
_ID_PARAMETER: Mapping[str, Any] = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "Of the entity; a slash in it may stand as it is, or as %2F.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 1024},
    "example": "agent:catalog/travel-planner",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """One request, after all checks."""

    caller: Caller
    key: str = ""
    """The id in the path."""
    request: Any = None
    """The body or the parameters, as the operation's own model."""


Handler: TypeAlias = Callable[..., Awaitable[BaseModel | Response]]
"""Takes its routes and an `ApiCall`; returns the body, or a response with headers of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of the API, and the method that answers it.

    Its name in the document is that of the method, its summary the first line of the docstring.
    """

    method: str
    path: str
    """With ``{id}`` for an entity's id."""
    handler: Handler
    response: type[BaseModel] | None
    """None has no body."""
    statuses: tuple[int, ...] = (200,)
    """Those of success, the usual one first."""
    right: str = ""
    """The scope that it needs; see `gateway.serve.auth`."""
    parameters: type[BaseModel] | None = None
    body: type[BaseModel] | None = None


def operation(method: str, path: str, **details: Any) -> Callable[[Handler], Operation]:
    """Make an operation of a method; *details* are the other fields of `Operation`."""
    return lambda handler: Operation(method=method, path=path, handler=handler, **details)


def operations_of(routes: object) -> Iterator[Operation]:
    """Yield the operations of the class of *routes*, in their order, bound to *routes*."""
    for value in vars(type(routes)).values():
        if isinstance(value, Operation):
            yield replace(value, handler=MethodType(value.handler, routes))


def respond(
    body: BaseModel | None,
    status: int,
    headers: Mapping[str, str] | None = None,
    *,
    media_type: str = "application/json",
) -> Response:
    """Return the response that bears *body*; None is an empty one."""
    return Response(
        b"" if body is None else _to_json(body),
        status_code=status,
        headers={**HEADERS, **(headers or {})},
        media_type=None if body is None else media_type,
    )


async def read_limited(request: Request, max_bytes: int, what: str) -> bytes:
    """Return the body of *request*.

    Raises:
        RefusedError: 413, for more than *max_bytes* bytes; *what* names it.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > max_bytes:
            raise RefusedError(413, "too_large", f"{what} may take {max_bytes} bytes")
    return bytes(body)


def problem(error: RefusedError) -> Response:
    """Return the response for a refusal."""
    return respond(error.details, error.status, error.headers, media_type=MEDIA_TYPE)


def _to_json(body: BaseModel) -> str:
    try:
        return body.model_dump_json()
    except PydanticSerializationError:
        # UTF-8 cannot write a lone surrogate, which texts of the host's own may hold.
        return json.dumps(visible_json(body.model_dump(mode="json")), ensure_ascii=False)


def document(operations: Sequence[Operation], *, is_open: bool) -> Mapping[str, Any]:
    """Return the OpenAPI document.

    Args:
        operations: All operations of the API.
        is_open: Whether no operation needs a token.
    """
    paths: dict[str, dict[str, Any]] = {}
    models: dict[type[BaseModel], JsonSchemaMode] = {ProblemDetails: "serialization"}
    for operation in operations:
        entry = _describe(operation, needs_token=not is_open and operation.path != LIVENESS)
        paths.setdefault(operation.path, {})[operation.method.lower()] = entry
        models |= {operation.body: "validation"} if operation.body else {}
        models |= {operation.response: "serialization"} if operation.response else {}
    _, schemas = models_json_schema(list(models.items()), ref_template=_REF)
    components: dict[str, Any] = {"schemas": schemas["$defs"]}
    if not is_open:
        components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Gateway catalog",
            "version": VERSION,
            "description": "MCP servers, tools, agents and skills, found by one search.",
        },
        "paths": paths,
        "components": components,
    }


def _describe(operation: Operation, *, needs_token: bool) -> Mapping[str, Any]:
    first, *others = operation.handler.__name__.split("_")
    entry: dict[str, Any] = {
        "operationId": first + "".join(word.capitalize() for word in others),
        "summary": (inspect.getdoc(operation.handler) or "").partition("\n")[0],
        "responses": _responses(operation, needs_token=needs_token),
        "security": [{"bearer": []}] if needs_token else [],
        "parameters": list(_parameters(operation)),
    }
    if operation.right:
        entry["description"] = f"Needs the scope `{operation.right}`."
    if operation.body:
        entry["requestBody"] = {"required": True, "content": _content(operation.body)}
    return entry


def _content(model: type[BaseModel], media_type: str = "application/json") -> Mapping[str, Any]:
    return {media_type: {"schema": {"$ref": _REF.format(model=model.__name__)}}}


def _responses(operation: Operation, *, needs_token: bool) -> Mapping[str, Any]:
    refusals = {*_ALWAYS}
    refusals |= {400, 413, 415, 422} if operation.body else set()
    refusals |= {422} if operation.parameters or "{" in operation.path else set()
    refusals |= {401} if needs_token else set()
    refusals |= {409} if operation.right == WRITE else set()
    content = {"content": _content(operation.response)} if operation.response else {}
    success = {
        str(status): {"description": HTTPStatus(status).phrase, **content}
        for status in operation.statuses
    }
    problem = {
        "description": "A problem (RFC 9457).",
        "content": _content(ProblemDetails, MEDIA_TYPE),
    }
    return success | {str(status): problem for status in sorted(refusals)}


def _parameters(operation: Operation) -> Iterator[Mapping[str, Any]]:
    if "{id}" in operation.path:
        yield _ID_PARAMETER
    if operation.parameters is None:
        return
    schema = operation.parameters.model_json_schema()
    for name, property_schema in schema["properties"].items():
        yield {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": property_schema.pop("description", ""),
            "schema": property_schema,
        }
