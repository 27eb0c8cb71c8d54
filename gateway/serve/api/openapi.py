"""The OpenAPI 3.1 document of the operations. Its schemas are those of the pydantic models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from gateway.runtime import VERSION
from gateway.serve.api.operations import Operation
from gateway.serve.api.problems import MEDIA_TYPE, ProblemDetails

PATH = "/openapi.json"
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


def document(operations: Sequence[Operation], *, is_open: bool) -> Mapping[str, Any]:
    """Return the document.

    Args:
        operations: All operations of the API.
        is_open: Whether no operation needs a token.
    """
    paths: dict[str, dict[str, Any]] = {}
    models: dict[type[BaseModel], JsonSchemaMode] = {ProblemDetails: "serialization"}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(
            operation, is_open
        )
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


def _operation(operation: Operation, is_open: bool) -> Mapping[str, Any]:
    needs_token = not (is_open or operation.is_public)
    entry: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": _responses(operation, needs_token=needs_token),
        "security": [{"bearer": []}] if needs_token else [],
    }
    if operation.right:
        entry["description"] = f"Needs the scope `{operation.right}`."
    if operation.body:
        entry["requestBody"] = {"required": True, "content": _json(operation.body)}
    parameters = list(_parameters(operation))
    if parameters:
        entry["parameters"] = parameters
    return entry


def _json(model: type[BaseModel], media_type: str = "application/json") -> Mapping[str, Any]:
    return {media_type: {"schema": {"$ref": _REF.format(model=model.__name__)}}}


def _responses(operation: Operation, *, needs_token: bool) -> Mapping[str, Any]:
    refusals = {*_ALWAYS, *operation.refusals}
    refusals |= {400, 413, 415, 422} if operation.body else set()
    refusals |= {422} if operation.parameters or "{" in operation.path else set()
    refusals |= {401} if needs_token else set()
    content = {"content": _json(operation.response)} if operation.response else {}
    responses: dict[str, Any] = {
        str(status): {"description": HTTPStatus(status).phrase, **content}
        for status in (operation.status, *operation.other_statuses)
    }
    problem = {
        "description": "A problem (RFC 9457).",
        "content": _json(ProblemDetails, MEDIA_TYPE),
    }
    return responses | {str(status): problem for status in sorted(refusals)}


def _parameters(operation: Operation) -> Iterator[Mapping[str, Any]]:
    if "{id}" in operation.path:
        yield _ID_PARAMETER
    if operation.parameters is None:
        return
    schema = operation.parameters.model_json_schema()
    for name, property_schema in schema["properties"].items():
        description = property_schema.pop("description", "")
        yield {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            **({"description": description} if description else {}),
            "schema": property_schema,
        }
