"""Changes of the OpenAPI document stay compatible with existing clients.

``openapi.json`` is the document of a server that requires a token. Deliberate changes of the API
update the file in the same commit: `python -m json.tool --indent 2 --sort-keys` formats the
response of ``/openapi.json``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from gateway.serve.http_options import HttpOptions
from tests.apps.serve.api.client import SECRET, open_client
from tests.conftest import OpenGateway

CONTRACT: dict[str, Any] = json.loads(
    Path(__file__).with_name("openapi.json").read_text(encoding="utf-8")
)
PROSE = frozenset({"description", "title", "summary", "example", "examples"})
CONSTRAINTS = frozenset(
    {
        "additionalProperties", "allOf", "anyOf", "const", "enum", "format", "maxItems",
        "maxLength", "maximum", "minItems", "minLength", "minimum", "pattern", "required", "type",
    }
)  # fmt: skip
"""JSON Schema keywords that restrict the accepted values."""


class Comparison:
    """Compares two versions of an OpenAPI document.

    Args:
        old: The stored document, with which the API must stay compatible.
        new: The document that the server returns.
    """

    def __init__(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        self._old = old
        self._new = new

    def losses(self) -> list[str]:
        """Describe each part of the old document that the new one lacks or restricts."""
        return [
            *self._objects(self._old["paths"], self._new["paths"], "paths", is_request=False),
            *self._objects(
                self._old["components"]["securitySchemes"],
                self._new["components"].get("securitySchemes", {}),
                "securitySchemes",
                is_request=False,
            ),
        ]

    def _compare(self, old: object, new: object, where: str, *, is_request: bool) -> Iterator[str]:
        if isinstance(old, dict) and isinstance(new, dict):
            old, new = _resolve(self._old, old), _resolve(self._new, new)
            yield from self._objects(old, new, where, is_request=is_request)
        elif isinstance(old, list) and isinstance(new, list):
            yield from self._lists(old, new, where, is_request=is_request)
        elif old != new:
            yield f"{where}: {old!r} became {new!r}"

    def _objects(
        self, old: Mapping[str, Any], new: Mapping[str, Any], where: str, *, is_request: bool
    ) -> Iterator[str]:
        is_schema = bool(CONSTRAINTS & old.keys()) and not where.endswith("/properties")
        for key, value in old.items():
            # A missing keyword means the same as an empty list or the default null.
            if (key in PROSE and isinstance(value, str)) or value in ([], None):
                continue
            inner = f"{where}/{key}"
            if key not in new:
                yield f"{inner} is gone"
            else:
                side = is_request or key in {"requestBody", "parameters"}
                yield from self._compare(value, new[key], inner, is_request=side)
        if is_request and is_schema:
            for key in sorted(CONSTRAINTS & new.keys() - old.keys()):
                yield f"{where}/{key} is a new constraint"

    def _lists(
        self, old: Sequence[Any], new: Sequence[Any], where: str, *, is_request: bool
    ) -> Iterator[str]:
        if where.endswith("/parameters"):
            yield from self._objects(_by_name(old), _by_name(new), where, is_request=True)
            for key in _by_name(new).keys() - _by_name(old).keys():
                if _by_name(new)[key]["required"]:
                    yield f"{where}/{key} is newly required"
        elif all(isinstance(item, str) for item in [*old, *new]):
            is_narrowed = where.endswith("/required") and is_request
            lost = set(new) - set(old) if is_narrowed else set(old) - set(new)
            yield from (f"{where}/{item} is lost or newly required" for item in sorted(lost))
        elif len(old) != len(new):
            yield f"{where}: {len(old)} entries became {len(new)}"
        else:
            for index, pair in enumerate(zip(old, new, strict=True)):
                yield from self._compare(*pair, f"{where}/{index}", is_request=is_request)


def _resolve(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    target: Mapping[str, Any] = document["components"]["schemas"][reference.rpartition("/")[2]]
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def _by_name(parameters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{parameter['in']}:{parameter['name']}": parameter for parameter in parameters}


async def test_openapi_document_stays_compatible_with_the_stored_one(
    open_gateway: OpenGateway,
) -> None:
    http = HttpOptions(token=SECRET)
    async with open_client(open_gateway(), http) as client:
        headers = {"Authorization": f"Bearer {SECRET}"}
        served = (await client.get("/openapi.json", headers=headers)).json()

    assert [] == Comparison(CONTRACT, served).losses()


Edit = Callable[[dict[str, Any]], object]


def _schema(document: dict[str, Any], name: str) -> dict[str, Any]:
    schema: dict[str, Any] = document["components"]["schemas"][name]
    return schema


EDITS: Mapping[str, Edit] = {
    "a path": lambda new: new["paths"].pop("/api/index"),
    "a method": lambda new: new["paths"]["/api/entities/{id}"].pop("patch"),
    "an operation id": lambda new: new["paths"]["/api/index"]["get"].update(operationId="x"),
    "a parameter": lambda new: new["paths"]["/api/agents"]["get"]["parameters"].pop(),
    "a status": lambda new: new["paths"]["/api/agents"]["get"]["responses"].pop("422"),
    "a field of a response": lambda new: _schema(new, "EntityView")["properties"].pop("digest"),
    "a value of an enum": lambda new: _schema(new, "EntityView")["properties"]["status"][
        "enum"
    ].remove("beta"),
    "a field that was always there": lambda new: _schema(new, "EntityView")["required"].remove(
        "digest"
    ),
    "a field that may be left out": lambda new: _schema(new, "NewEntity")["required"].append(
        "title"
    ),
    "a length": lambda new: _schema(new, "NewEntity")["properties"]["title"].update(maxLength=9),
    "a free text": lambda new: _schema(new, "EntityChange")["properties"]["enabled"].update(
        enum=["true"]
    ),
    "a scheme": lambda new: new["components"].pop("securitySchemes"),
    "a media type": lambda new: new["paths"]["/api/index"]["get"]["responses"]["403"][
        "content"
    ].pop("application/problem+json"),
}


@pytest.mark.parametrize("name", EDITS)
def test_comparison_finds_each_incompatible_change(name: str) -> None:
    edited = deepcopy(CONTRACT)
    EDITS[name](edited)

    assert Comparison(CONTRACT, edited).losses()
    assert [] == Comparison(CONTRACT, deepcopy(CONTRACT)).losses()
