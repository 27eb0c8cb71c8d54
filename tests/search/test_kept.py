"""What a build leaves to the next: never seen in an answer, only in the work."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.search.index import Snapshot, compile_snapshot
from gateway.search.kept import Kept
from gateway.types import Entity
from tests.fakes import definitions, entity

CATALOG = [entity(each) for each in definitions(40)]
QUERIES = ("approve the urgent invoice", "find flight", "exprot contracts", CATALOG[3].name)


def built(entities: list[Entity], kept: Kept | None = None) -> Snapshot:
    texts = (kept or Kept()).embedding_texts(entities)
    return compile_snapshot(
        entities, version=1, rows={}, texts=texts, documents=(), diagnostics=(), kept=kept
    )


@settings(deadline=None, max_examples=8)
@given(st.lists(st.sets(st.integers(0, 39), min_size=1), min_size=1, max_size=4))
def test_any_way_to_a_catalog_gives_the_same_index(steps: list[set[int]]) -> None:
    """Tools come and go in any order; the last index is the one of a fresh start."""
    kept = Kept()
    *_, found = [built([CATALOG[spot] for spot in sorted(step)], kept) for step in steps]

    fresh = built([CATALOG[spot] for spot in sorted(steps[-1])])

    assert fresh.entities == found.entities
    assert fresh.graph is not None
    assert found.graph is not None
    assert set(fresh.graph.facts) == set(found.graph.facts)
    for query in QUERIES:
        for before, after in (
            (fresh.lexical.match(query), found.lexical.match(query)),
            (fresh.graph.index.postings.match(query), found.graph.index.postings.match(query)),
        ):
            assert np.allclose(before.scores, after.scores)
            assert np.allclose(before.coverage, after.coverage)
            assert before.unmatched == after.unmatched


def test_what_did_not_change_is_not_read_again() -> None:
    """One tool more is one text more, one document more."""
    kept = Kept()
    built(CATALOG[:39], kept)
    before = (kept.texts.made, kept.fields.made, kept.compiler.changed)

    built(CATALOG, kept)

    assert kept.documents is not None
    assert (39, 39) == before[:2]
    assert (40, 40, 40) == (kept.texts.made, kept.fields.made, kept.documents.made)
    assert kept.compiler.changed < before[2] / 2
    assert 0 < kept.lexicon.read_count < 8


def test_what_went_away_is_forgotten() -> None:
    """It is made anew if it comes back."""
    kept = Kept()
    for entities in (CATALOG[:2], CATALOG[:1], CATALOG[:2]):
        kept.embedding_texts(entities)

    assert 3 == kept.texts.made
