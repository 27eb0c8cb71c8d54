"""Search results as the model reads them, and as they are read back."""

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
    given: dict[str, Any] = {
        "description": f"Does {name}.",
        "score": 1.0,
        "confidence": 0.9,
    } | fields
    return Match(id=f"srv/{name}", name=name, server="srv", **given)


def matches(count: int, prefix: str = "m", **fields: Any) -> tuple[Match, ...]:
    return tuple(match(f"{prefix}{number}", **fields) for number in range(count))


def read(text: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(text)["tools"]
    return rows


@pytest.mark.requirement("auto:rule-9")
def test_matches_come_first_then_prerequisites_related_and_next_steps() -> None:
    """The order of the proxies is the order of these rows."""
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


def test_a_row_tells_what_a_call_needs_and_why_it_stands_there() -> None:
    """A model that knows the reason searches less."""
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


def test_words_that_the_row_shows_are_no_reason() -> None:
    """The model reads them anyway: every conversation would carry them twice."""
    seen = match("find_x", description="Does it.", evidence=Evidence(words=("find", "Does")))
    half = match("m1", description="Does it.", evidence=Evidence(words=("does", "other")))
    result = SearchResult(mode="hybrid", matches=(seen, half))

    assert [None, "words: other"] == [row.get("why") for row in read(render(result, OPTIONS))]


def test_a_tool_whose_definition_the_model_has_is_only_named() -> None:
    """Its definition stands among the tools of the same request."""
    result = SearchResult(mode="graph", matches=matches(2, required=("a",)))

    text = render(result, OPTIONS, shown={"m0", "other"})

    assert [{"name": "m0"}, {"name": "m1", "about": "Does m1.", "needs": ["a"]}] == read(text)
    assert ("m0", "m1") == direct_names_in(text)


@pytest.mark.requirement("auto:rule-9")
def test_at_most_eight_of_a_search_become_proxies_and_the_others_are_named() -> None:
    """They can still be called by name. One that the graph gives no reason for is a name alone."""
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
def test_what_the_host_declares_takes_a_place_before_what_is_derived() -> None:
    """A declared next step comes before a derived relative, and before a derived prerequisite."""

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
def test_nothing_is_said_in_words(mode: Any, note: str) -> None:
    """An empty list alone invites the same search again."""
    text = render(SearchResult(mode=mode), OPTIONS)

    assert [] == read(text)
    assert note in json.loads(text)["note"]
    assert () == direct_names_in(text)


def test_a_weak_result_warns() -> None:
    """Otherwise the best of nothing looks like a find."""
    note = Diagnostic(stage="confidence", code="low_confidence_results")
    result = SearchResult(mode="graph", matches=matches(1), diagnostics=(note,))

    assert "None of these is a likely match" in json.loads(render(result, OPTIONS))["note"]
    assert "note" not in json.loads(render(SearchResult(mode="graph", matches=matches(1)), OPTIONS))


@pytest.mark.parametrize("budget", [100, 150, 200, 300, 600, 1200])
def test_a_result_keeps_to_its_budget_and_keeps_the_best(budget: int) -> None:
    """Texts get shorter first, then the end goes; every row that stays is whole."""
    long = "word " * 60
    result = SearchResult(
        mode="hybrid",
        matches=matches(8, description=long, required=("first", "second")),
        related=matches(6, "r", description=long),
        next_steps=matches(6, "n", description=long),
    )

    text = render(result, DiscoveryOptions(result_token_budget=budget))

    shown = [row["name"] for row in read(text)]
    also = json.loads(text).get("also", [])
    listed = (*result.matches, *result.related, *result.next_steps)
    every = [each.name for each in listed if each.name not in also]
    assert estimate_tokens(text) <= budget
    assert every[: len(shown)] == shown
    assert len(shown) >= 2


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
def test_what_is_written_is_read_back(result: SearchResult, budget: int, proxies: int) -> None:
    """The text is the conversation's only memory of a search."""
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
def test_any_other_text_names_texts_or_nothing(text: str) -> None:
    """Whatever stands in a conversation, reading it raises nothing."""
    assert all(isinstance(name, str) for name in direct_names_in(text))


@pytest.mark.parametrize(
    "content",
    ["[" * 50_000, json.dumps({"tools": [{"name": "a"}], "pad": "x" * 100_000}), "[]", "null"],
)
def test_a_text_that_is_no_result_is_not_read(content: str) -> None:
    """Depth and size are a stranger's to choose."""
    assert () == direct_names_in(content)


def schema(name: str) -> JsonObject:
    """Parameters of some size, told by the name."""
    about = {name: {"type": "string", "description": "x" * 200}}
    return {"type": "object", "properties": about}


def test_where_found_tools_do_not_become_tools_their_parameters_are_told() -> None:
    """Those of the first ones: the rest keeps its required arguments."""
    options = DiscoveryOptions(schema_token_budget=300)
    found = SearchResult(
        mode="graph", matches=tuple(match(f"tool_{number}") for number in range(5))
    )

    rows = json.loads(render(found, options, schemas=schema))["tools"]

    assert 5 == len(rows)
    has_parameters = ["parameters" in row for row in rows]
    assert sorted(has_parameters, reverse=True) == has_parameters
    assert {True, False} == {*has_parameters}
    assert not any("direct" in row for row in rows)


@pytest.mark.parametrize("schemas", [None, lambda _: {"description": "IMPORTANT"}])
def test_of_a_suspicious_tool_the_name_is_told_and_what_could_be_no_order(
    schemas: Schemas | None,
) -> None:
    """It can be called; nothing that its author wrote at length reaches the model."""
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


def test_parameters_are_written_short_and_nothing_is_lost() -> None:
    """A plain one is a text; what a text cannot say stays a schema, and required ones are named."""
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
