"""The words of metadata, and parts of it by dot paths."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.catalog import MAX_CHARS, MAX_VALUES, flatten, project
from gateway.errors import InvalidRequestError
from gateway.types import JsonObject


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({}, ""),
        ({"author": "Ada", "year": 1843}, "author Ada\nyear 1843"),
        ({"owner": {"team": {"name": "maps"}}}, "owner team name maps"),
        ({"modes": ["text", {"voice": "de"}]}, "modes text\nmodes voice de"),
        ({"on": True, "off": None, "blank": " ", "home": "https://a.example"}, ""),
        ({"a": {"b": {"c": {"d": {"e": {"f": {"g": "too deep"}}}}}}}, ""),
        ({"a": {"b": {"c": {"d": {"e": {"f": "deep"}}}}}}, "a b c d e f deep"),
        ({"seen": "a\u200bb"}, "seen ab"),
    ],
)
def test_nested_values_are_lines_with_their_keys(metadata: JsonObject, words: str) -> None:
    """Truths, nulls and addresses are no words."""
    assert words == flatten(metadata)


def test_only_what_is_named_is_searched() -> None:
    """By dot paths."""
    assert "a b yes" == flatten({"a": {"b": "yes", "c": "no"}, "d": "no"}, ["a.b"])
    assert "" == flatten({"a": "no"}, [])


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(max_size=5), st.lists(st.text(min_size=1), max_size=400)))
def test_a_stranger_cannot_make_it_long(metadata: JsonObject) -> None:
    """Whatever is put in."""
    words = flatten(metadata)

    assert len(words) <= MAX_CHARS


def test_no_more_values_are_read_than_that() -> None:
    """A list may have no end."""
    assert MAX_VALUES == len(flatten({"n": [1] * 10_000}).splitlines())


CARD: JsonObject = {
    "provider": {"name": "Acme", "region": {"eu": True}},
    "skills": [{"id": "a", "name": "A", "tags": ["x"]}, {"id": "b"}, "odd", [{"id": "c"}]],
    "version": "1",
}


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        (None, CARD),
        ([], {}),
        (["version"], {"version": "1"}),
        (["provider.region"], {"provider": {"region": {"eu": True}}}),
        (["provider", "provider.name"], {"provider": CARD["provider"]}),
        (["provider.name", "provider"], {"provider": CARD["provider"]}),
        (["provider.name", "version"], {"provider": {"name": "Acme"}, "version": "1"}),
        (["skills.name"], {"skills": [{"name": "A"}]}),
        (
            ["skills.name", "skills.id"],
            {"skills": [{"name": "A", "id": "a"}, {"id": "b"}, [{"id": "c"}]]},
        ),
        (["nowhere", "provider.nowhere", "version.below", "skills.tags.below"], {}),
    ],
)
def test_what_is_asked_for_is_given_in_its_shape(
    fields: list[str] | None, seen: JsonObject
) -> None:
    """What is not there is left out."""
    assert seen == project(CARD, fields)


@pytest.mark.parametrize(
    "fields",
    [[""], ["a."], [".a"], ["$a"], ["a b"], ["x" * 65], ["a.b.c.d.e.f"], ["f"] * 21],
    ids=["empty", "end", "start", "sign", "space", "long", "deep", "many"],
)
def test_a_path_that_cannot_be_used_is_refused(fields: list[str]) -> None:
    """With what may be written."""
    with pytest.raises(InvalidRequestError, match="metadata"):
        project(CARD, fields)
