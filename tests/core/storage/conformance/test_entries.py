"""Tests of all implementations of `Entries`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gateway.catalog import Entries, Entry, entry_from_json
from gateway.storage import Store
from gateway.types import Hints
from tests.core.storage.conformance.stores import Opener

PLANNER = Entry(
    kind="agent",
    name="planner",
    description="Plans é.",
    hints=Hints(tags=("travel",), enabled=False),
    scopes=frozenset({"staff", "eu"}),
    metadata={"provider": {"name": "Acme"}, "modes": ["text", 1, None]},
)
IRIS = Entry(kind="dataset", name="iris", status="draft")


@pytest.fixture
def entries(store: Store) -> Entries:
    """Return the part of the store for entries."""
    return store.entries


def stored_entries(entries: Entries) -> dict[str, Entry]:
    return {key: entry_from_json(json.loads(text)) for key, text in entries.rows().items()}


def test_entries_are_read_unchanged_by_other_processes(opened: Opener) -> None:
    opened().entries.put([PLANNER, IRIS])

    assert {"agent:catalog/planner": PLANNER, "dataset:catalog/iris": IRIS} == stored_entries(
        opened().entries
    )


def test_put_replaces_the_entry_with_the_same_id(entries: Entries) -> None:
    """An entry of another kind or namespace has another id."""
    entries.put([PLANNER])
    entries.put([replace(PLANNER, title="New"), replace(PLANNER, namespace="acme")])

    assert ["New", ""] == [
        entry.title for _, entry in sorted(stored_entries(entries).items(), reverse=True)
    ]


def test_put_rules_replaces_the_access_rule_with_the_same_pattern(opened: Opener) -> None:
    """Other processes read the new rule too."""
    for rule in ("{}", '{"enabled": false}'):
        opened().entries.put_rules({"mail/send": rule})

    assert {"mail/send": '{"enabled": false}'} == dict(opened().entries.rules())


def test_remove_deletes_only_the_given_entry(entries: Entries) -> None:
    entries.put([PLANNER, IRIS])

    assert [True, False] == [entries.remove(PLANNER.id) for _ in range(2)]
    assert {IRIS.id} == entries.rows().keys()
