"""Rule 8: with `auto`, derived supplements and all proxies come from the window of the ranking."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.index import Snapshot, VectorIndex, VectorQuery
from gateway.options import SearchOptions
from gateway.runtime.vectors import unit_rows
from gateway.search import Search, candidate_window
from gateway.testing import HashingEmbedder
from gateway.types import Entity, SearchResult
from graphs import Document, Edge, Link
from tests.conftest import CatalogOf
from tests.core.search.conftest import auto, run, snapshot_of
from tests.fakes import definitions, entity, tool

QUERY = "approve the urgent invoice"
NOTES = ("get_note", "edit_note", "send_note", "sign_note", "void_note")


@functools.cache
def hub_of(size: int) -> tuple[Snapshot, HashingEmbedder]:
    """Return a catalog in which derived next steps lead from the best match to all other tools."""
    embedder = HashingEmbedder()
    entities = [entity(definition) for definition in definitions(size)]
    hub = replace(hub_document("approve_invoice", entities), declared=False)
    hub = replace(hub, related=(), next_steps=hub.related)
    return snapshot_of(entities, embedder, documents=[hub]), embedder


def hub_document(title: str, entities: Sequence[Entity]) -> Document:
    """Return a document that relates the tool named *title* to all other tools."""
    related = tuple(Link(target=entity.name) for entity in entities[:60])
    return Document(id="host:hub", title=title, related=related)


def window_of(snapshot: Snapshot, embedder: HashingEmbedder, *, limit: int) -> set[str]:
    """Return the ids in the window, computed from its definition: a maximum rank and a minimum
    score.
    """
    assert snapshot.vectors is not None
    query = VectorQuery(texts=embedder.vectors([QUERY]), clauses=embedder.vectors([]))
    cosines = snapshot.vectors.similarities(query.texts, np.arange(len(snapshot.entities)))[0]
    margin = 0.5 * min(1, len(cosines) / 60)
    floor = cosines.mean() + margin * (cosines.max() - cosines.mean())
    head = np.argsort(-cosines, kind="stable")[: max(8, 4 * limit)]
    return {snapshot.entities[spot].id for spot in head if cosines[spot] >= floor}


def supplement_ids(result: SearchResult) -> set[str]:
    return {match.id for match in (*result.related, *result.next_steps)}


@pytest.mark.requirement("auto:rule-8", "edge:outside-window-is-no-proxy")
@pytest.mark.parametrize("size", [10, 30, 100, 3000])
@pytest.mark.parametrize("limit", [1, 3, 5])
def test_derived_supplements_are_inside_the_window_at_every_catalog_size(
    size: int, limit: int
) -> None:
    """Rule 8: the window is bounded by rank and score. In a small catalog the score margin is
    smaller.

    Derived edges lead to all other tools, so the window is the only limit.
    """
    snapshot, embedder = hub_of(size)
    window = window_of(snapshot, embedder, limit=limit)

    bounded = run(auto(embedder), snapshot, QUERY, limit=limit)

    assert len(window) == bounded.counts.window
    assert set() == supplement_ids(bounded) - window
    assert all(match.direct for match in (*bounded.related, *bounded.next_steps))


@pytest.mark.requirement("auto:rule-8", "edge:outside-window-is-no-proxy")
@pytest.mark.parametrize("size", [10, 100, 3000])
def test_declared_supplements_inside_the_window_are_listed_first(size: int) -> None:
    """Only these become proxies, so they come before edges of equal weight to tools outside."""
    snapshot, embedder = hub_of(size)
    window = window_of(snapshot, embedder, limit=1)
    best = run(auto(embedder), snapshot, QUERY, limit=1).matches[0].name
    hub = hub_document(best, snapshot.entities)
    declared = snapshot_of(list(snapshot.entities), embedder, documents=[hub])

    result = run(auto(embedder), declared, QUERY, limit=1)

    inside = [match.id in window for match in result.related]
    assert len(result.related) == SearchOptions().max_related
    assert sorted(inside, reverse=True) == inside
    assert inside == [match.direct for match in result.related]
    assert all(step.declared for match in result.related for step in match.evidence.path)


@pytest.mark.parametrize("queries", [1, 2])
def test_supplements_follow_edges_from_the_best_match_of_each_query(queries: int) -> None:
    """Edges of lower matches are seldom useful."""
    entities = [entity(tool(name)) for name in (*NOTES, "play_song", "book_room", "water_plant")]
    documents = [
        Document(id=f"host:{title}", title=title, next_steps=(Link(target=target),))
        for title, target in (
            ("get_note", "play_song"),
            ("edit_note", "book_room"),
            ("send_note", "water_plant"),
        )
    ]
    snapshot = snapshot_of(entities, HashingEmbedder(), documents=documents)
    texts = ("get_note", "send_note")[:queries]

    result = run(auto(HashingEmbedder()), snapshot, None, queries=texts, limit=5)

    assert set(NOTES) == {match.name for match in result.matches}
    assert ["play_song", "water_plant"][:queries] == sorted(
        match.name
        for match in result.next_steps
        if all(step.declared for step in match.evidence.path)
    )


@pytest.mark.requirement("auto:rule-8")
@pytest.mark.parametrize("size", [30, 100])
def test_derived_supplements_are_more_if_the_window_is_the_whole_catalog(size: int) -> None:
    """Rule 8: this shows that the window, and not the graph, limits the supplements."""
    snapshot, embedder = hub_of(size)
    free = auto(embedder, window_min=size, window_margin=0, max_next_steps=60)

    result = run(free, snapshot, QUERY, limit=1)

    assert supplement_ids(result) - window_of(snapshot, embedder, limit=1)


@pytest.mark.requirement("auto:rule-8")
def test_each_list_of_supplements_has_its_own_maximum_length(catalog_of: CatalogOf) -> None:
    """Rule 8."""
    embedder = HashingEmbedder()
    entities = [entity(definition) for definition in catalog_of(300)]
    hub = hub_document("find_invoice", entities)
    hub = replace(hub, next_steps=hub.related[30:], related=hub.related[:30])
    snapshot = snapshot_of(entities, embedder, documents=[hub])
    search = auto(embedder, window_min=300, window_margin=0, max_related=2, max_next_steps=1)

    result = run(search, snapshot, "find one invoice of the account", limit=1)

    assert (2, 1) == (len(result.related), len(result.next_steps))


@given(
    cosines=st.lists(st.floats(-1, 1, width=16), min_size=1, max_size=60),
    eligible=st.lists(st.booleans(), min_size=60, max_size=60),
    limit=st.integers(1, 12),
)
def test_window_contains_only_the_best_eligible_candidates(
    cosines: list[float], eligible: list[bool], limit: int
) -> None:
    """Rule 8: it is never larger than the list of candidates, and it always contains the best
    match.
    """
    matrix = unit_rows([[value, (1 - value * value) ** 0.5] for value in cosines])
    mask = np.asarray(eligible[: len(cosines)])
    options = SearchOptions(pool_min=20)

    nearest = VectorIndex.of(matrix).search(
        VectorQuery(texts=unit_rows([[1, 0]]), clauses=matrix[:0]),
        mask=mask,
        count=options.pool(limit),
    )

    pool = nearest.pool.tolist()
    strengths = nearest.strengths.tolist()
    assert sorted(strengths, reverse=True) == strengths
    assert min(int(mask.sum()), options.pool(limit)) == len(pool)
    assert all(mask[spot] for spot in pool)
    window = candidate_window(nearest, limit, options)
    assert window <= set(pool[: options.window(limit)])
    assert not pool or pool[0] in window


def test_score_for_a_long_request_includes_its_best_clause() -> None:
    matrix = unit_rows([[1, 1], [0, 1]])

    nearest = VectorIndex.of(matrix).search(
        VectorQuery(texts=unit_rows([[1, 0]]), clauses=unit_rows([[0, 1]]), clause_weight=0.7),
        mask=np.asarray([True, True]),
        count=2,
    )

    assert [0.7071 * 1.7, 0.7] == pytest.approx(nearest.strengths.tolist(), abs=1e-3)
    assert [0.7071, 0] == pytest.approx(nearest.cosines_at([0, 1]), abs=1e-3)


@pytest.mark.parametrize("size", [12, 112, 1000])
def test_declared_supplements_come_from_outside_the_window_without_vectors(size: int) -> None:
    """A rank by words does not show how near a tool without them is. Derived supplements stay
    inside.
    """
    names = ("list_invoices", "settle_bill", "send_email")
    entities = [entity(tool(name)) for name in names]
    entities += [entity(tool(f"rotate_{spot}_matrix")) for spot in range(size - len(names))]
    plan = Document(
        id="host:plan",
        title="list_invoices",
        next_steps=(Link(target="settle_bill"),),
        related=(Link(target="send_email"),),
    )
    snapshot = snapshot_of(entities, documents=[plan])

    result = run(Search(options=SearchOptions(), strategy="graph"), snapshot, "list invoices")

    assert ["list_invoices"] == [match.name for match in result.matches][:1]
    assert ["settle_bill"] == [match.name for match in result.next_steps]
    assert ["send_email"] == [match.name for match in result.related]
    assert all(match.direct for match in (*result.next_steps, *result.related))


def test_declared_supplements_are_listed_before_derived_ones() -> None:
    """The derived ones have a higher weight here, and would fill the list."""
    entities = [entity(tool(name)) for name in ("search_note", *NOTES)]
    weak = tuple(
        Edge(subject="search_note", predicate=predicate, object=target, weight=0.1)
        for predicate, target in (("nextStep", "void_note"), ("relatedTo", "sign_note"))
    )
    plan = Document(id="host:plan", title="plan", edges=weak)
    snapshot = snapshot_of(entities, HashingEmbedder(), documents=[plan])
    options = SearchOptions(window_margin=0, max_related=1, max_next_steps=1)
    search = Search(options=options, strategy="graph")

    result = run(search, snapshot, "search_note", limit=1)

    assert ["search_note"] == [match.name for match in result.matches]
    assert ["void_note"] == [match.name for match in result.next_steps]
    assert ["sign_note"] == [match.name for match in result.related]
