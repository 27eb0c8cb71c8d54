"""The vectors of entities in memory: texts without a vector, and rows that are kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gateway.embed import text_key
from gateway.index import EntityVectors
from gateway.testing import HashingEmbedder
from gateway.types import Entity, ToolDefinition
from tests.fakes import entity

EMBEDDER = HashingEmbedder(32)
LIST, SAME, FIND = (
    entity(ToolDefinition(name=name, description=text), server=server)
    for name, text, server in (
        ("list_invoices", "List the invoices.", "one"),
        ("list_invoices", "List all bills.", "two"),
        ("find_flights", "Find a flight.", "two"),
    )
)


def embed(vectors: EntityVectors, texts: Sequence[str]) -> None:
    vectors.add({text_key(text): EMBEDDER.vectors([text])[0] for text in texts})


def places(*entities: Entity) -> dict[str, int]:
    return {entity.id: place for place, entity in enumerate(entities)}


def test_text_of_two_entities_is_missing_once_until_both_are_removed() -> None:
    vectors = EntityVectors()
    vectors.update([], [LIST, SAME, FIND])
    assert 5 == len(vectors.missing_texts)

    vectors.update([LIST], [])

    assert 4 == len(vectors.missing_texts)
    vectors.update([SAME, FIND], [])
    assert [] == vectors.missing_texts


def test_rows_of_entities_do_not_depend_on_the_order_of_vectors() -> None:
    """The vectors of texts arrive one by one or all at once, before or after the first matrix is
    made.
    """
    once, singly = EntityVectors(), EntityVectors()
    for vectors in (once, singly):
        vectors.update([], [LIST, SAME, FIND])
    embed(once, once.missing_texts)
    expected = once.matrix(places(LIST, SAME, FIND))

    for number, text in enumerate(singly.missing_texts):
        embed(singly, [text])
        if number == 2:
            singly.matrix(places(LIST, SAME, FIND))
    rows = singly.matrix(places(LIST, SAME, FIND))

    assert expected is not None
    assert rows is not None
    assert np.array_equal(expected[0], rows[0])
    assert rows[1].all()


def test_indexing_the_previous_catalog_keeps_rows_of_the_next_one() -> None:
    """While the next catalog is compiled, arriving vectors are added to the previous snapshot."""
    vectors = EntityVectors()
    vectors.update([], [LIST])
    embed(vectors, vectors.missing_texts)
    vectors.matrix(places(LIST))
    vectors.update([], [FIND])
    embed(vectors, vectors.missing_texts)

    vectors.matrix(places(LIST))
    rows = vectors.matrix(places(LIST, FIND))

    assert rows is not None
    assert [True, True] == rows[1].tolist()


def test_changed_entity_keeps_its_vector_if_its_texts_are_unchanged() -> None:
    vectors = EntityVectors()
    vectors.update([], [LIST, FIND])
    embed(vectors, vectors.missing_texts)
    before = vectors.matrix(places(LIST, FIND))
    tagged, other = LIST.with_hints(read_only=True), FIND.with_hints(search_text="Book a seat.")

    vectors.update([LIST, FIND], [tagged, other])
    missing, after = vectors.missing_texts, vectors.matrix(places(FIND, LIST, SAME))

    assert before is not None
    assert after is not None
    assert 2 == len(missing)
    assert [False, True, False] == after[1].tolist()
    assert np.array_equal(before[0][0], after[0][1])
    assert not after[0][[0, 2]].any()
