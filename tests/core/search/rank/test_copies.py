"""Copies of tools are ranked below their originals."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.search import RankedList, move_copies
from gateway.types import Entity, ToolDefinition

TEXTS = [f"Return the {word} of a city for the next days, by hour." for word in "abcdefgh"]


def entity(server: str, name: str, text: str, *, generation: int, trusted: bool = False) -> Entity:
    definition = ToolDefinition(name=name, description=text)
    return Entity(
        id=f"{server}/{name}",
        exposed_name=f"{server}_{name}",
        server=server,
        definition=definition,
        generation=generation,
        trusted=trusted,
    )


ORIGINALS = [
    entity("one", f"forecast_{text[11]}", f"{text} {text[11] * 9}", generation=0) for text in TEXTS
]


def order_after_moving_copies(
    *entities: Entity, query: str = "", named: tuple[int, ...] = ()
) -> list[str]:
    """Rank *entities* in the given order, move copies, and return the ids in the new order."""
    scores = np.arange(len(entities), 0, -1, dtype=np.float32)
    moved = move_copies(
        RankedList(positions=np.arange(len(entities)), scores=scores), query, named, entities
    )
    assert sorted(moved.scores, reverse=True) == list(moved.scores)
    return [entities[position].id for position in moved.positions.tolist()]


def copy_of(original: Entity, server: str = "two", name: str = "") -> Entity:
    return entity(server, name or original.name, original.description, generation=1)


@pytest.mark.parametrize("name", ["", "another_name"], ids=["same name", "another name"])
def test_copies_are_moved_behind_the_first_five_other_tools(name: str) -> None:
    text = "Tell how warm, windy, wet and sunny it gets in any town on earth."
    original = entity("one", "forecast", text, generation=0)
    duplicate = copy_of(original, name=name)

    assert [
        *(each.id for each in (original, *ORIGINALS[:4])),
        duplicate.id,
        *(each.id for each in ORIGINALS[4:]),
    ] == order_after_moving_copies(duplicate, original, *ORIGINALS)


def test_copy_of_a_host_tool_is_moved_even_if_it_is_not_newer() -> None:
    text = "Tell how warm, windy, wet and sunny it gets in any town on earth."
    original = entity("functions", "forecast", text, generation=0, trusted=True)
    duplicate = entity("two", "forecast", text, generation=0)

    assert [original.id, duplicate.id] == order_after_moving_copies(duplicate, original)


@pytest.mark.parametrize(
    "later",
    [
        entity("one", "forecast", TEXTS[0], generation=1),
        entity("two", "forecast", TEXTS[0], generation=0),
        entity("two", "forecast", TEXTS[0], generation=-1),
        entity("two", "forecast", TEXTS[0], generation=1, trusted=True),
        entity("two", "forecast", "Other words say what nobody knows elsewhere.", generation=1),
    ],
    ids=["same server", "came at once", "alias", "of the host", "other words"],
)
def test_tool_that_is_not_a_copy_keeps_its_rank(later: Entity) -> None:
    earlier = entity("one", "forecast", TEXTS[0], generation=0)

    assert [later.id, earlier.id] == order_after_moving_copies(later, earlier)


def test_copy_keeps_its_rank_if_the_query_contains_its_name_or_its_server() -> None:
    original = entity("one", "forecast", TEXTS[0], generation=0)
    duplicate = copy_of(original)

    assert [duplicate.id, original.id] == order_after_moving_copies(duplicate, original, named=(0,))
    assert [duplicate.id, original.id] == order_after_moving_copies(
        duplicate, original, query="of server Two"
    )
    assert [original.id, duplicate.id] == order_after_moving_copies(
        duplicate, original, named=(0, 1)
    )


def test_tools_with_short_descriptions_are_not_copies() -> None:
    original = entity("one", "search", "Search.", generation=0)
    later = entity("two", "search", "Search.", generation=1)

    assert [later.id, original.id] == order_after_moving_copies(later, original)
