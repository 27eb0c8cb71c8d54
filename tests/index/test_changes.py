"""A catalog that changes: never seen in an answer, only in the work."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from gateway.embed.cache import text_key
from gateway.index.embedding_texts import Texts
from gateway.index.snapshot import Snapshot
from gateway.index.snapshots import Snapshots, compile_snapshot
from gateway.options import GraphOptions
from gateway.runtime.vectors import Vector
from gateway.sources.entity_registry import EntityDelta
from gateway.testing import HashingEmbedder
from gateway.types import Entity, Filters, Hints
from graphs import Document, Link
from tests.fakes import definitions, entity
from tests.search.conftest import auto, run

CATALOG = [entity(each) for each in definitions(40)]
QUERIES = ("approve the urgent invoice", "find flight", "exprot contracts", CATALOG[3].name, None)
EMBEDDER = HashingEmbedder()
HOST = (
    Document(id="urn:host:plan", title="Plan", requires=(Link(target=CATALOG[3].id),)),
    Document(id="urn:host:own", title=CATALOG[4].name, next_steps=(Link(target=CATALOG[5].id),)),
)


def rows_of(entities: Sequence[Entity]) -> dict[str, Vector]:
    texts = Texts()
    texts.change((), entities)
    wanted = sorted(texts.wanted.values())
    if not wanted:
        return {}
    rows = zip(wanted, EMBEDDER.vectors(wanted), strict=True)
    return {text_key(text): row for text, row in rows}


class Changing:
    """An index that is changed step by step."""

    def __init__(self) -> None:
        self.snapshots = Snapshots(GraphOptions())
        self.entities: dict[str, Entity] = {}

    def to(self, entities: Sequence[Entity], documents: Sequence[Document] = ()) -> Snapshot:
        wanted = {each.id: each for each in entities}
        gone = [each for key, each in self.entities.items() if wanted.get(key) is not each]
        new = [each for key, each in wanted.items() if self.entities.get(key) is not each]
        self.entities = wanted
        self.snapshots.texts.change(gone, new)
        self.snapshots.texts.embedded(rows_of(new))
        return self.snapshots.change(
            EntityDelta(removed=tuple(gone), added=tuple(new)),
            version=1,
            documents=documents,
            diagnostics=(),
        )


def same(fresh: Snapshot, found: Snapshot) -> None:
    """Compare all that an answer is made of, to the last bit."""
    assert tuple(fresh.entities) == tuple(found.entities)
    assert dict(fresh.by_name) == dict(found.by_name)
    tags = Filters(tags=frozenset({"new"}))
    for filters in (Filters(), tags, Filters(servers=frozenset({"other"}))):
        assert fresh.mask(filters).tolist() == found.mask(filters).tolist()
    if fresh.vectors is None or found.vectors is None:
        assert fresh.vectors is found.vectors
    else:
        everyone = np.arange(len(fresh.entities))
        assert np.array_equal(fresh.vectors.rows(everyone), found.vectors.rows(everyone))
        assert np.array_equal(fresh.vectors.mean.row, found.vectors.mean.row)
    assert np.array_equal(fresh.server_ids, found.server_ids)
    if fresh.graph is None or found.graph is None:
        assert fresh.graph is found.graph
        return
    assert tuple(fresh.graph.facts) == tuple(found.graph.facts)
    assert fresh.graph.nodes == found.graph.nodes
    assert fresh.graph.owners.tolist() == found.graph.owners.tolist()
    assert fresh.graph.conditioned == found.graph.conditioned
    assert fresh.graph.guessed == found.graph.guessed
    for query in QUERIES:
        for ranking in (auto(EMBEDDER), auto(EMBEDDER, graph=False)):
            assert run(ranking, fresh, query, limit=9) == run(ranking, found, query, limit=9)
        if query:
            assert fresh.lexical.match(query).scores.tolist() == (
                found.lexical.match(query).scores.tolist()
            )


@pytest.mark.parametrize("number", range(4))
def test_mates_are_those_of_a_fresh_start(number: int) -> None:
    """Servers come, lose their last tool, and come again."""
    draw = random.Random(number)  # noqa: S311  (the same catalogs at every run; no secret)
    tools = [replace(tool, server=f"s{at % 7}") for at, tool in enumerate(CATALOG)]
    index = Changing()
    for _ in range(6):
        some = [tool for tool in tools if tool.server != f"s{draw.randrange(7)}"]
        some = draw.sample(some, k=draw.choice((1, 3, len(some))))
        found = index.to(some)
        same(compile_snapshot(some, rows=rows_of(some)), found)


def changed(draw: random.Random, tool: Entity) -> Entity:
    """Describe a tool anew, call it another name, or tag it."""
    told = tool.definition.description + draw.choice((" Invoices too.", " Use it first.", ""))
    hints = Hints(tags=draw.choice(((), ("new",))), aliases=draw.choice(((), ("approval",))))
    return replace(
        tool,
        exposed_name=draw.choice((tool.exposed_name, f"x_{tool.exposed_name}")),
        definition=replace(tool.definition, description=told, hints=hints),
    )


@pytest.mark.parametrize("number", range(8))
def test_any_way_to_a_catalog_gives_the_same_index(number: int) -> None:
    """Tools come, change and go in any order; the last index is the one of a fresh start."""
    draw = random.Random(number)  # noqa: S311  (the same catalogs at every run; no secret)
    index = Changing()
    known: dict[str, Entity] = {}
    documents: Sequence[Document] = ()
    found = index.to([])
    for _ in range(5):
        some = draw.sample(CATALOG, k=draw.choice((1, 2, 8, 30)))
        for tool in some:
            if tool.id in known and draw.random() < 0.5:
                del known[tool.id]
            else:
                known[tool.id] = changed(draw, tool) if draw.random() < 0.5 else tool
        documents = HOST[: draw.choice((0, 1, 2))]
        found = index.to(list(known.values()), documents)

    rows = rows_of(list(known.values()))
    fresh = compile_snapshot(list(known.values()), rows=rows, documents=documents)
    same(fresh, found)


def test_a_large_catalog_that_changes_is_that_of_a_fresh_start() -> None:
    """Many at once are sorted anew, a few are put in one by one."""
    tools = [entity(each) for each in definitions(400)]
    index = Changing()
    for some in (tools[:390], tools[5:395], tools[5:]):
        index.to(some)

    some = [*tools[5:50], *tools[60:]]
    found = index.to(some)

    same(compile_snapshot(some, rows=rows_of(some)), found)


def test_a_tool_more_is_a_tool_s_work() -> None:
    """One text read, one document compiled, one row added; what stays is not touched."""
    index = Changing()
    before = index.to(CATALOG[:39])
    assert before.vectors is not None
    assert before.graph is not None
    made = index.snapshots.texts.made

    after = index.to(CATALOG)

    assert after.vectors is not None
    assert after.graph is not None
    assert made + 1 == index.snapshots.texts.made
    assert 1 == index.snapshots.graphs.compiler.changed
    assert after.vectors.segments[0] is before.vectors.segments[0]
    assert [39, 1] == [len(rows) for rows in after.vectors.segments]
    assert len(before.entities) + 1 == len(after.entities)
    assert before.lexical.terms.items() <= after.lexical.terms.items()


def test_a_held_snapshot_does_not_change() -> None:
    """Readers never wait for a writer, and never see what it does."""
    index = Changing()
    held = index.to(CATALOG[:30])
    before = [run(auto(EMBEDDER), held, query, limit=9) for query in QUERIES]

    for some in (CATALOG[10:], CATALOG[:5], []):
        index.to(some)

    assert before == [run(auto(EMBEDDER), held, query, limit=9) for query in QUERIES]
    assert (None, None) == (index.to([]).graph, index.to([]).vectors)


def test_a_vector_that_comes_late_is_used() -> None:
    """An embedder that failed is asked again; the tools are the same."""
    snapshots = Snapshots(GraphOptions())
    snapshots.texts.change((), CATALOG)
    rows = rows_of(CATALOG)
    late = text_key(next(iter(snapshots.texts.wanted.values())))
    snapshots.texts.embedded({key: row for key, row in rows.items() if key != late})
    nothing = EntityDelta(removed=(), added=())

    def build(turnover: EntityDelta) -> Snapshot:
        return snapshots.change(turnover, version=1, documents=(), diagnostics=())

    first = build(EntityDelta(removed=(), added=tuple(CATALOG)))
    snapshots.texts.embedded({late: rows[late]})
    found = build(nothing)

    assert first.vectors is not None
    assert 39 == first.vectors.mean.count
    same(compile_snapshot(CATALOG, rows=rows), found)


def test_what_went_away_is_forgotten() -> None:
    """It is made anew if it comes back."""
    texts = Texts()
    texts.change((), CATALOG[:2])
    texts.embedded(rows_of(CATALOG[:2]))
    texts.change(CATALOG[1:2], ())
    texts.change((), CATALOG[1:2])

    assert (3, 2) == (texts.made, len(texts.wanted))
