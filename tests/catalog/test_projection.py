"""Parts of metadata by dot paths."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.catalog.entries import project
from gateway.errors import InvalidRequestError
from gateway.types import JsonObject

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


keys = st.sampled_from(["a", "b", "c"])
values = st.recursive(
    st.integers(), lambda inner: st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
paths = st.lists(st.lists(keys, min_size=1, max_size=3).map(".".join), max_size=4)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(keys, values, max_size=3), paths)
def test_what_is_given_is_a_part_and_holds_every_path_that_is_there(
    metadata: JsonObject, fields: list[str]
) -> None:
    """Nothing is made up, and nothing that was named is lost."""
    found = project(metadata, fields)

    assert within(found, metadata)
    for path in fields:
        if at(metadata, path) is not None:
            assert at(metadata, path) == at(found, path)


def within(part: object, whole: object) -> bool:
    if isinstance(part, Mapping) and isinstance(whole, Mapping):
        return all(key in whole and within(each, whole[key]) for key, each in part.items())
    return part == whole


def at(value: object, path: str) -> object:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if value != {} else None
