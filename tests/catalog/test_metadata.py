"""The words of metadata."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.catalog.entries import MAX_CHARS, MAX_VALUES, flatten
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
