"""What is not as it was approved, and how it differs."""

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
    return SqlCatalog.in_files(tmp_path / "catalog.sqlite3")


def change(item: str, before: str = "1", after: str = "2") -> Change:
    label = f"srv/{item}" if item else "srv"
    return Change(label=label, server="srv", owner="o", item=item, before=before, after=after)


def test_changes_come_by_server_and_names_last(store: SqlCatalog) -> None:
    """Of what others pinned nothing is said, nor of a name whose holder is still there."""
    for owner, digests in (("mcp.json#b", "12"), ("mcp.json#a", "12"), ("other", "12")):
        for digest in digests:
            store.record_seen(owner, {"z": digest, "": digest, "same": "1"})
    store.bind(NAMES, {"z": "gone/z", "kept": "b/kept"})
    store.bind(NAMES, {"z": "a/z", "kept": "a/kept"})

    found = find_changes(store, OWNERS, NAMES)
    unnamed = find_changes(store, OWNERS, "")

    assert ["b", "b/z", "a", "a/z", "name:z"] == [each.label for each in found]
    assert ("a", "gone/z", "a/z", True) == (
        found[-1].server,
        found[-1].before,
        found[-1].after,
        found[-1].is_name,
    )
    assert found[:-1] == unnamed


def test_similar_names_are_not_named_again_once_they_are_accepted(store: SqlCatalog) -> None:
    """As long as no other tool joins them; nothing is kept where names are not."""
    own_names = {"a/get_role": "get_role", "b/get_roles": "get_roles"}
    before = find_similar(own_names, store, NAMES)
    accept_similar("a/get_role, b/get_roles", store, NAMES)
    after = find_similar(own_names, store, NAMES)
    more = find_similar({**own_names, "c/getRole": "getRole"}, store, NAMES)

    assert (("a/get_role", "b/get_roles"),) == before == find_similar(own_names, store, "")
    assert () == after
    assert (("a/get_role", "b/get_roles", "c/getRole"),) == more


def test_only_what_differs_is_shown() -> None:
    known = {"1": tool("x", "Read it."), "2": tool("x", "Delete it.")}
    found = difference_of(change("x"), known.get)

    assert {"before": {"description": "Read it."}, "after": {"description": "Delete it."}} == found
    assert (
        "  {",
        '-   "description": "Read it."',
        '+   "description": "Delete it."',
        "  }",
    ) == difference_lines(found)


def test_what_cannot_be_compared_says_why() -> None:
    """A command line is stored as a digest alone, and an old definition may be forgotten."""
    command = difference_of(change(""), NOTHING.get)
    forgotten = difference_of(change("x"), NOTHING.get)

    assert "stands in the configuration" in str(command["note"])
    assert "not known any more" in str(forgotten["note"])
    assert ((), ()) == (difference_lines(command), difference_lines(forgotten))


def test_a_long_text_is_compared_by_its_sentences() -> None:
    """One word in a long description is not hidden by the rest of it."""
    text = "".join(f"Sentence number {number} of the text. " for number in range(200))
    changed = text.replace("number 150 of", "number 150 without")
    known = {"1": tool("x", text), "2": tool("x", changed)}
    lines = difference_lines(difference_of(change("x"), known.get))

    assert ["- Sentence number 150 of the text. ", "+ Sentence number 150 without the text. "] == [
        line for line in lines if line[0] != " "
    ]
    assert 7 > len(lines)


def test_a_change_behind_the_last_line_that_is_compared_is_seen() -> None:
    """Whoever sends a huge schema must not hide a change in it."""

    def huge(last: str) -> ToolDefinition:
        properties = {f"p{number}": {"type": "string"} for number in range(3000)}
        schema = {"type": "object", "properties": {**properties, "last": last}}
        return replace(tool("x"), input_schema=schema)

    lines = difference_lines(difference_of(change("x"), {"1": huge("a"), "2": huge("b")}.get))

    assert ["-", "+"] == [line[0] for line in lines if line[0] != " "]
    assert all("more lines of digest" in line for line in lines if line[0] != " ")
