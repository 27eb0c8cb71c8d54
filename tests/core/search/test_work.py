"""A search does each piece of work once. The work is counted, not timed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gateway.index import Positions, VectorIndex
from gateway.options import SearchOptions
from gateway.runtime.vectors import Matrix
from gateway.search import Search, suggest_next_steps
from gateway.testing import HashingEmbedder
from gateway.types import Diagnostic, Entity, Filters, ToolDefinition
from tests.core.search.conftest import snapshot_of
from tests.fakes import compile_snapshot, eligibility_of, plain_embed

WORDS = ("invoice", "payment", "ticket", "flight", "album", "lesson")


def entities(count: int) -> list[Entity]:
    """Return *count* tools whose descriptions have only the words of one sentence in common."""
    return [
        Entity(
            id=f"s{number}/do{number}",
            exposed_name=f"do{number}",
            server=f"s{number}",
            definition=ToolDefinition(
                name=f"do{number}", description=f"Works on one {WORDS[number % len(WORDS)]}."
            ),
        )
        for number in range(count)
    ]


def test_search_repeats_build_diagnostics_only_of_certain_codes() -> None:
    """A large catalog may have a diagnostic of another code for nearly every tool."""
    incomplete = Diagnostic(stage="embed", code="vectors_incomplete")
    qualified = [Diagnostic(stage="catalog", code="name_qualified")] * 1000

    snapshot = compile_snapshot(entities(2), diagnostics=[*qualified, incomplete])

    assert (1001, (incomplete,)) == (len(snapshot.diagnostics), snapshot.recurring_diagnostics)


def test_search_repeats_only_a_few_diagnostics_of_a_harmless_code() -> None:
    """Equal diagnostics, such as a failing store that each server reports, are repeated once."""
    down = Diagnostic(stage="store", code="catalog_unavailable", detail="disk is full")
    bad = [
        Diagnostic(stage="graph", code="graph_document_invalid", detail=str(number))
        for number in range(1000)
    ]

    snapshot = compile_snapshot(entities(2), diagnostics=[down, *bad, down])

    assert (down, *bad[:5]) == snapshot.recurring_diagnostics


def test_equal_filters_return_the_same_read_only_mask() -> None:
    eligibility = eligibility_of(entities(4))

    mask = eligibility.mask(Filters())

    assert mask is eligibility.mask(Filters())
    assert not mask.flags.writeable


def test_number_of_cached_masks_is_bounded() -> None:
    """Filters contain the scopes of callers, so there may be very many."""
    eligibility = eligibility_of(entities(2))
    for number in range(200):
        eligibility.mask(Filters(scopes=frozenset({str(number)})))

    assert len(eligibility.masks) <= 64


class CountedRows(VectorIndex):
    """Vectors that count the rows scored outside of `search`."""

    rows_scored = 0

    def similarities(self, vectors: Matrix, positions: Positions) -> Matrix:
        CountedRows.rows_scored += len(positions)
        return super().similarities(vectors, positions)


async def test_next_steps_score_a_bounded_number_of_vectors() -> None:
    counts = []
    for size in (1200, 3600):
        embedder = HashingEmbedder()
        snapshot = snapshot_of(entities(size), embedder)
        vectors = snapshot.vectors
        assert vectors is not None
        matrix = vectors.rows(np.arange(vectors.size))
        counted = replace(snapshot, vectors=CountedRows(matrix=matrix, mean=vectors.mean))
        CountedRows.rows_scored = 0

        suggestions = await suggest_next_steps(
            Search(options=SearchOptions(), strategy="auto", embed=plain_embed(embedder)),
            counted,
            ["do7"],
            query="pay the invoice",
            filters=Filters(),
            limit=5,
        )

        assert 5 == len(suggestions)
        counts.append(CountedRows.rows_scored)

    assert max(counts) < 5000
    assert counts[1] < 1.5 * counts[0]
