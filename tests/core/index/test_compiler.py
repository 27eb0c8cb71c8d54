"""Compiling a changed catalog gives the same snapshot as compiling it for the first time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from gateway.catalog import Entry, to_entity
from gateway.embed import text_key
from gateway.index import Snapshot, SnapshotCompiler, VectorIndex
from gateway.options import GraphOptions
from gateway.runtime.vectors import Vector
from gateway.testing import HashingEmbedder
from gateway.types import Entity, Filters, Hints
from graphs import Document, Link
from tests.core.search.conftest import auto, rows_of, run
from tests.fakes import compile_snapshot, definitions, entity

CATALOG = [entity(definition) for definition in definitions(40)]
TOOLS = [
    entity(definition, server=f"srv{number % 3}")
    for number, definition in enumerate(definitions(30))
]
OTHERS = [
    to_entity(Entry(kind=kind, name=f"{kind}{number}", namespace=f"srv{number % 3}"))
    for kind in ("server", "agent", "dataset")
    for number in range(5)
]
QUERIES = ("approve the urgent invoice", "find flight", "exprot contracts", CATALOG[3].name, None)
EMBEDDER = HashingEmbedder()
HOST = (
    Document(id="urn:host:plan", title="Plan", requires=(Link(target=CATALOG[3].id),)),
    Document(id="urn:host:own", title=CATALOG[4].name, next_steps=(Link(target=CATALOG[5].id),)),
)


def compile_next(
    compiler: SnapshotCompiler, entities: Sequence[Entity], documents: Sequence[Document] = ()
) -> Snapshot:
    """Compile the next snapshot of *compiler*, with the vectors of all entities."""
    compiler.prepare(entities)
    compiler.vectors.add(rows_of(entities, EMBEDDER))
    return compiler.compile(documents=documents)


def compile_fresh(entities: Sequence[Entity], documents: Sequence[Document] = ()) -> Snapshot:
    return compile_snapshot(entities, rows=rows_of(entities, EMBEDDER), documents=documents)


def assert_equal(expected: Snapshot, snapshot: Snapshot) -> None:
    """Compare all data of two snapshots that a search reads, bit by bit."""
    assert expected.entities == snapshot.entities
    assert expected.by_name == snapshot.by_name
    assert expected.server_ids.tolist() == snapshot.server_ids.tolist()
    tags = Filters(tags=frozenset({"new"}))
    for filters in (Filters(), tags, Filters(servers=frozenset({"other"}))):
        assert expected.mask(filters).tolist() == snapshot.mask(filters).tolist()
    assert (expected.vectors is None) == (snapshot.vectors is None)
    if isinstance(expected.vectors, VectorIndex) and isinstance(snapshot.vectors, VectorIndex):
        assert np.array_equal(expected.vectors.matrix, snapshot.vectors.matrix)
        assert np.array_equal(expected.vectors.mean, snapshot.vectors.mean)  # type: ignore[arg-type]
    if expected.graph is None or snapshot.graph is None:
        assert expected.graph is snapshot.graph
        return
    assert set(expected.graph.facts) == set(snapshot.graph.facts)
    for query in QUERIES:
        search = auto(EMBEDDER)
        assert run(search, expected, query, limit=9) == run(search, snapshot, query, limit=9)


def change_randomly(draw: random.Random, tool: Entity) -> Entity:
    """Randomly change a tool's description, exposed name and hints."""
    description = tool.definition.description + draw.choice((" Invoices too.", " Use first.", ""))
    hints = Hints(tags=draw.choice(((), ("new",))), aliases=draw.choice(((), ("approval",))))
    return replace(
        tool,
        exposed_name=draw.choice((tool.exposed_name, f"x_{tool.exposed_name}")),
        definition=replace(tool.definition, description=description, hints=hints),
    )


@pytest.mark.parametrize("number", range(5))
def test_changed_catalog_compiles_to_the_same_snapshot_as_a_new_one(number: int) -> None:
    """Tools are added, changed and removed in any order."""
    draw = random.Random(number)
    compiler = SnapshotCompiler(GraphOptions())
    catalog: dict[str, Entity] = {}
    documents: Sequence[Document] = ()
    snapshot = compile_next(compiler, [])
    for _ in range(5):
        for tool in draw.sample(CATALOG, k=draw.choice((1, 2, 8, 30))):
            if tool.id in catalog and draw.random() < 0.5:
                del catalog[tool.id]
            else:
                catalog[tool.id] = change_randomly(draw, tool) if draw.random() < 0.5 else tool
        documents = HOST[: draw.choice((0, 1, 2))]
        snapshot = compile_next(compiler, list(catalog.values()), documents)

    assert_equal(compile_fresh(list(catalog.values()), documents), snapshot)


def test_compiling_does_not_change_earlier_snapshots() -> None:
    compiler = SnapshotCompiler(GraphOptions())
    snapshot = compile_next(compiler, CATALOG[:30])
    before = [run(auto(EMBEDDER), snapshot, query, limit=9) for query in QUERIES]

    for some in (CATALOG[10:], CATALOG[:5]):
        compile_next(compiler, some)
    empty = compile_next(compiler, [])

    assert before == [run(auto(EMBEDDER), snapshot, query, limit=9) for query in QUERIES]
    assert (None, None) == (empty.graph, empty.vectors)


def test_with_vectors_adds_late_vectors_to_a_snapshot() -> None:
    """Before that, a snapshot with only some vectors can be searched."""
    compiler = SnapshotCompiler(GraphOptions())
    rows = rows_of(CATALOG, EMBEDDER)
    late = dict(list(rows.items())[:5])
    compiler.prepare(CATALOG)
    compiler.vectors.add({key: row for key, row in rows.items() if key not in late})
    first = compiler.compile()
    missing = len(compiler.vectors.missing_texts)

    compiler.vectors.add(late)
    snapshot = compiler.with_vectors(first, ())

    assert first.vectors is not None
    assert first.vectors.count < 40
    assert (5, 0, 2) == (missing, len(compiler.vectors.missing_texts), snapshot.version)
    assert_equal(compile_fresh(CATALOG), snapshot)


def test_only_texts_of_new_entities_need_a_vector() -> None:
    """A tool that stays keeps its vector. A tool that was removed is embedded again when it
    returns.
    """
    compiler = SnapshotCompiler(GraphOptions())
    compile_next(compiler, CATALOG[:2])
    compiler.prepare(CATALOG[:1])
    assert [] == compiler.vectors.missing_texts

    compiler.prepare(CATALOG[:2])

    assert 2 == len(compiler.vectors.missing_texts)


def vector(text: str) -> Vector:
    """Return a random vector that depends only on the text."""
    drawn = np.random.default_rng(int(text_key(text)[:12], 16)).normal(size=16)
    return np.asarray(drawn / np.linalg.norm(drawn), dtype=np.float32)


def mean_of(entities: list[Entity]) -> np.ndarray:
    compiler = SnapshotCompiler(GraphOptions())
    compiler.prepare(entities)
    compiler.vectors.add({text_key(text): vector(text) for text in compiler.vectors.missing_texts})
    vectors = compiler.compile().vectors
    assert vectors is not None
    assert vectors.mean is not None
    return vectors.mean


def test_mean_vector_counts_only_kinds_that_servers_list() -> None:
    """If a catalog has no such entities, all entities count."""
    alone, together, others = map(mean_of, (TOOLS, [*TOOLS, *OTHERS], OTHERS))

    assert np.allclose(alone, together, atol=1e-6)
    assert others.any()


def test_only_the_tools_of_a_server_share_a_server_id() -> None:
    """Each server and each catalog entry has an id of its own in `Snapshot.server_ids`."""
    together = compile_snapshot([*TOOLS, *OTHERS])

    servers = {
        (member.server if member.kind == "tool" else member.id): number
        for member, number in zip(together.entities, together.server_ids.tolist(), strict=True)
    }
    assert 3 + len(OTHERS) == len(servers) == len({*servers.values()})
