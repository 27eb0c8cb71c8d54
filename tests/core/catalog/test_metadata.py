"""Searchable words of metadata, and parts of metadata selected by dot paths."""

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
def test_flatten_returns_a_line_with_keys_for_each_value(metadata: JsonObject, words: str) -> None:
    """Booleans, nulls and URLs are not searchable words."""
    assert words == flatten(metadata)


def test_flatten_returns_only_metadata_at_the_given_paths() -> None:
    assert "a b yes" == flatten({"a": {"b": "yes", "c": "no"}, "d": "no"}, ["a.b"])
    assert "" == flatten({"a": "no"}, [])


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(max_size=5), st.lists(st.text(min_size=1), max_size=400)))
def test_flatten_limits_the_length_of_its_text(metadata: JsonObject) -> None:
    words = flatten(metadata)

    assert len(words) <= MAX_CHARS


def test_flatten_limits_the_number_of_values() -> None:
    """Otherwise the time for a list without end would be unlimited."""
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
def test_project_keeps_the_structure_of_selected_metadata(
    fields: list[str] | None, seen: JsonObject
) -> None:
    """Parts that are missing in the metadata are omitted."""
    assert seen == project(CARD, fields)


@pytest.mark.parametrize(
    "fields",
    [[""], ["a."], [".a"], ["$a"], ["a b"], ["x" * 65], ["a.b.c.d.e.f"], ["f"] * 21],
    ids=["empty", "end", "start", "sign", "space", "long", "deep", "many"],
)
def test_invalid_metadata_path_is_refused(fields: list[str]) -> None:
    with pytest.raises(InvalidRequestError, match="metadata"):
        project(CARD, fields)
