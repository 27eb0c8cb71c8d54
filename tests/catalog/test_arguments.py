"""Arguments against a tool's schema, before anything is sent."""

from __future__ import annotations

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


def taking(schema: JsonObject) -> Entity:
    return entity(ToolDefinition(name="send", input_schema=schema))


def test_arguments_that_fit_pass() -> None:
    """Nothing is changed or coerced."""
    check_arguments(taking(SCHEMA), {"to": "bob", "at": {"hour": 3}, "more": 1})


def test_arguments_that_are_no_mapping_are_refused() -> None:
    """A list is easily written for one; what it says is no fault of its own."""
    arguments: Any = ["bob"]

    with pytest.raises(InvalidRequestError, match="a mapping of names to values, got list"):
        check_arguments(taking(SCHEMA), arguments)


def test_faults_say_where_and_carry_the_schema() -> None:
    """A model mends its call by them in one turn."""
    with pytest.raises(InvalidArgumentsError) as caught:
        check_arguments(taking(SCHEMA), {"at": {"hour": "noon"}})

    assert ("'to' is a required property", "at.hour: 'noon' is not of type 'integer'") == (
        caught.value.faults
    )
    assert SCHEMA == caught.value.schema
    assert "send" == caught.value.tool


def test_no_more_than_a_handful_of_faults_is_told() -> None:
    """The rest costs tokens and helps nobody."""
    schema: JsonObject = {
        "type": "object",
        "properties": {str(number): {"type": "string"} for number in range(20)},
    }

    with pytest.raises(InvalidArgumentsError) as caught:
        check_arguments(taking(schema), {str(number): number for number in range(20)})

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
def test_a_schema_that_cannot_judge_checks_nothing(schema: JsonObject) -> None:
    """The upstream is then the judge; nothing is fetched and nothing hangs."""
    check_arguments(taking(schema), {"to": "bob"})


SLOW = "^(a+)+$"
"""Takes longer than the universe on thirty letters and one more."""


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"pattern": SLOW}}},
        {"patternProperties": {SLOW: {"type": "integer"}}},
        {"patternProperties": {SLOW: {}}, "additionalProperties": False},
        {"patternProperties": {SLOW: {}}, "unevaluatedProperties": False},
    ],
)
def test_a_pattern_of_a_stranger_is_never_run(schema: JsonObject) -> None:
    """It may run for ever, and with it everybody (CWE-1333)."""
    word = "a" * 40 + "!"

    check_arguments(taking({"type": "object", **schema}), {"x": word, word: 1})


def test_a_pattern_of_the_host_is_checked_and_so_is_what_a_stranger_does_not_know() -> None:
    """Its author is trusted; other keywords are judged for both."""
    schema: JsonObject = {
        "type": "object",
        "properties": {"x": {"type": "string", "pattern": "^b"}},
        "additionalProperties": False,
    }
    own = entity(ToolDefinition(name="send", input_schema=schema), trusted=True)

    with pytest.raises(InvalidArgumentsError, match="does not match"):
        check_arguments(own, {"x": "a"})
    with pytest.raises(InvalidArgumentsError, match="Additional properties"):
        check_arguments(taking(schema), {"x": "a", "y": 1})
    check_arguments(taking(schema), {"x": "a"})


def test_a_schema_that_nobody_can_walk_checks_nothing() -> None:
    """The upstream is then the judge."""
    nest: JsonObject = {"type": "string"}
    for _ in range(300):
        nest = {"anyOf": [nest]}

    check_arguments(taking({"type": "object", "properties": {"x": nest}}), {"x": 1})
