"""Checks of arguments against a tool's schema."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from gateway.catalog.arguments import MAX_FAULTS, check_arguments
from gateway.errors import InvalidArgumentsError, InvalidRequestError
from gateway.types import Entity, JsonObject, ToolDefinition
from tests.fakes import entity

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "at": {"type": "object", "properties": {"hour": {"type": "integer"}}},
    },
    "required": ["to"],
}


def entity_with_schema(schema: JsonObject) -> Entity:
    """Return a tool with the input schema *schema*."""
    return entity(ToolDefinition(name="send", input_schema=schema))


async def test_check_accepts_valid_arguments() -> None:
    await check_arguments(entity_with_schema(SCHEMA), {"to": "bob", "at": {"hour": 3}, "more": 1})


async def test_arguments_that_are_not_a_mapping_are_refused() -> None:
    """The error is about the type, and not about the content of the list."""
    arguments: Any = ["bob"]

    with pytest.raises(InvalidRequestError, match="a mapping of names to values, got list"):
        await check_arguments(entity_with_schema(SCHEMA), arguments)


async def test_invalid_arguments_error_has_fault_paths_and_the_schema() -> None:
    """A model needs them to correct the call in one turn."""
    with pytest.raises(InvalidArgumentsError) as caught:
        await check_arguments(entity_with_schema(SCHEMA), {"at": {"hour": "noon"}})

    assert ("'to' is a required property", "at.hour: 'noon' is not of type 'integer'") == (
        caught.value.faults
    )
    assert SCHEMA == caught.value.schema
    assert "send" == caught.value.tool


async def test_invalid_arguments_error_has_a_limited_number_of_faults() -> None:
    """A message with more faults costs tokens without helping a model."""
    schema: JsonObject = {
        "type": "object",
        "properties": {str(number): {"type": "string"} for number in range(20)},
    }

    with pytest.raises(InvalidArgumentsError) as caught:
        await check_arguments(
            entity_with_schema(schema), {str(number): number for number in range(20)}
        )

    assert MAX_FAULTS == len(caught.value.faults)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "required": 3},
        {"type": "object", "properties": {"to": {"pattern": "["}}},
        {"type": "object", "properties": {"to": {"$ref": "http://127.0.0.1:1/x"}}},
        {"type": "object", "$ref": "#"},
        {"$schema": "urn:unknown", "type": "object"},
        {},
    ],
    ids=["invalid", "bad pattern", "foreign reference", "endless", "unknown dialect", "empty"],
)
async def test_check_accepts_everything_if_the_schema_is_invalid_or_external(
    schema: JsonObject,
) -> None:
    """The server checks the arguments then. References to other documents are not fetched."""
    await check_arguments(entity_with_schema(schema), {"to": "bob"})


SLOW = "^(a+)+$"
"""Regular expression that takes practically forever on thirty times "a" and another letter."""


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"pattern": SLOW}}},
        {"patternProperties": {SLOW: {"type": "integer"}}},
        {"patternProperties": {SLOW: {}}, "additionalProperties": False},
        {"patternProperties": {SLOW: {}}, "unevaluatedProperties": False},
    ],
)
async def test_check_never_runs_a_pattern_of_an_untrusted_schema(schema: JsonObject) -> None:
    """A match of the pattern may never end (CWE-1333)."""
    word = "a" * 40 + "!"

    await check_arguments(entity_with_schema({"type": "object", **schema}), {"x": word, word: 1})


async def test_check_runs_patterns_of_a_trusted_schema() -> None:
    """Other keywords are checked for trusted and untrusted schemas."""
    schema: JsonObject = {
        "type": "object",
        "properties": {"x": {"type": "string", "pattern": "^b"}},
        "additionalProperties": False,
    }
    trusted_entity = entity(ToolDefinition(name="send", input_schema=schema), trusted=True)

    with pytest.raises(InvalidArgumentsError, match="does not match"):
        await check_arguments(trusted_entity, {"x": "a"})
    with pytest.raises(InvalidArgumentsError, match="Additional properties"):
        await check_arguments(entity_with_schema(schema), {"x": "a", "y": 1})
    await check_arguments(entity_with_schema(schema), {"x": "a"})


async def test_check_accepts_everything_if_the_schema_is_endless() -> None:
    nest: JsonObject = {"type": "string"}
    for _ in range(300):
        nest = {"anyOf": [nest]}

    await check_arguments(
        entity_with_schema({"type": "object", "properties": {"x": nest}}), {"x": 1}
    )


DRAFT_7 = "http://json-schema.org/draft-07/schema#"
LONG = [[*range(500)]] * 50
"""A JSON value that is slow to compare with another."""


def doubling_definitions() -> JsonObject:
    """Return definitions that expand to 2^40 schemas, because each part refers to the next one
    twice.
    """
    parts: dict[str, JsonObject] = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(40)
    }
    return {**parts, "d40": {}}


ENDLESS: JsonObject = {"$ref": "#/$defs/d0"}


def nested_schema(levels: int) -> JsonObject:
    """Return a schema with the given number of nested levels."""
    value: JsonObject = {}
    for _ in range(levels):
        value = {"x": value}
    return value


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (ENDLESS, 1),
        ({"$ref": "#/$defs/old"}, 1),
        ({"not": {"not": ENDLESS}}, 1),
        ({"anyOf": [{"not": ENDLESS}, {"oneOf": [ENDLESS]}]}, 1),
        (
            {
                "$ref": "#/properties/x/a",
                "a": {"allOf": [{"properties": {"x": {"$ref": "#/properties/x/a"}}}] * 2},
            },
            nested_schema(60),
        ),
        (
            {"type": ["object", "null"], "additionalProperties": {"$ref": "#/properties/x"}},
            nested_schema(3000),
        ),
        ({"$ref": "#/properties/x"}, 1),
        (
            {"$ref": "https://json-schema.org/draft/2020-12/schema"},
            {"required": [{"a": number} for number in range(20_000)]},
        ),
        ({"uniqueItems": True}, [{"a": number} for number in range(200_000)]),
        (
            {"uniqueItems": True},
            [number if number % 2 else str(number) for number in range(200_000)],
        ),
        ({"items": {"const": LONG}}, [LONG] * 10_000),
        ({"items": {"enum": [LONG]}}, [LONG] * 10_000),
        ({"items": {"dependentRequired": {"x": ["x"] * 20_000}}}, [{"x": 1}] * 50_000),
        (
            {
                "items": {"$ref": "#/properties/x/wide"},
                "wide": dict.fromkeys(map(str, range(20_000)), 1),
            },
            [1] * 500_000,
        ),
        ({"allOf": [{"contains": True, "maxContains": 10**9}] * 20_000}, [1] * 20_000),
        ({"anyOf": [{"type": "string"}] * 20_000}, ["x" * 100] * 10_000),
    ],
)
async def test_argument_check_beyond_its_budget_is_abandoned(
    schema: JsonObject, value: object, *, trusted: bool
) -> None:
    """A schema of a few hundred bytes can require years. The server checks the arguments
    instead.
    """
    definition = ToolDefinition(
        name="send",
        input_schema={
            "type": "object",
            "properties": {"x": schema},
            "$defs": {**doubling_definitions(), "old": {"$schema": DRAFT_7, **ENDLESS}},
        },
    )

    await check_arguments(entity(definition, trusted=trusted), {"x": value})


async def test_check_budget_suffices_for_large_arguments() -> None:
    """The arguments have ten thousand parameters, or a thousand rows."""
    columns: JsonObject = {"properties": {name: {"type": "integer"} for name in "abcde"}}
    wide: JsonObject = {
        "properties": {str(number): {"type": "integer"} for number in range(10_000)}
    }
    rows = [dict.fromkeys("abcde", 1) for _ in range(1000)]

    with pytest.raises(InvalidArgumentsError, match="9999: 'a' is not of type 'integer'"):
        await check_arguments(
            entity_with_schema(wide),
            {**{str(number): number for number in range(9999)}, "9999": "a"},
        )
    with pytest.raises(InvalidArgumentsError, match=r"rows\.1000\.e: 'a' is not"):
        await check_arguments(
            entity_with_schema({"properties": {"rows": {"items": columns}}}),
            {"rows": [*rows, {"e": "a"}]},
        )


async def test_check_runs_no_pattern_in_a_nested_schema_of_another_dialect() -> None:
    """The library would check the nested part with its own class, without a budget."""
    part: JsonObject = {"$schema": DRAFT_7, "properties": {"y": {"pattern": SLOW}}}

    schema: JsonObject = {"type": "object", "properties": {"x": part}}
    await check_arguments(entity_with_schema(schema), {"x": {"y": "a" * 40 + "!"}})


async def test_check_ignores_schema_keywords_next_to_a_reference_in_old_dialects() -> None:
    """Draft 7 requires this; later drafts check both."""
    schema: JsonObject = {
        "type": "object",
        "properties": {"x": {"$ref": "#/definitions/any", "type": "string"}},
        "definitions": {"any": {}},
    }

    await check_arguments(entity_with_schema({"$schema": DRAFT_7, **schema}), {"x": 1})
    with pytest.raises(InvalidArgumentsError, match="not of type 'string'"):
        await check_arguments(entity_with_schema(schema), {"x": 1})


@pytest.mark.parametrize(
    "keywords",
    [
        {"enum": "abc"},
        {"enum": None},
        {"required": "abc"},
        {"additionalProperties": None},
        {"type": "any"},
        {"minProperties": "3"},
    ],
)
async def test_check_ignores_schema_keywords_with_a_wrong_value_type(keywords: JsonObject) -> None:
    """Some servers write null for unused keywords."""
    await check_arguments(
        entity_with_schema({"type": "object", "properties": {"x": keywords}}), {"x": {"y": 1}}
    )


async def test_argument_check_does_not_block_the_event_loop() -> None:
    readers: set[int] = set()

    class Watched(Mapping[str, object]):
        def __getitem__(self, key: str) -> object:
            return SCHEMA[key]

        def __iter__(self) -> Iterator[str]:
            readers.add(threading.get_ident())
            return iter(SCHEMA)

        def __len__(self) -> int:
            return len(SCHEMA)

    await check_arguments(entity_with_schema(Watched()), {"to": "bob"})

    assert readers
    assert threading.get_ident() not in readers
