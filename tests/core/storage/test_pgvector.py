"""Vectors in PostgreSQL with pgvector: what a search finds there, and who makes its rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.sql import SQL, Identifier

from benchmarks import synthetic
from gateway.embed.cache import text_key
from gateway.embed.protocol import EmbedderInfo
from gateway.errors import ConfigError, StoreError
from gateway.gateway import Gateway
from gateway.index.eligibility import Eligibility, traits_of
from gateway.index.vectors import VectorIndex, VectorQuery
from gateway.options import IndexOptions, Options, SearchOptions
from gateway.runtime.vectors import Matrix, unit_rows
from gateway.storage.pgvector import PgvectorIndex, PgvectorRows
from gateway.storage.pgvector_table import PgvectorTable
from gateway.storage.postgres import PostgresStore
from gateway.storage.postgres_database import PostgresDatabase
from gateway.testing import HashingEmbedder
from gateway.types import Entity, SearchResult, ToolDefinition
from tests.fakes import ListSource, codes, entity, tool, until
from tests.postgres_server import PostgresServer

SIZE, COUNT = 32, 3000
HALF = 1e-3
"""What half precision may move a cosine by, of rows of this size."""
INFO = EmbedderInfo(model_id="test", provider="none", dimensions=SIZE)
IN_DATABASE = Options(
    index=IndexOptions(rows="pgvector"), search=SearchOptions(query_timeout_s=120)
)
IN_MEMORY = Options(search=SearchOptions(query_timeout_s=120))


def drawn(count: int, seed: int = 0) -> Matrix:
    """Draw rows around centres, each of which has twenty."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((count // 20, SIZE))
    near = centres[rng.permutation(count) % len(centres)]
    return unit_rows(near + 0.6 * rng.standard_normal((count, SIZE)))


class Shelf:
    """A catalog in a schema of its own, and the same in memory."""

    def __init__(self, url: str, schema: str, rows: Matrix) -> None:
        self.database = PostgresDatabase(url, schema)
        self.table = PgvectorTable(self.database, "ab12", 60)
        keys = [f"{at:06}".encode() for at in range(len(rows))]
        self.table.write([*zip(keys, rows, strict=True)])
        ids = self.table.read(keys)
        self.rows = rows
        self.ids = np.array([ids[key] for key in keys])

    def index(self, ids: np.ndarray, *, few_rows: int) -> PgvectorIndex:
        listed = np.flatnonzero(ids)
        return PgvectorIndex(self.table, ids, SIZE, listed=listed, few_rows=few_rows)


@pytest.fixture(scope="module")
def shelf(postgres: PostgresServer) -> Iterator[Shelf]:
    """Rows with an HNSW index; the last thousand are of other catalogs."""
    made = Shelf(postgres.url, "shelf", drawn(COUNT + 1000))
    made.table.make_index(SIZE)
    yield made
    made.database.close()


def asked(*texts: np.ndarray, clauses: Iterable[np.ndarray] = ()) -> VectorQuery:
    parts = unit_rows([*clauses]) if [*clauses] else np.zeros((0, SIZE), np.float32)
    return VectorQuery(texts=unit_rows(np.stack(texts)), clauses=parts, clause_weight=0.7)


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 99),
    share=st.floats(0, 1),
    texts=st.integers(1, 2),
    clauses=st.integers(0, 2),
    lacking=st.booleans(),
)
def test_exact_scans_in_the_database_and_in_memory_are_equal(
    shelf: Shelf, seed: int, share: float, texts: int, clauses: int, lacking: bool
) -> None:
    """The same order but for what half precision confounds; the same moments within it.

    Equal entities share a row, and some have none.
    """
    rng = np.random.default_rng(seed)
    chosen = rng.integers(300, size=400)
    ids, rows = shelf.ids[chosen], shelf.rows[chosen]
    absent = rng.random(400) < (0.2 if lacking else 0)
    ids, rows = np.where(absent, 0, ids), np.where(absent[:, None], np.float32(0), rows)
    mask = rng.random(400) < share
    query = asked(*drawn(40, seed)[:texts], clauses=drawn(40, seed)[10 : 10 + clauses])
    memory = VectorIndex.of(rows, present=~absent if absent.any() else None)

    found = shelf.index(ids, few_rows=400).search(query, mask=mask, count=30)
    expected = memory.search(query, mask=mask, count=30)

    assert (found.eligible, found.scored) == (int(mask.sum()), int(mask.sum()))
    assert len(expected.pool) == len(found.pool)
    strengths = memory.score(query)[1]
    assert np.allclose(expected.strengths, strengths[found.pool], atol=2 * HALF)
    assert np.allclose(found.strengths, strengths[found.pool], atol=HALF)
    assert np.allclose(found.cosines, memory.score(query)[0][found.pool], atol=HALF)
    pairs = zip(found.strengths.tolist(), found.pool.tolist(), strict=True)
    assert sorted(pairs, key=lambda each: (-each[0], each[1])) == list(
        zip(found.strengths.tolist(), found.pool.tolist(), strict=True)
    )
    for mine, theirs in (
        (found.moments.strengths, expected.moments.strengths),
        (found.moments.cosines, expected.moments.cosines),
    ):
        assert abs(mine.mean - theirs.mean) < HALF
        assert abs(mine.spread - theirs.spread) < HALF


def correlated(rows: Matrix, query: VectorQuery) -> np.ndarray:
    """Let four of ten be found, none of them near to *query*."""
    cosines = VectorIndex.of(rows).score(query)[0]
    return np.asarray(cosines < np.quantile(cosines, 0.4))


@pytest.mark.parametrize(
    ("share", "way"), [(1.0, "index"), (0.1, "index"), (0.01, "exact"), (None, "exact")]
)
def test_no_filter_costs_recall(shelf: Shelf, share: float | None, way: str) -> None:
    """Few are scored exactly; many come from the HNSW index, if enough of these may be found.

    Rows of other catalogs in the table take the place of none.
    """
    rows, index = shelf.rows[:COUNT], shelf.index(shelf.ids[:COUNT], few_rows=100)
    rng, recalls, ways = np.random.default_rng(4), [], set()
    for place in rng.integers(COUNT, size=12):
        query = asked(rows[place] + 0.1 * rng.standard_normal(SIZE))
        mask = correlated(rows, query) if share is None else rng.random(COUNT) < share
        found = index.search(query, mask=mask, count=20)
        expected = VectorIndex.of(rows).search(query, mask=mask, count=20)
        strengths = VectorIndex.of(rows).score(query)[1]
        recalls.append(np.mean(strengths[found.pool[:10]] > expected.strengths[9] - HALF))
        ways.add("exact" if found.scored == found.eligible else "index")
        assert mask[found.pool].all()
        assert abs(found.moments.strengths.mean - expected.moments.strengths.mean) < 0.05

    assert {way} == ways
    assert np.mean(recalls) >= 0.99


def test_each_part_of_a_long_request_has_its_own_candidates(shelf: Shelf) -> None:
    """The best by one clause is found among thousands, with its exact strength."""
    rows, index = shelf.rows[:COUNT], shelf.index(shelf.ids[:COUNT], few_rows=100)
    query = asked(rows[3] + rows[8], clauses=[rows[3], rows[8]])
    everything = np.ones(COUNT, np.bool_)

    found = index.search(query, mask=everything, count=20)
    expected = VectorIndex.of(rows).search(query, mask=everything, count=20)

    assert found.scored < 300
    assert len({*found.pool[:10].tolist()} & {*expected.pool[:10].tolist()}) >= 9
    assert np.allclose(expected.strengths[:3], found.strengths[:3], atol=2 * HALF)


def test_rows_that_are_gone_are_an_error_and_not_a_bad_score(shelf: Shelf) -> None:
    """Someone emptied the table."""
    index = shelf.index(np.array([shelf.ids[0], 10**9]), few_rows=100)

    with pytest.raises(StoreError, match="rows of entities are gone"):
        index.search(asked(shelf.rows[0]), mask=np.ones(2, np.bool_), count=2)


def test_an_index_tells_its_mean_and_its_rows(shelf: Shelf) -> None:
    """What next steps need. An entity without a row has zeros; a row that is gone is an error."""
    index = shelf.index(shelf.ids[:200], few_rows=500)

    assert np.allclose(shelf.rows[:200].mean(axis=0), index.mean, atol=HALF)
    assert np.allclose(shelf.rows[[5, 2]], index.rows(np.array([5, 2])), atol=HALF)
    assert (200, SIZE, 200, None) == (index.size, index.dimensions, index.count, index.present)
    without = shelf.index(np.array([0, shelf.ids[0]]), few_rows=100)
    assert [0, 1] == np.round(np.linalg.norm(without.rows(np.array([0, 1])), axis=1), 2).tolist()
    assert (1, SIZE) == without.rows(np.array([0])).shape
    gone = shelf.index(np.array([10**9, 10**9 + 1]), few_rows=100)
    with pytest.raises(StoreError, match="are gone"):
        gone.rows(np.array([0]))
    with pytest.raises(StoreError, match="are gone"):
        _ = gone.mean


EMBEDDER = HashingEmbedder(SIZE)
NAMED = [
    entity(ToolDefinition(name=f"{verb}_{noun}", description=f"It can {verb} {noun} quickly."))
    for verb in ("paint", "carry", "count", "clean", "mend", "draw", "lend", "fold")
    for noun in ("fences", "boats", "lamps", "chairs", "doors", "pens", "books", "shirts")
]
Make = Callable[[], PgvectorRows]


@pytest.fixture
def make(postgres: PostgresServer, tmp_path: Path) -> Iterator[Make]:
    """Make what keeps rows, all in one schema."""
    with ExitStack() as opened:

        def another() -> PgvectorRows:
            database = PostgresDatabase(postgres.url, tmp_path.name)
            opened.callback(database.close)
            return PgvectorRows(database, INFO, timeout_s=60, few_rows=50)

        yield another


def embed(rows: PgvectorRows) -> int:
    """Embed what is missing; return how many texts that were."""
    rows.load()
    texts = rows.missing_texts
    rows.add({text_key(text): EMBEDDER.vectors([text])[0] for text in texts})
    return len(texts)


def of(*entities: Entity) -> Eligibility:
    return Eligibility.of([each.id for each in entities], [traits_of(each) for each in entities])


def nearest(rows: PgvectorRows, *entities: Entity) -> list[str]:
    """Return for each of *entities* which one is nearest to its whole text."""
    index = rows.index(of(*entities))
    assert index is not None
    everything = np.ones(len(entities), np.bool_)
    texts = [f"{each.definition.name} {each.definition.description}" for each in entities]
    found = [
        index.search(asked(row), mask=everything, count=1).pool[0]
        for row in EMBEDDER.vectors(texts)
    ]
    return [entities[at].id for at in found]


def test_a_row_is_made_once_for_all(make: Make, postgres: PostgresServer, tmp_path: Path) -> None:
    """Another process embeds nothing; a tool that changes is a new row; equal ones share one."""
    first, second = make(), make()
    twin = replace(NAMED[0], id="srv/twin", exposed_name="twin")
    first.update([], [*NAMED[:5], twin])
    assert 10 == embed(first)
    assert 0 == first.missing

    second.update([], NAMED[:6])
    assert 2 == embed(second)

    ids = [each.id for each in NAMED[:6]]
    assert ids == nearest(second, *NAMED[:6])
    assert ids[:5] == nearest(first, *NAMED[:5], twin)[:5]
    # Vectors that come while a catalog is compiled are put into the one before it.
    second.update([], [NAMED[6]])
    embed(second)
    assert ids == nearest(second, *NAMED[:6])
    assert NAMED[6].id == nearest(second, *NAMED[:7])[6]
    changed = NAMED[1].with_hints(search_text="Sing a song.")
    second.update(NAMED[1:3], [changed, NAMED[2].with_hints(read_only=True)])
    assert 2 == embed(second)
    assert [NAMED[0].id, NAMED[2].id] == nearest(second, NAMED[0], NAMED[2])
    with psycopg.connect(postgres.url, options=f'-c search_path="{tmp_path.name}"') as tables:
        assert (8, 8) == tables.execute(
            "SELECT (SELECT count(*) FROM entity_keys), (SELECT count(*) FROM entity_rows)"
        ).fetchone()


def test_an_entity_is_written_when_all_its_texts_have_a_vector(make: Make) -> None:
    """What it leans to is a part of its key."""
    rows = make()
    served = NAMED[0].with_hints(examples=("please do it",))
    rows.update([], [served])
    rows.load()

    for text in rows.missing_texts:
        assert rows.index(of(served)) is None
        rows.add({text_key(text): EMBEDDER.vectors([text])[0]})

    index, again = rows.index(of(served)), make()
    again.update([], [NAMED[0]])
    assert 1 == (index.count if index else 0)
    assert 2 == embed(again)


def test_rows_of_no_use_for_a_week_are_deleted(
    make: Make, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Those of an index that is used are not, nor those that a build finds."""
    rows, other = make(), make()
    rows.update([], NAMED[:4])
    embed(rows)
    rows.index(of(*NAMED[:2]))
    with psycopg.connect(
        postgres.url, options=f'-c search_path="{tmp_path.name}"', autocommit=True
    ) as tables:
        tables.execute("UPDATE entity_keys SET used = CURRENT_DATE - 8")
        other.update([], [NAMED[2]])
        assert 0 == embed(other)

        rows.maintain()

        left = tables.execute("SELECT count(*) FROM entity_rows JOIN entity_keys USING (id)")
        assert (3,) == left.fetchone()


@pytest.mark.parametrize("table", ["entity_keys", "entity_rows"])
def test_rows_that_were_deleted_by_hand_are_made_again(
    make: Make, postgres: PostgresServer, tmp_path: Path, table: str
) -> None:
    """Also by a process that starts after that, and where their keys are left."""
    rows, entities = make(), NAMED[:3]
    rows.update([], entities)
    embed(rows)
    index = rows.index(of(*entities))
    assert index is not None
    with psycopg.connect(
        postgres.url, options=f'-c search_path="{tmp_path.name}"', autocommit=True
    ) as tables:
        tables.execute(SQL("TRUNCATE {}").format(Identifier(table)))

    later = make()
    later.update([], entities)
    assert 6 == embed(later)
    assert [each.id for each in entities] == nearest(later, *entities)


async def test_many_rows_get_an_index_in_the_background(
    make: Make, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Nobody waits for it; a second process leaves it to the first."""
    rows = make()
    rows.update([], NAMED)
    embed(rows)
    before = nearest(rows, *NAMED)

    rows.maintain()
    rows.maintain()

    query = """SELECT count(*) FROM pg_index JOIN pg_class ON oid = indexrelid
        WHERE indrelid = 'entity_rows'::regclass AND indisvalid AND NOT indisprimary"""
    with psycopg.connect(
        postgres.url, options=f'-c search_path="{tmp_path.name}"', autocommit=True
    ) as tables:

        async def is_made() -> bool:
            return tables.execute(query).fetchone() == (1,)

        await until(is_made)
    assert before == nearest(rows, *NAMED)


class CountingEmbedder(HashingEmbedder):
    """Counts the documents that it embeds."""

    documents = 0

    async def embed(self, texts: Sequence[str], *, role: str) -> object:  # type: ignore[override]
        if role == "document":
            self.documents += len(texts)
        return await super().embed(texts, role=role)  # type: ignore[arg-type]


Open = Callable[..., Gateway]


@pytest.fixture
async def open_on_store(postgres: PostgresServer, tmp_path: Path) -> AsyncIterator[Open]:
    """Open gateways on one store, or in memory."""
    made: list[Gateway] = []

    def another(embedder: HashingEmbedder, options: Options = IN_DATABASE) -> Gateway:
        store = PostgresStore(postgres.url, schema=tmp_path.name)
        made.append(Gateway(strategy="auto", embedder=embedder, store=store, options=options))
        return made[-1]

    yield another
    for gateway in made:
        await gateway.aclose()


def found(result: SearchResult) -> list[tuple[str, float]]:
    return [(match.id, match.score) for match in result.matches]


async def test_gateways_find_the_same_with_rows_in_the_database_and_in_memory(
    open_on_store: Open, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Order, scores, confidence and next steps, within half precision. Two that start at once
    embed each text once; one that starts later embeds and reads no vector at all.
    """
    counts = [CountingEmbedder(SIZE) for _ in range(3)]
    shared = [open_on_store(embedder) for embedder in counts[:2]]
    memory = open_on_store(HashingEmbedder(SIZE), IN_MEMORY)
    for gateway in (*shared, memory):
        for source in synthetic.servers(250):
            gateway.add_source(source)
    reports = await asyncio.gather(*(gateway.report() for gateway in shared))
    assert [(250, ())] * 2 == [(report.vectors, report.diagnostics) for report in reports]
    texts = counts[0].documents + counts[1].documents
    with psycopg.connect(
        postgres.url, options=f'-c search_path="{tmp_path.name}"', autocommit=True
    ) as tables:
        assert (texts,) == tables.execute("SELECT count(*) FROM vectors").fetchone()
        tables.execute("TRUNCATE vectors")
    later = open_on_store(counts[2])
    for source in synthetic.servers(250):
        later.add_source(source)

    queries = synthetic.queries(12)
    for query in queries:
        expected = await memory.search(query)
        for gateway in (shared[0], later):
            result = await gateway.search(query)
            assert expected.mode == result.mode == "hybrid"
            assert np.allclose(
                [match.score for match in expected.matches],
                [match.score for match in result.matches],
                atol=20 * HALF,
            )
            theirs = {match.id: match for match in expected.matches}
            for match, other in zip(result.matches, expected.matches, strict=True):
                assert match.id == other.id or abs(match.score - other.score) < 20 * HALF
                if match.id in theirs:
                    assert abs(theirs[match.id].confidence - match.confidence) < 20 * HALF
    last = (await memory.search(queries[0])).matches[0].id
    steps = [
        [step.id for step in await gateway.next_steps([last], query=queries[0], limit=3)]
        for gateway in (memory, shared[1], later)
    ]
    assert steps[0] == steps[1] == steps[2]
    assert 0 == counts[2].documents


async def test_a_search_finds_what_changed(open_on_store: Open) -> None:
    """A tool that comes, changes or goes, with no other one embedded again."""
    embedder, source = CountingEmbedder(SIZE), ListSource("srv", NAMED_TOOLS)
    gateway = open_on_store(embedder)
    gateway.add_source(source)
    await gateway.report()
    before = embedder.documents

    source.tools[0] = tool("paint_fences", "Paint the wall in green.")
    source.tools.pop()
    source.tools.append(tool("brew_coffee", "Make a cup of coffee."))
    await gateway.refresh()

    assert before + 3 == embedder.documents
    for query, name in (("paint a green wall", "paint_fences"), ("a cup of coffee", "brew_coffee")):
        assert name == (await gateway.search(query)).matches[0].name
    assert len(source.tools) == (await gateway.report()).vectors


async def test_rows_that_are_gone_come_back(
    open_on_store: Open, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Words answer once; meanwhile a build makes the rows again, out of the texts' vectors."""
    embedder = CountingEmbedder(SIZE)
    gateway = open_on_store(embedder)
    gateway.add_source(ListSource("srv", NAMED_TOOLS))
    await gateway.report()
    before = embedder.documents
    with psycopg.connect(
        postgres.url, options=f'-c search_path="{tmp_path.name}"', autocommit=True
    ) as tables:
        tables.execute("TRUNCATE entity_rows")

    steps = await gateway.next_steps(["fold_shirts"], query="lend books")
    away = await gateway.search("lend books")

    async def is_whole() -> bool:
        return "hybrid" == (await gateway.search("lend books")).mode

    await until(is_whole)
    assert steps
    assert ("lend_books", True) == (away.matches[0].name, away.degraded) or not away.degraded
    assert before == embedder.documents


async def test_a_schema_that_was_dropped_is_not_replaced_by_another(
    make: Make, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Nothing is made where the tables do not belong."""
    rows = make()
    rows.update([], NAMED[:2])
    embed(rows)
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(tmp_path.name)))
        for _ in range(2):
            with pytest.raises(StoreError):
                nearest(rows, *NAMED[:2])
        assert (None,) == admin.execute("SELECT to_regclass('public.entity_rows')").fetchone()


NAMED_TOOLS = [each.definition for each in NAMED[::9]]


async def test_while_the_database_is_away_words_answer(
    open_on_store: Open, postgres: PostgresServer
) -> None:
    """Each result says so and is not remembered; the first search after it is back is whole. What
    is registered meanwhile has its vectors after the next build.
    """
    gateway = open_on_store(HashingEmbedder(SIZE))
    gateway.add_source(ListSource("srv", NAMED_TOOLS))
    whole = await gateway.search("mend doors")
    postgres.stop()
    try:
        away = await gateway.search("lend books")
        steps = await gateway.next_steps(["fold_shirts"], query="lend books")
    finally:
        postgres.start()
    back = await gateway.search("lend books")
    postgres.stop()
    try:
        gateway.add_source(ListSource("late", [tool("brew_coffee", "Make a cup of coffee.")]))
        new = await gateway.search("a cup of coffee")
    finally:
        postgres.start()
    report = await gateway.refresh()
    after = await gateway.search("a cup of coffee")

    assert ("hybrid", "mend_doors") == (whole.mode, whole.matches[0].name)
    assert ("graph", "lend_books", True) == (away.mode, away.matches[0].name, away.degraded)
    assert {"vectors_unavailable", "graph_fallback"} <= {*codes(away)}
    assert steps
    assert ("hybrid", "lend_books", False) == (back.mode, back.matches[0].name, back.degraded)
    assert ("brew_coffee", True) == (new.matches[0].name, new.degraded)
    assert (len(NAMED_TOOLS) + 1, ()) == (report.vectors, report.diagnostics)
    assert ("hybrid", "brew_coffee", False) == (after.mode, after.matches[0].name, after.degraded)


async def test_a_missing_extension_says_what_to_do(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """A user who may not make it, in a database without it: words answer, the report says why."""
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute("CREATE ROLE plain LOGIN PASSWORD 'sesame'")
        admin.execute("CREATE DATABASE bare OWNER plain")
    url = postgres.url.replace("postgres:sesame@/postgres", "plain:sesame@/bare")
    store = PostgresStore(url)
    async with Gateway(
        strategy="auto", embedder=HashingEmbedder(SIZE), store=store, options=IN_DATABASE
    ) as gateway:
        gateway.add_source(ListSource("srv", NAMED_TOOLS))
        result = await gateway.search("mend doors")
        report = await gateway.report()

        assert "mend_doors" == result.matches[0].name
        assert result.degraded
        (told,) = {note.detail for note in report.diagnostics if "CREATE EXTENSION" in note.detail}
        assert "needs the extension vector" in told
        assert "sesame" not in told
        with psycopg.connect(
            postgres.url.replace("/postgres?", "/bare?"), autocommit=True
        ) as tables:
            tables.execute("CREATE EXTENSION vector")

        assert len(NAMED_TOOLS) == (await gateway.refresh()).vectors
        assert "hybrid" == (await gateway.search("mend doors")).mode


def test_rows_in_the_database_need_a_store_there() -> None:
    """It is an error at the start, not at the first search."""
    with pytest.raises(ConfigError, match="needs a store in PostgreSQL"):
        Gateway(strategy="auto", embedder=HashingEmbedder(SIZE), options=IN_DATABASE)
