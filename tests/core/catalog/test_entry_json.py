"""Entries as JSON: round trips, and errors about invalid values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.catalog import (
    Entry,
    clean_entry,
    decode_entries,
    encode_entry,
    entry_from_json,
    entry_to_json,
)
from gateway.errors import ConfigError
from gateway.types import Hints, JsonObject

texts = st.text(max_size=12)
names = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=20)
lists = st.lists(texts, max_size=3).map(tuple)
maybe = st.sampled_from([None, True, False])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
entries = st.builds(
    Entry,
    kind=st.sampled_from(["agent", "skill", "server", "dataset"]),
    name=names,
    title=texts,
    description=texts,
    namespace=st.sampled_from(["catalog", "a.b-c"]),
    status=st.sampled_from(["active", "beta", "draft", "deprecated"]),
    hints=st.builds(
        Hints,
        aliases=lists,
        keywords=lists,
        categories=lists,
        tags=lists,
        examples=lists,
        read_only=maybe,
        destructive=maybe,
        idempotent=maybe,
        enabled=st.booleans(),
        search_text=texts,
    ),
    scopes=st.frozensets(texts, max_size=3),
    metadata=st.dictionaries(texts, values, max_size=3),
    parent=texts,
)
"""Strategy for arbitrary entries, also used by tests of manifests."""


def test_entry_json_omits_default_values() -> None:
    """The JSON of entries is exported in bundles, which people read."""
    assert {"kind": "skill", "name": "a"} == entry_to_json(Entry(kind="skill", name="a"))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], "an entry is an object of kind, name"),
        ({"kind": "agent"}, "at least 'kind' and 'name'"),
        ({"colour": "red"}, "put all else into 'metadata'"),
        ({"hints": {"colour": "red"}}, "'hints' is an object of aliases"),
        ({"hints": []}, "'hints' is an object of aliases"),
        ({"hints": {"tags": "red"}}, "tags must be a collection of texts"),
        ({"hints": {"enabled": "yes"}}, "enabled: "),
        ({"hints": {"search_text": ["red"]}}, "entry 'a': Hints: search_text must be a text"),
        ({"hints": {"enabled": None}}, "enabled: "),
        ({"scopes": [1]}, "scopes: expected"),
        ({"kind": 3}, "kind: expected str"),
    ],
)
def test_invalid_entry_json_error_names_entry_and_field(
    raw: JsonObject | list[object], message: str
) -> None:
    whole = (
        {"kind": "agent", "name": "a", **raw}
        if isinstance(raw, dict) and raw != {"kind": "agent"}
        else raw
    )
    with pytest.raises(ConfigError, match=message):
        entry_from_json(whole)


anything = st.text(st.characters(), max_size=4)
odd = anything | st.none() | st.booleans() | st.integers() | st.lists(anything, max_size=2)
odder = odd | st.frozensets(anything, max_size=2) | st.dictionaries(anything, odd, max_size=2)
lists_of_any = st.lists(anything | st.integers(), max_size=2) | anything


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["agent", "x"]), "name": anything | st.just("a")},
        optional={
            **dict.fromkeys(("title", "description", "parent", "scopes", "metadata"), odder),
            "status": st.sampled_from(["active", "draft", "gone", 3]),
            "namespace": st.sampled_from(["catalog", "a/b", 3]),
        },
    ),
    st.dictionaries(st.sampled_from(["tags", "aliases", "examples"]), lists_of_any, max_size=2),
    st.dictionaries(st.sampled_from(["read_only", "enabled"]), odd, max_size=1),
)
def test_every_valid_entry_survives_a_json_round_trip(
    fields: dict[str, Any], lists: dict[str, Any], flags: dict[str, Any]
) -> None:
    """An entry with arbitrary fields is refused on creation, or read from its JSON as it was."""
    try:
        entry = clean_entry(Entry(hints=Hints(**lists, **flags), **fields))
    except ConfigError:
        return
    except TypeError as error:
        if str(error).startswith("Hints: "):
            return
        raise
    row = encode_entry(entry).encode().decode()

    assert [entry] == list(decode_entries({entry.id: row}))
