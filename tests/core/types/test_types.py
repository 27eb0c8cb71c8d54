"""The values that cross borders."""

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
def test_a_schema_with_odd_required_names_has_none(required: object) -> None:
    """Upstream text is data: it must not break a reader."""
    made = entity(ToolDefinition(name="a", input_schema={"required": required}))

    assert () == made.required


def test_a_result_is_degraded_by_a_failed_stage_alone() -> None:
    """Notes for the reader, such as a low confidence, are no failures."""
    low = Diagnostic(stage="confidence", code="low_confidence_results")
    fell = Diagnostic(stage="embed", code="graph_fallback")

    assert not SearchResult(mode="graph", diagnostics=(low,)).degraded
    assert SearchResult(mode="graph", diagnostics=(low, fell)).degraded


def test_results_compare_without_times_and_cache_marks() -> None:
    """Same input and state, same output: the clock is neither."""
    fresh = SearchResult(mode="graph", stages={"graph": 0.1})

    assert fresh == SearchResult(mode="graph", stages={"graph": 0.2}, cached=True)


def found(name: str, *, after: str = "") -> Match:
    """Make a match, or what must be called before the entity *after*."""
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


def test_all_lists_as_one_put_a_match_before_its_prerequisites() -> None:
    """Wherever they are shown as one; what hangs on no match comes after the matches."""
    result = SearchResult(
        mode="graph",
        matches=(found("a"), found("b")),
        prerequisites=(found("x", after="b"), found("y", after="a"), found("z", after="?")),
        related=(found("r"),),
        next_steps=(found("n"),),
    )

    assert ["a", "y", "b", "x", "z", "r", "n"] == [each.id for each in result.shown]


def test_an_answers_text_is_all_its_text_blocks() -> None:
    """An image between two texts is not lost, but is no text."""
    blocks = (
        Content(type="text", text="one"),
        Content(type="image", data={"data": "…"}),
        Content(type="resource", text="two"),
    )

    assert "one\ntwo" == InvokeResult(tool_id="a", content=blocks).text


def test_any_collection_of_texts_will_do() -> None:
    """A set of whoever made the value cannot change it afterwards."""
    kinds = {"agent"}
    made = Filters(kinds=kinds, tags=["x", "x"], servers=("a",), scopes=iter("bc"))  # type: ignore[arg-type]  # (the point)
    kinds.add("tool")

    assert made == Filters(
        kinds=frozenset({"agent"}),
        tags=frozenset({"x"}),
        servers=frozenset({"a"}),
        scopes=frozenset({"b", "c"}),
    )
    assert isinstance(hash(made), int)
    assert ("a", "b") == Hints(tags=["a", "b"], keywords=("c",)).tags  # type: ignore[arg-type]  # (the point)


TEXTS = [
    (kind, each.name) for kind in (Filters, Hints) for each in fields(kind) if each.default == ()
]
TEXTS += [(Filters, each.name) for each in fields(Filters) if isinstance(each.default, frozenset)]


@pytest.mark.parametrize(("kind", "name"), TEXTS)
@pytest.mark.parametrize("given", ["local", [3]])
def test_a_bare_text_is_no_collection(kind: type[Any], name: str, given: object) -> None:
    """Read letter by letter it would find nothing, or the wrong ones."""
    with pytest.raises(TypeError) as caught:
        kind(**{name: given})

    told = f"{kind.__name__}: {name} must be a collection of texts, got {given!r}"
    assert told == str(caught.value)


def test_what_filters_hold_is_of_its_type() -> None:
    """A word for no would be a yes."""
    with pytest.raises(
        TypeError, match=r"^Filters: include_disabled must be True or False, got 'no"
    ):
        Filters(include_disabled="no")  # type: ignore[arg-type]  # (the point)
