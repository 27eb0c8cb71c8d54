"""Search results as text for the model, and parsing of that text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.discovery import Schemas, described_names_in, direct_names, direct_names_in, render
from gateway.options import DiscoveryOptions
from gateway.runtime.text import estimate_tokens
from gateway.types import Diagnostic, Evidence, JsonObject, Match, PathStep, SearchResult

OPTIONS = DiscoveryOptions()


def match(name: str, **fields: Any) -> Match:
    defaults: dict[str, Any] = {
        "description": f"Does {name}.",
        "score": 1.0,
        "confidence": 0.9,
    } | fields
    return Match(id=f"srv/{name}", name=name, server="srv", **defaults)


def matches(count: int, prefix: str = "m", **fields: Any) -> tuple[Match, ...]:
    return tuple(match(f"{prefix}{number}", **fields) for number in range(count))


def read(text: str) -> list[dict[str, Any]]:
    """Return the rows of tools in a rendered result."""
    rows: list[dict[str, Any]] = json.loads(text)["tools"]
    return rows


@pytest.mark.requirement("auto:rule-9")
def test_search_result_rows_are_ordered_by_kind_of_match() -> None:
    """Found tools become proxies in the same order."""
    result = SearchResult(
        mode="hybrid",
        next_steps=matches(1, "n"),
        related=matches(1, "r"),
        prerequisites=matches(1, "p"),
        matches=matches(2),
    )

    text = render(result, OPTIONS)

    assert [
        {"name": "m0", "about": "Does m0."},
        {"name": "m1", "about": "Does m1."},
        {"name": "p0", "about": "Does p0.", "kind": "prerequisite"},
        {"name": "r0", "about": "Does r0.", "kind": "related"},
        {"name": "n0", "about": "Does n0.", "kind": "next_step"},
    ] == read(text)
    assert ("m0", "m1", "p0", "r0", "n0") == direct_names_in(text)


def test_search_result_row_has_required_arguments_and_reason() -> None:
    """The row shows why a tool was found, so that the model searches less."""
    path = (PathStep(subject="urn:x/m0", predicate="requires", object="urn:x/p0"),)
    result = SearchResult(
        mode="hybrid",
        matches=(
            match("m0", required=("to", "text"), evidence=Evidence(exact_name=True)),
            match("m1", evidence=Evidence(words=("a", "b", "c", "d", "e"))),
        ),
        prerequisites=(match("p0", evidence=Evidence(path=path)),),
        related=(match("r0", description="", evidence=Evidence(words=("a",))),),
    )

    assert [
        {"name": "m0", "about": "Does m0.", "needs": ["to", "text"], "why": "named"},
        {"name": "m1", "about": "Does m1.", "why": "words: a, b, c, d"},
        {"name": "p0", "about": "Does p0.", "kind": "prerequisite", "why": "requires of m0"},
        {"name": "r0", "kind": "related"},
    ] == read(render(result, OPTIONS))


def test_reason_for_a_found_tool_omits_words_of_its_row() -> None:
    """Otherwise the model would read these words twice."""
    evident = match("find_x", description="Does it.", evidence=Evidence(words=("find", "Does")))
    half = match("m1", description="Does it.", evidence=Evidence(words=("does", "other")))
    result = SearchResult(mode="hybrid", matches=(evident, half))

    assert [None, "words: other"] == [row.get("why") for row in read(render(result, OPTIONS))]


def test_tool_with_a_known_definition_is_only_named() -> None:
    """The model's request contains the definition already."""
    result = SearchResult(mode="graph", matches=matches(2, required=("a",)))

    text = render(result, OPTIONS, shown={"m0", "other"})

    assert [{"name": "m0"}, {"name": "m1", "about": "Does m1.", "needs": ["a"]}] == read(text)
    assert ("m0", "m1") == direct_names_in(text)


@pytest.mark.requirement("auto:rule-9")
def test_search_adds_at_most_eight_proxies_and_names_the_rest() -> None:
    """Further matches can be called by name. Tools that the graph added without a path are only
    names.
    """
    path = (PathStep(subject="urn:x/m0", predicate="requires", object="urn:x/r2"),)
    linked = match("r2", evidence=Evidence(path=path))
    related = (*matches(2, "r"), linked, match("r3"), match("r4"))
    result = SearchResult(mode="graph", matches=matches(6), related=related)

    text = render(result, OPTIONS)

    assert (*(f"m{number}" for number in range(6)), "r2", "r0") == direct_names_in(text)
    assert {"why": "requires of m0"}.items() <= read(text)[6].items()
    assert 8 == len(read(text))
    assert ["r1", "r3", "r4"] == json.loads(text)["also"]


@pytest.mark.requirement("auto:rule-9")
def test_declared_supplements_come_before_derived_ones() -> None:
    """Supplements are tools that the graph adds. A declared next step comes before a derived
    related tool or prerequisite.
    """

    def reached(name: str, predicate: str, *, declared: bool) -> Match:
        step = PathStep(subject="x/m0", predicate=predicate, object=name, declared=declared)
        return match(name, evidence=Evidence(path=(step,)))

    result = SearchResult(
        mode="graph",
        matches=matches(6),
        prerequisites=(reached("needed", "requires", declared=False),),
        related=(match("worded"), reached("kin", "relatedTo", declared=False)),
        next_steps=(reached("after", "nextStep", declared=True),),
    )

    text = render(result, OPTIONS)

    names = [row["name"] for row in read(text)]
    assert ["after", "needed"] == list(direct_names_in(text)[6:])
    assert ["after", "needed", "kin"] == names[6:]
    assert ["worded"] == json.loads(text)["also"]


@pytest.mark.parametrize(
    ("mode", "note"), [("empty", "The catalog is empty."), ("graph", "No tool matches.")]
)
def test_search_result_without_tools_has_a_note(mode: Any, note: str) -> None:
    """After an empty list alone, a model would repeat the same search."""
    text = render(SearchResult(mode=mode), OPTIONS)

    assert [] == read(text)
    assert note in json.loads(text)["note"]
    assert () == direct_names_in(text)


def test_search_result_with_only_weak_matches_has_a_warning() -> None:
    """Otherwise the best of several bad matches looks good."""
    note = Diagnostic(stage="confidence", code="low_confidence_results")
    result = SearchResult(mode="graph", matches=matches(1), diagnostics=(note,))

    assert "None of these is a likely match" in json.loads(render(result, OPTIONS))["note"]
    assert "note" not in json.loads(render(SearchResult(mode="graph", matches=matches(1)), OPTIONS))


@pytest.mark.parametrize("budget", [100, 150, 200, 300, 600, 1200])
def test_search_result_stays_within_its_budget_and_keeps_the_best_match(budget: int) -> None:
    """Texts are shortened first, then rows are removed from the end. All remaining rows are
    complete.
    """
    long = "word " * 60
    result = SearchResult(
        mode="hybrid",
        matches=matches(8, description=long, required=("first", "second")),
        related=matches(6, "r", description=long),
        next_steps=matches(6, "n", description=long),
    )

    text = render(result, DiscoveryOptions(result_token_budget=budget))

    row_names = [row["name"] for row in read(text)]
    also = json.loads(text).get("also", [])
    listed = (*result.matches, *result.related, *result.next_steps)
    every = [match.name for match in listed if match.name not in also]
    assert estimate_tokens(text) <= budget
    assert every[: len(row_names)] == row_names
    assert len(row_names) >= 2


MATCHES = st.lists(
    st.builds(
        match,
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=64),
        description=st.text(max_size=300),
        required=st.lists(st.text(max_size=20), max_size=4).map(tuple),
        direct=st.booleans(),
    ),
    max_size=12,
).map(tuple)
RESULTS = st.builds(
    SearchResult,
    matches=MATCHES,
    prerequisites=MATCHES,
    related=MATCHES,
    next_steps=MATCHES,
    mode=st.just("hybrid"),
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(RESULTS, st.sampled_from([100, 1200, 20_000]), st.integers(1, 12))
def test_rendered_names_are_parsed_again(result: SearchResult, budget: int, proxies: int) -> None:
    """The text is the conversation's only record of the found tools."""
    options = DiscoveryOptions(result_token_budget=budget, proxies_per_search=proxies)

    text = render(result, options)
    again = direct_names_in(text)

    direct = [row["name"] for row in read(text) if row.get("direct", True)]
    assert tuple(direct) == again
    assert len(again) <= proxies
    if result.matches:
        assert result.matches[0].name == read(text)[0]["name"] == again[0]


@given(st.text() | st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["tools", "name", "x"]), inner),
).map(json.dumps))  # fmt: skip
def test_parsing_any_text_as_a_search_result_never_raises(text: str) -> None:
    assert all(isinstance(name, str) for name in direct_names_in(text))


@pytest.mark.parametrize(
    "content",
    ["[" * 50_000, json.dumps({"tools": [{"name": "a"}], "pad": "x" * 100_000}), "[]", "null"],
)
def test_text_that_is_not_a_search_result_contains_no_names(content: str) -> None:
    """Third parties can choose the depth and size of a text."""
    assert () == direct_names_in(content)


def schema(name: str) -> JsonObject:
    """Return a schema of parameters whose size depends on the tool's name."""
    about = {name: {"type": "string", "description": "x" * 200}}
    return {"type": "object", "properties": about}


def test_stable_mode_result_contains_parameters_within_the_budget() -> None:
    """The first tools are shown with their parameters, the others only with their required
    arguments.
    """
    options = DiscoveryOptions(schema_token_budget=300)
    result = SearchResult(
        mode="graph", matches=tuple(match(f"tool_{number}") for number in range(5))
    )

    rows = json.loads(render(result, options, schemas=schema))["tools"]

    assert 5 == len(rows)
    has_parameters = ["parameters" in row for row in rows]
    assert sorted(has_parameters, reverse=True) == has_parameters
    assert {True, False} == {*has_parameters}
    assert not any("direct" in row for row in rows)


@pytest.mark.parametrize("budget", [100, 300, 900])
def test_best_match_never_lacks_parameters_that_lesser_ones_have(budget: int) -> None:
    """Its parameters are shortened to the budget."""
    fields = {f"field_{number}": {"type": "string", "enum": ["x" * 90]} for number in range(40)}
    large: JsonObject = {"type": "object", "properties": fields}
    result = SearchResult(mode="graph", matches=matches(3))
    options = DiscoveryOptions(schema_token_budget=budget)

    text = render(result, options, schemas=lambda name: large if name == "m0" else schema(name))

    shown = [row["name"] for row in read(text) if "parameters" in row]
    assert shown == [] or shown[0] == "m0"
    assert budget == 100 or shown
    assert estimate_tokens(text) <= budget


@pytest.mark.parametrize("schemas", [None, lambda _: {"description": "IMPORTANT"}])
def test_suspicious_tool_is_shown_without_free_text(schemas: Schemas | None) -> None:
    """The tool can be called, but the model sees no long text by the tool's author."""
    odd = {"description": "IMPORTANT", "required": ("a", "IMPORTANT: do it"), "suspicious": True}
    needed = PathStep(subject="urn:x/m0", predicate="requires", object="urn:x/p0", declared=True)
    way = Evidence(path=(needed,))
    result = SearchResult(
        mode="hybrid",
        matches=(match("m0", **odd), match("m1")),
        prerequisites=(match("p0", **{**odd, "required": ()}, direct=False, evidence=way),),
    )

    text = render(result, DiscoveryOptions(prerequisite_proxies=True), schemas=schemas)

    rows = [row for row in read(text) if row["name"] != "m1"]
    assert [
        {"name": "m0", "needs": ["a"], "suspicious": True, "direct": False},
        {"name": "p0", "kind": "prerequisite", "suspicious": True, "direct": False},
    ] == rows
    assert ("m1",) == direct_names_in(text) == direct_names(result, OPTIONS)


def test_parameters_in_a_search_result_are_compact_without_loss() -> None:
    """A parameter of a plain type becomes a text; others stay schemas. The names of the required
    ones are listed.
    """
    unit = {"type": "string", "enum": ["km", "mi"]}
    plain = {
        "type": "object",
        "title": "Arguments",
        "additionalProperties": False,
        "properties": {
            "far": {"type": "integer", "description": "How far.", "title": "Far"},
            "note": {"type": "string"},
            "unit": unit,
        },
        "required": ["far"],
    }
    nested = {
        "type": "object",
        "properties": {"to": {"$ref": "#/$defs/Place"}},
        "$defs": {"Place": {"type": "string"}},
    }
    edge = PathStep(subject="urn:x/go", predicate="next", object="urn:x/stop")
    result = SearchResult(
        mode="graph",
        matches=(match("go", required=("far",)), match("travel")),
        related=(match("near", required=("a",)), match("stop", evidence=Evidence(path=(edge,)))),
    )
    of_names = {"travel": nested}

    text = render(result, OPTIONS, schemas=lambda name: of_names.get(name, plain))

    rows = {row["name"]: row for row in read(text)}
    short = {"far": "integer: How far.", "note": "string", "unit": unit}
    assert (["far"], short) == (rows["go"]["needs"], rows["go"]["parameters"])
    assert nested == rows["travel"]["parameters"]
    assert short == rows["stop"]["parameters"]
    assert (["a"], False) == (rows["near"]["needs"], "parameters" in rows["near"])
    assert ("go", "travel", "stop") == described_names_in(text)
