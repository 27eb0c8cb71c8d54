"""What all `Entries` promise: what was said of things that no server lists."""

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
    return store.entries


def stored(entries: Entries) -> dict[str, Entry]:
    return {key: entry_from_json(json.loads(text)) for key, text in entries.rows().items()}


def test_what_was_put_comes_back_as_it_was_also_in_another_process(opened: Opener) -> None:
    """Under its id."""
    opened().entries.put([PLANNER, IRIS])

    assert {"agent:catalog/planner": PLANNER, "dataset:catalog/iris": IRIS} == stored(
        opened().entries
    )


def test_an_entry_takes_the_place_of_one_with_its_id(entries: Entries) -> None:
    """A kind or a namespace makes another id."""
    entries.put([PLANNER])
    entries.put([replace(PLANNER, title="New"), replace(PLANNER, namespace="acme")])

    assert ["New", ""] == [
        entry.title for _, entry in sorted(stored(entries).items(), reverse=True)
    ]


def test_a_rule_takes_the_place_of_that_of_its_pattern(opened: Opener) -> None:
    """Also in another process."""
    for rule in ("{}", '{"enabled": false}'):
        opened().entries.put_rules({"mail/send": rule})

    assert {"mail/send": '{"enabled": false}'} == dict(opened().entries.rules())


def test_who_is_removed_is_gone_once(entries: Entries) -> None:
    """And nobody else is."""
    entries.put([PLANNER, IRIS])

    assert [True, False] == [entries.remove(PLANNER.id) for _ in range(2)]
    assert {IRIS.id} == entries.rows().keys()
