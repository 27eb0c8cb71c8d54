"""Unapproved changes, and their differences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.attention import (
    Change,
    accept_similar,
    difference_lines,
    difference_of,
    find_changes,
    find_similar,
)
from gateway.storage import SqlCatalog
from gateway.types import ToolDefinition
from tests.fakes import tool

NAMES = "names:mcp.json"
NOTHING: dict[str, ToolDefinition] = {}
OWNERS = {"b": "mcp.json#b", "a": "mcp.json#a"}


@pytest.fixture
def store(tmp_path: Path) -> SqlCatalog:
    """Return a catalog store without pins."""
    return SqlCatalog.in_files(tmp_path / "catalog.sqlite3")


def change(item: str, before: str = "1", after: str = "2") -> Change:
    """Return a change of the pin *item*."""
    label = f"srv/{item}" if item else "srv"
    return Change(label=label, server="srv", owner="o", item=item, before=before, after=after)


def test_find_changes_orders_by_server_with_exposed_names_last(store: SqlCatalog) -> None:
    """Ignored are pins of other owners, and exposed names whose earlier tool still exists."""
    for owner, digests in (("mcp.json#b", "12"), ("mcp.json#a", "12"), ("other", "12")):
        for digest in digests:
            store.record_seen(owner, {"z": digest, "": digest, "same": "1"})
    store.bind(NAMES, {"z": "gone/z", "kept": "b/kept"})
    store.bind(NAMES, {"z": "a/z", "kept": "a/kept"})

    changes = find_changes(store, OWNERS, NAMES)
    unnamed = find_changes(store, OWNERS, "")

    assert ["b", "b/z", "a", "a/z", "name:z"] == [change.label for change in changes]
    assert ("a", "gone/z", "a/z", True) == (
        changes[-1].server,
        changes[-1].before,
        changes[-1].after,
        changes[-1].is_name,
    )
    assert changes[:-1] == unnamed


def test_accepted_similar_names_are_not_reported_again(store: SqlCatalog) -> None:
    """If another tool joins the group, it is reported again. Without an owner of names, accepted
    groups are not stored.
    """
    own_names = {"a/get_role": "get_role", "b/get_roles": "get_roles"}
    before = find_similar(own_names, store, NAMES)
    accept_similar("a/get_role, b/get_roles", store, NAMES)
    after = find_similar(own_names, store, NAMES)
    more = find_similar({**own_names, "c/getRole": "getRole"}, store, NAMES)

    assert (("a/get_role", "b/get_roles"),) == before == find_similar(own_names, store, "")
    assert () == after
    assert (("a/get_role", "b/get_roles", "c/getRole"),) == more


def test_difference_of_a_definition_shows_only_changed_fields() -> None:
    definitions = {"1": tool("x", "Read it."), "2": tool("x", "Delete it.")}
    difference = difference_of(change("x"), definitions.get)

    assert {
        "before": {"description": "Read it."},
        "after": {"description": "Delete it."},
    } == difference
    assert (
        "  {",
        '-   "description": "Read it."',
        '+   "description": "Delete it."',
        "  }",
    ) == difference_lines(difference)


def test_difference_has_a_note_if_old_or_new_definition_is_unknown() -> None:
    """Of command lines only the digest is stored, and old definitions may be deleted."""
    command = difference_of(change(""), NOTHING.get)
    forgotten = difference_of(change("x"), NOTHING.get)

    assert "the command line or URL changed" in str(command["note"])
    assert "not stored" in str(forgotten["note"])
    assert ((), ()) == (difference_lines(command), difference_lines(forgotten))


def test_difference_compares_long_texts_by_sentence() -> None:
    """Otherwise one changed word would be hard to see in a long line."""
    text = "".join(f"Sentence number {number} of the text. " for number in range(200))
    changed = text.replace("number 150 of", "number 150 without")
    definitions = {"1": tool("x", text), "2": tool("x", changed)}
    lines = difference_lines(difference_of(change("x"), definitions.get))

    assert ["- Sentence number 150 of the text. ", "+ Sentence number 150 without the text. "] == [
        line for line in lines if line[0] != " "
    ]
    assert 7 > len(lines)


def test_difference_shows_that_omitted_lines_changed() -> None:
    """A huge schema must not hide a change behind the lines that are compared."""

    def huge(last: str) -> ToolDefinition:
        properties = {f"p{number}": {"type": "string"} for number in range(3000)}
        schema = {"type": "object", "properties": {**properties, "last": last}}
        return replace(tool("x"), input_schema=schema)

    lines = difference_lines(difference_of(change("x"), {"1": huge("a"), "2": huge("b")}.get))

    assert ["-", "+"] == [line[0] for line in lines if line[0] != " "]
    assert all("more lines of digest" in line for line in lines if line[0] != " ")
