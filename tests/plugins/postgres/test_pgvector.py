"""Vectors in PostgreSQL with pgvector: what a search finds there, and who makes its rows."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread

import numpy as np
import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from benchmarks import synthetic
from gateway.embed import EmbedderInfo, text_key
from gateway.errors import ConfigError, StoreError
from gateway.gateway import Gateway
from gateway.index import Eligibility, VectorQuery, traits_of
from gateway.index.entity_rows import EngineRows
from gateway.options import IndexOptions, Options, SearchOptions
from gateway.plugins.postgres import (
    PgvectorEngine,
    PostgresDatabase,
    PostgresStore,
    PostgresVectorStore,
)
from gateway.testing import HashingEmbedder
from gateway.types import Entity, SearchResult, ToolDefinition
from tests.fakes import ListSource, codes, entity, tool, until
from tests.postgres_server import PostgresServer

SIZE = 32
HALF = 1e-3
"""What half precision may move a cosine by, of rows of this size."""
INFO = EmbedderInfo(model_id="test", provider="none", dimensions=SIZE)
IN_DATABASE = Options(
    index=IndexOptions(rows="pgvector"), search=SearchOptions(query_timeout_s=120)
)
IN_MEMORY = Options(search=SearchOptions(query_timeout_s=120))


def asked(row: np.ndarray) -> VectorQuery:
    return VectorQuery(texts=row[None], clauses=np.zeros((0, SIZE), np.float32))


EMBEDDER = HashingEmbedder(SIZE)
NAMED = [
    entity(ToolDefinition(name=f"{verb}_{noun}", description=f"It can {verb} {noun} quickly."))
    for verb in ("paint", "carry", "count", "clean", "mend", "draw", "lend", "fold")
    for noun in ("fences", "boats", "lamps", "chairs", "doors", "pens", "books", "shirts")
]
Make = Callable[[], EngineRows]


@pytest.fixture
def make(postgres: PostgresServer, tmp_path: Path) -> Iterator[Make]:
    """Make what keeps rows, all in one schema."""
    with ExitStack() as opened:

        def another() -> EngineRows:
            database = PostgresDatabase(postgres.url, tmp_path.name)
            opened.callback(database.close)
            store = PostgresVectorStore(database)
            return EngineRows(store, INFO, timeout_s=60, few_rows=50)

        yield another


def embed(rows: EngineRows) -> int:
    """Embed what is missing; return how many texts that were."""
    rows.load()
    texts = rows.missing_texts
    rows.add({text_key(text): EMBEDDER.vectors([text])[0] for text in texts})
    return len(texts)


def of(*entities: Entity) -> Eligibility:
    return Eligibility.of([each.id for each in entities], [traits_of(each) for each in entities])


def nearest(rows: EngineRows, *entities: Entity) -> list[str]:
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


async def test_rows_of_no_use_for_a_week_are_deleted(
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
        rows.update(NAMED[2:4], [])

        rows.maintain()

        async def is_clean() -> bool:
            kept = tables.execute(
                "SELECT used = CURRENT_DATE FROM entity_keys JOIN entity_rows USING (id)"
            )
            return [(True,)] * 3 == kept.fetchall()

        await until(is_clean)


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
    query, everything = asked(EMBEDDER.vectors(["paint"])[0]), np.ones(3, np.bool_)
    index.search(query, mask=everything, count=1)
    with psycopg.connect(
        postgres.url, options=f'-c search_path="{tmp_path.name}"', autocommit=True
    ) as tables:
        tables.execute(SQL("TRUNCATE {}").format(Identifier(table)))
        if table == "entity_rows":
            for read in (
                lambda: index.search(query, mask=everything, count=1),
                lambda: index.rows(np.array([0])),
                lambda: index.mean,
            ):
                with pytest.raises(StoreError, match="rows of entities are gone"):
                    read()
            assert rows.has_gaps

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


def backends(url: str) -> list[int]:
    """Return the process ids of the server's connections to gateways."""
    with psycopg.connect(url, autocommit=True) as admin:
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'tool-gateway'"
        return [pid for (pid,) in admin.execute(query)]


@contextmanager
def hung(server: PostgresServer) -> Iterator[None]:
    """Let the server's connections hang while the block runs."""
    pids = backends(server.url)
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def down(server: PostgresServer, mode: str) -> Iterator[None]:
    server.stop(mode=mode)
    try:
        yield
    finally:
        server.start()


@pytest.mark.parametrize(
    ("fail", "cause"),
    [
        pytest.param(partial(down, mode="fast"), "check that the server runs", id="stopped"),
        pytest.param(partial(down, mode="immediate"), "check that the server runs", id="killed"),
        pytest.param(hung, "SearchOptions.query_timeout_s", id="hung"),
    ],
)
async def test_words_answer_while_the_server_fails(
    open_on_store: Open,
    postgres: PostgresServer,
    fail: Callable[[PostgresServer], AbstractContextManager[None]],
    cause: str,
) -> None:
    """The result says why, and a later search uses the vectors again."""
    gateway = open_on_store(
        HashingEmbedder(SIZE),
        Options(index=IndexOptions(rows="pgvector"), search=SearchOptions(query_timeout_s=2)),
    )
    gateway.add_source(ListSource("srv", NAMED_TOOLS))
    await gateway.report()

    with fail(postgres):
        away = await gateway.search("lend books")

    async def is_back() -> bool:
        return "hybrid" == (await gateway.search("lend books")).mode

    await until(is_back)
    assert ("graph", "lend_books", True) == (away.mode, away.matches[0].name, away.degraded)
    details = [note.detail for note in away.diagnostics if note.code == "vectors_unavailable"]
    assert any(cause in detail for detail in details)


def test_one_search_waits_for_a_server_that_hangs(postgres: PostgresServer, tmp_path: Path) -> None:
    """Later searches fail at once until it answers: it would occupy all worker threads."""
    database = PostgresDatabase(postgres.url, tmp_path.name)
    engine = PgvectorEngine(database, "ab12", 0.2)
    ids = np.array([*engine.put({b"a": np.ones(SIZE, np.float32)}).values()])
    errors: list[str] = []

    def read() -> None:
        try:
            engine.rows(ids)
        except StoreError as error:
            errors.append(str(error))

    threads: list[Thread] = []
    with hung(postgres):
        while not errors:
            threads.append(Thread(target=read, daemon=True))
            threads[-1].start()
            threads[-1].join(0.05)
        is_waiting = threads[0].is_alive()
    for thread in threads:
        thread.join()
    assert is_waiting
    assert "does not answer" in errors[0]
    assert (1, SIZE) == engine.rows(ids).shape
    database.close()


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
