"""The table of operations -> an OpenAPI 3.1 document. Pure.

OpenAPI 3.1 takes JSON Schema as it is, so that pydantic's schemas of the types are all it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from gateway.runtime import VERSION
from gateway.serve.api.operations import Operation
from gateway.serve.api.problems import MEDIA_TYPE, ProblemDetails
from gateway.serve.api.reading import adapter

PATH = "/openapi.json"
_REF = "#/components/schemas/{model}"
_ALWAYS = (403, 404, 405, 421, 500, 503)
"""What any request may be answered: wrong origin, no such path, no such method, wrong host."""
_PROBLEM: Mapping[str, Any] = {
    "description": "A problem (RFC 9457).",
    "content": {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="ProblemDetails")}}},
}


def document(operations: Iterable[Operation], *, open_to_all: bool) -> Mapping[str, Any]:
    """Write the document.

    Args:
        operations: What there is.
        open_to_all: Whether nobody needs a token.
    """
    operations = tuple(operations)
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, open_to_all)
    components: dict[str, Any] = {"schemas": _schemas(tuple(_types(operations).items()))}
    if not open_to_all:
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


def _types(operations: Iterable[Operation]) -> Mapping[type, JsonSchemaMode]:
    types: dict[type, JsonSchemaMode] = {ProblemDetails: "serialization"}
    for each in operations:
        types |= {each.body: "validation"} if each.body else {}
        types |= {each.answer: "serialization"} if each.answer else {}
    return types


@cache
def _schemas(types: tuple[tuple[type, JsonSchemaMode], ...]) -> Mapping[str, Any]:
    wanted: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]] = [
        (type_.__name__, mode, adapter(type_)) for type_, mode in types
    ]
    _, schemas = TypeAdapter.json_schemas(wanted, ref_template=_REF)
    definitions: Mapping[str, Any] = schemas["$defs"]
    return definitions


def _operation(operation: Operation, open_to_all: bool) -> Mapping[str, Any]:
    taken: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": _responses(operation, open_to_all),
        "security": [] if open_to_all or operation.public else [{"bearer": []}],
    }
    if operation.right:
        taken["description"] = f"Needs the scope `{operation.right}`."
    if operation.body:
        schema = {"$ref": _REF.format(model=operation.body.__name__)}
        taken["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    parameters = [*_of_path(operation), *_of_query(operation)]
    if parameters:
        taken["parameters"] = parameters
    return taken


def _responses(operation: Operation, open_to_all: bool) -> Mapping[str, Any]:
    refusals = {*_ALWAYS, *operation.refusals}
    if operation.body:
        refusals |= {400, 413, 415, 422}
    if operation.parameters or "{" in operation.path:
        refusals |= {422}
    if not (open_to_all or operation.public):
        refusals |= {401}
    good: dict[str, Any] = {}
    for status in (operation.status, *operation.also):
        good[str(status)] = {"description": HTTPStatus(status).phrase}
        if operation.answer:
            schema = {"$ref": _REF.format(model=operation.answer.__name__)}
            good[str(status)]["content"] = {"application/json": {"schema": schema}}
    return good | {str(status): _PROBLEM for status in sorted(refusals)}


def _of_path(operation: Operation) -> Iterable[Mapping[str, Any]]:
    if "{id}" in operation.path:
        yield {
            "name": "id",
            "in": "path",
            "required": True,
            "description": "Of the entity; a slash in it may stand as it is, or as %2F.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 1024},
            "example": "agent:catalog/travel-planner",
        }


def _of_query(operation: Operation) -> Iterable[Mapping[str, Any]]:
    if not operation.parameters:
        return
    schema = adapter(operation.parameters).json_schema()
    needed = schema.get("required", ())
    for name, each in schema["properties"].items():
        about = each.pop("description", "")
        yield {
            "name": name,
            "in": "query",
            "required": name in needed,
            **({"description": about} if about else {}),
            "schema": each,
        }
