"""Rules of model services for tools."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.testing import find_tool_faults

CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


def parameters(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def nested(**schema: Any) -> dict[str, Any]:
    return parameters(list={"type": "array", "items": parameters(a=schema)})


def strict(**schema: Any) -> dict[str, Any]:
    return {**CLOSED, "properties": {"a": schema}}


ACCEPTED: dict[str, dict[str, Any]] = {
    "no parameters": {"name": "t"},
    "reference": {
        "name": "t",
        "parameters": {**parameters(a={"$ref": "#/$defs/a~1b"}), "$defs": {"a/b": {}}},
    },
    "any value": {"name": "t", "parameters": nested()},
    "strict": {"name": "t", "parameters": CLOSED, "strict": True},
    "property called like a keyword": {"name": "t", "parameters": parameters(items={}, enum={})},
}


@pytest.mark.parametrize("form", ACCEPTED)
def test_valid_tool_has_no_faults(form: str) -> None:
    assert () == find_tool_faults(ACCEPTED[form])


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "type": ({"type": "array"}, 'type: "object"'),
    "properties": ({"type": "object"}, "object schema missing properties"),
    "choice at the top": ({**parameters(), "anyOf": [{}]}, "'anyOf' at the top level"),
    "items": (nested(type="array"), "array schema missing items"),
    "items in a list of types": (nested(type=["array", "null"]), "array schema missing items"),
    "tuple": (
        nested(type="array", items=[{}]),
        "JSON schema is invalid at $.properties.list.items",
    ),
    "draft 4": (nested(minimum=1, exclusiveMinimum=True), "JSON schema is invalid"),
    "unknown type": (nested(type="any"), "JSON schema is invalid"),
    "null keyword": (nested(description=None), "JSON schema is invalid"),
    "name": (parameters(**{"$filter": {}}), "Property keys should match pattern"),
    "required": ({**parameters(), "required": ["a"]}, "property 'a' is not defined"),
    "pattern": (nested(pattern="(?<!a)b"), "is not a 'regex'"),
    "broken pattern": (nested(pattern="["), "is not a 'regex'"),
    "reference": (nested(**{"$ref": "#/$defs/No"}), "can't be resolved"),
    "remote reference": (nested(**{"$ref": "https://x.test/a"}), "can't be resolved"),
    "values": (nested(enum=[True]), "enum: only texts"),
    "no values": (nested(enum=[]), "enum: only texts"),
}


@pytest.mark.parametrize("form", FAULTS)
def test_refused_schema_is_reported_at_any_depth(form: str) -> None:
    schema, expected = FAULTS[form]

    (fault, *_) = find_tool_faults({"name": "t", "parameters": schema})

    assert fault.startswith("Invalid schema for function 't': ")
    assert expected in fault


DEEP = CLOSED
for _ in range(12):
    DEEP = strict(**DEEP)
STRICT_FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "open": ({**CLOSED, "additionalProperties": True}, "additionalProperties"),
    "optional": ({**CLOSED, "required": []}, "'required' is required"),
    "default": (strict(type="string", default="x"), "'default' is not permitted"),
    "format": (strict(type="string", format="uri"), "'uri' is not a valid format"),
    "any value": (strict(), "must have a 'type' key"),
    "levels": (DEEP, "levels of nesting"),
    "values": (strict(type="integer", enum=[*range(1001)]), "values of 'enum'"),
}


@pytest.mark.parametrize("form", STRICT_FAULTS)
def test_strict_schema_has_more_rules(form: str) -> None:
    schema, expected = STRICT_FAULTS[form]

    assert () == find_tool_faults({"name": "t", "parameters": schema})
    assert any(
        expected in fault
        for fault in find_tool_faults({"name": "t", "parameters": schema, "strict": True})
    )


@pytest.mark.parametrize(
    ("tool", "expected"),
    [({"name": "a.b"}, "must match"), ({"name": "t", "description": "d" * 1025}, "longer than")],
)
def test_refused_name_or_description_is_reported(tool: dict[str, Any], expected: str) -> None:
    (fault,) = find_tool_faults(tool)

    assert expected in fault
