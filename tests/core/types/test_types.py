"""Public value types: entities, callers, filters and results."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from gateway.types import (
    Content,
    Diagnostic,
    Evidence,
    Filters,
    Hints,
    InvokeResult,
    Match,
    PathStep,
    SearchResult,
    ToolDefinition,
)
from tests.fakes import entity


@pytest.mark.parametrize("required", [None, "x", 3])
def test_entity_ignores_an_invalid_list_of_required_arguments(required: object) -> None:
    item = entity(ToolDefinition(name="a", input_schema={"required": required}))

    assert () == item.required


def test_result_is_degraded_only_by_a_failed_stage() -> None:
    low = Diagnostic(stage="confidence", code="low_confidence_results")
    fell = Diagnostic(stage="embed", code="graph_fallback")

    assert not SearchResult(mode="graph", diagnostics=(low,)).degraded
    assert SearchResult(mode="graph", diagnostics=(low, fell)).degraded


def test_comparison_of_results_ignores_durations_and_cache_hits() -> None:
    fresh = SearchResult(mode="graph", stages={"graph": 0.1})

    assert fresh == SearchResult(mode="graph", stages={"graph": 0.2}, cached=True)


def match_of(name: str, *, after: str = "") -> Match:
    """Return the entity *name* as a match, or as a prerequisite of the entity *after*."""
    path = (PathStep(subject=after, predicate="requires", object=name),) if after else ()
    return Match(
        id=name,
        name=name,
        server="srv",
        description="",
        score=1,
        confidence=1,
        evidence=Evidence(path=path),
    )


def test_shown_lists_a_match_before_its_prerequisites() -> None:
    """Prerequisites of entities that are not matches come after all matches."""
    result = SearchResult(
        mode="graph",
        matches=(match_of("a"), match_of("b")),
        prerequisites=(
            match_of("x", after="b"),
            match_of("y", after="a"),
            match_of("z", after="?"),
        ),
        related=(match_of("r"),),
        next_steps=(match_of("n"),),
    )

    assert ["a", "y", "b", "x", "z", "r", "n"] == [match.id for match in result.shown]


def test_text_of_a_result_joins_its_text_blocks() -> None:
    blocks = (
        Content(type="text", text="one"),
        Content(type="image", data={"data": "…"}),
        Content(type="resource", text="two"),
    )

    assert "one\ntwo" == InvokeResult(tool_id="a", content=blocks).text


def test_value_types_accept_any_collection_of_texts() -> None:
    """Later changes of a passed set do not change the value."""
    kinds = {"agent"}
    filters = Filters(kinds=kinds, tags=["x", "x"], servers=("a",), scopes=iter("bc"))  # type: ignore[arg-type]  # (the point)
    kinds.add("tool")

    assert filters == Filters(
        kinds=frozenset({"agent"}),
        tags=frozenset({"x"}),
        servers=frozenset({"a"}),
        scopes=frozenset({"b", "c"}),
    )
    assert isinstance(hash(filters), int)
    assert ("a", "b") == Hints(tags=["a", "b"], keywords=("c",)).tags  # type: ignore[arg-type]  # (the point)


TEXTS = [
    (kind, each.name) for kind in (Filters, Hints) for each in fields(kind) if each.default == ()
]
TEXTS += [(Filters, each.name) for each in fields(Filters) if isinstance(each.default, frozenset)]


@pytest.mark.parametrize(("kind", "name"), TEXTS)
@pytest.mark.parametrize("value", ["local", [3]])
def test_value_types_refuse_a_single_text_as_collection(
    kind: type[Any], name: str, value: object
) -> None:
    """The letters of the text would be used as items."""
    with pytest.raises(TypeError) as caught:
        kind(**{name: value})

    message = f"{kind.__name__}: {name} must be a collection of texts, got {value!r}"
    assert message == str(caught.value)


def test_filters_refuse_values_of_other_types() -> None:
    """For example, the text "no" would count as True."""
    with pytest.raises(
        TypeError, match=r"^Filters: include_disabled must be True or False, got 'no"
    ):
        Filters(include_disabled="no")  # type: ignore[arg-type]  # (the point)
