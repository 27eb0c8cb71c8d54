"""Vector search in PostgreSQL with pgvector, and sharing of rows among processes."""

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
from gateway.index import Eligibility, EngineRows, VectorQuery, traits_of
from gateway.options import IndexOptions, Options, SearchOptions
from gateway.plugins.postgres import (
    PgvectorEngine,
    PostgresDatabase,
    PostgresStore,
    PostgresVectorStore,
)
from gateway.testing import HashingEmbedder
from gateway.types import Entity, ToolDefinition
from tests.fakes import ListSource, codes, entity, tool, until
from tests.postgres_server import PostgresServer

SIZE = 32
HALF = 1e-3
"""Maximum change of a cosine because vectors are stored in half precision."""
INFO = EmbedderInfo(model_id="test", provider="none", dimensions=SIZE)
IN_DATABASE = Options(
    index=IndexOptions(rows="pgvector"), search=SearchOptions(query_timeout_s=120)
)
IN_MEMORY = Options(search=SearchOptions(query_timeout_s=120))


def vector_query(row: np.ndarray) -> VectorQuery:
    return VectorQuery(texts=row[None], clauses=np.zeros((0, SIZE), np.float32))


EMBEDDER = HashingEmbedder(SIZE)
NAMED = [
    entity(ToolDefinition(name=f"{verb}_{noun}", description=f"It can {verb} {noun} quickly."))
    for verb in ("paint", "carry", "count", "clean", "mend", "draw", "lend", "fold")
    for noun in ("fences", "boats", "lamps", "chairs", "doors", "pens", "books", "shirts")
]
Make = Callable[[], EngineRows]


@pytest.fixture
def make_rows(postgres: PostgresServer, tmp_path: Path) -> Iterator[Make]:
    """Return a factory of engine rows that share one schema."""
    with ExitStack() as opened:

        def another() -> EngineRows:
            database = PostgresDatabase(postgres.url, tmp_path.name)
            opened.callback(database.close)
            store = PostgresVectorStore(database)
            return EngineRows(store, INFO, timeout_s=60, few_rows=50)

        yield another


def embed(rows: EngineRows) -> int:
    """Embed the missing texts and return their number."""
    rows.load()
    texts = rows.missing_texts
    rows.add({text_key(text): EMBEDDER.vectors([text])[0] for text in texts})
    return len(texts)


def eligibility_of(*entities: Entity) -> Eligibility:
    return Eligibility.of(
        [item.id for item in entities], [traits_of(entity_item) for entity_item in entities]
    )


def nearest(rows: EngineRows, *entities: Entity) -> list[str]:
    """Return the id of the entity nearest to the whole text of each of *entities*."""
    index = rows.index(eligibility_of(*entities))
    assert index is not None
    everything = np.ones(len(entities), np.bool_)
    texts = [f"{item.definition.name} {item.definition.description}" for item in entities]
    positions = [
        index.search(vector_query(row), mask=everything, count=1).pool[0]
        for row in EMBEDDER.vectors(texts)
    ]
    return [entities[position].id for position in positions]


def test_vector_row_is_embedded_once_for_all_processes(
    make_rows: Make, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Equal tools share a row, and a changed tool gets a new one."""
    first, second = make_rows(), make_rows()
    twin = replace(NAMED[0], id="srv/twin", exposed_name="twin")
    first.update([], [*NAMED[:5], twin])
    assert 10 == embed(first)
    assert 0 == first.missing

    second.update([], NAMED[:6])
    assert 2 == embed(second)

    ids = [item.id for item in NAMED[:6]]
    assert ids == nearest(second, *NAMED[:6])
    assert ids[:5] == nearest(first, *NAMED[:5], twin)[:5]
    # Vectors that arrive while an index is compiled are added to the previous catalog.
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


def test_entity_gets_a_row_only_after_all_its_texts_have_a_vector(make_rows: Make) -> None:
    """The texts include its examples, which are part of the key of the row."""
    rows = make_rows()
    served = NAMED[0].with_hints(examples=("please do it",))
    rows.update([], [served])
    rows.load()

    for text in rows.missing_texts:
        assert rows.index(eligibility_of(served)) is None
        rows.add({text_key(text): EMBEDDER.vectors([text])[0]})

    index, again = rows.index(eligibility_of(served)), make_rows()
    again.update([], [NAMED[0]])
    assert 1 == (index.count if index else 0)
    assert 2 == embed(again)


async def test_vector_rows_unused_for_a_week_are_deleted(
    make_rows: Make, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Rows count as used if an index uses them or a build finds them."""
    rows, other = make_rows(), make_rows()
    rows.update([], NAMED[:4])
    embed(rows)
    rows.index(eligibility_of(*NAMED[:2]))
    with psycopg.connect(
        postgres.url, options=f'-c search_path="{tmp_path.name}"', autocommit=True
    ) as tables:
        tables.execute("UPDATE entity_keys SET used = CURRENT_DATE - 8")
        other.update([], [NAMED[2]])
        assert 0 == embed(other)
        rows.update(NAMED[2:4], [])

        rows.maintain()

        async def is_clean() -> bool:
            rows_used_today = tables.execute(
                "SELECT used = CURRENT_DATE FROM entity_keys JOIN entity_rows USING (id)"
            )
            return [(True,)] * 3 == rows_used_today.fetchall()

        await until(is_clean)


@pytest.mark.parametrize("table", ["entity_keys", "entity_rows"])
def test_vector_rows_deleted_by_hand_are_created_again(
    make_rows: Make, postgres: PostgresServer, tmp_path: Path, table: str
) -> None:
    """Another process must also detect missing vectors if ``entity_keys`` still has their keys."""
    rows, entities = make_rows(), NAMED[:3]
    rows.update([], entities)
    embed(rows)
    index = rows.index(eligibility_of(*entities))
    assert index is not None
    query, everything = vector_query(EMBEDDER.vectors(["paint"])[0]), np.ones(3, np.bool_)
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
                with pytest.raises(StoreError, match="vectors of entities are missing"):
                    read()
            assert rows.has_gaps

    later = make_rows()
    later.update([], entities)
    assert 6 == embed(later)
    assert [item.id for item in entities] == nearest(later, *entities)


async def test_hnsw_index_is_created_in_the_background_for_many_rows(
    make_rows: Make, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Searches do not wait for the index, and only one process creates it."""
    rows = make_rows()
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
    """Embedder that counts the documents that it embeds."""

    documents = 0

    async def embed(self, texts: Sequence[str], *, role: str) -> object:  # type: ignore[override]
        if role == "document":
            self.documents += len(texts)
        return await super().embed(texts, role=role)  # type: ignore[arg-type]


Open = Callable[..., Gateway]


@pytest.fixture
async def open_gateway_on_store(postgres: PostgresServer, tmp_path: Path) -> AsyncIterator[Open]:
    """Open gateways on one store, or in memory."""
    gateways: list[Gateway] = []

    def another(embedder: HashingEmbedder, options: Options = IN_DATABASE) -> Gateway:
        store = PostgresStore(postgres.url, schema=tmp_path.name)
        gateways.append(Gateway(strategy="auto", embedder=embedder, store=store, options=options))
        return gateways[-1]

    yield another
    for gateway in gateways:
        await gateway.aclose()


async def test_search_results_are_equal_with_vectors_in_the_database_and_in_memory(
    open_gateway_on_store: Open, postgres: PostgresServer, tmp_path: Path
) -> None:
    """They agree within half precision. Two gateways that start at the same time embed each text
    once. A later gateway embeds none and reads no vectors.
    """
    counts = [CountingEmbedder(SIZE) for _ in range(3)]
    shared = [open_gateway_on_store(embedder) for embedder in counts[:2]]
    memory = open_gateway_on_store(HashingEmbedder(SIZE), IN_MEMORY)
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
    later = open_gateway_on_store(counts[2])
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


async def test_search_finds_added_and_changed_tools(open_gateway_on_store: Open) -> None:
    """The other tools are not embedded again."""
    embedder, source = CountingEmbedder(SIZE), ListSource("srv", NAMED_TOOLS)
    gateway = open_gateway_on_store(embedder)
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


async def test_deleted_vector_rows_are_restored_from_stored_vectors(
    open_gateway_on_store: Open, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Searches use words in the meantime."""
    embedder = CountingEmbedder(SIZE)
    gateway = open_gateway_on_store(embedder)
    gateway.add_source(ListSource("srv", NAMED_TOOLS))
    await gateway.report()
    before = embedder.documents
    with psycopg.connect(
        postgres.url, options=f'-c search_path="{tmp_path.name}"', autocommit=True
    ) as tables:
        tables.execute("TRUNCATE entity_rows")

    steps = await gateway.next_steps(["fold_shirts"], query="lend books")
    degraded_result = await gateway.search("lend books")

    async def is_whole() -> bool:
        return "hybrid" == (await gateway.search("lend books")).mode

    await until(is_whole)
    assert steps
    assert ("lend_books", True) == (
        degraded_result.matches[0].name,
        degraded_result.degraded,
    ) or not degraded_result.degraded
    assert before == embedder.documents


async def test_vector_tables_are_not_created_elsewhere_if_the_schema_was_dropped(
    make_rows: Make, postgres: PostgresServer, tmp_path: Path
) -> None:
    rows = make_rows()
    rows.update([], NAMED[:2])
    embed(rows)
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(tmp_path.name)))
        for _ in range(2):
            with pytest.raises(StoreError):
                nearest(rows, *NAMED[:2])
        assert (None,) == admin.execute("SELECT to_regclass('public.entity_rows')").fetchone()


NAMED_TOOLS = [item.definition for item in NAMED[::9]]


def backends(url: str) -> list[int]:
    """Return the process ids of the server's connections to gateways."""
    with psycopg.connect(url, autocommit=True) as admin:
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'tool-gateway'"
        return [pid for (pid,) in admin.execute(query)]


@contextmanager
def hung(server: PostgresServer) -> Iterator[None]:
    """Stop the server's connections while the block runs."""
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
        pytest.param(
            partial(down, mode="fast"),
            "check the address and that the server is running",
            id="stopped",
        ),
        pytest.param(
            partial(down, mode="immediate"),
            "check the address and that the server is running",
            id="killed",
        ),
        pytest.param(hung, "SearchOptions.query_timeout_s", id="hung"),
    ],
)
async def test_search_uses_words_while_the_database_server_fails(
    open_gateway_on_store: Open,
    postgres: PostgresServer,
    fail: Callable[[PostgresServer], AbstractContextManager[None]],
    cause: str,
) -> None:
    """A diagnostic has the cause, and searches after the failure use vectors again."""
    gateway = open_gateway_on_store(
        HashingEmbedder(SIZE),
        Options(index=IndexOptions(rows="pgvector"), search=SearchOptions(query_timeout_s=2)),
    )
    gateway.add_source(ListSource("srv", NAMED_TOOLS))
    await gateway.report()

    with fail(postgres):
        degraded_result = await gateway.search("lend books")

    async def is_back() -> bool:
        return "hybrid" == (await gateway.search("lend books")).mode

    await until(is_back)
    assert ("graph", "lend_books", True) == (
        degraded_result.mode,
        degraded_result.matches[0].name,
        degraded_result.degraded,
    )
    details = [
        note.detail for note in degraded_result.diagnostics if note.code == "vectors_unavailable"
    ]
    assert any(cause in detail for detail in details)


def test_only_one_search_waits_for_a_hanging_server(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """Other searches fail immediately, because waiting searches would block all worker threads."""
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


async def test_search_uses_words_while_the_database_is_down(
    open_gateway_on_store: Open, postgres: PostgresServer
) -> None:
    """Results without vectors are not cached. Tools added in the meantime get vectors in the next
    build.
    """
    gateway = open_gateway_on_store(HashingEmbedder(SIZE))
    gateway.add_source(ListSource("srv", NAMED_TOOLS))
    whole = await gateway.search("mend doors")
    postgres.stop()
    try:
        degraded_result = await gateway.search("lend books")
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
    assert ("graph", "lend_books", True) == (
        degraded_result.mode,
        degraded_result.matches[0].name,
        degraded_result.degraded,
    )
    assert {"vectors_unavailable", "graph_fallback"} <= {*codes(degraded_result)}
    assert steps
    assert ("hybrid", "lend_books", False) == (back.mode, back.matches[0].name, back.degraded)
    assert ("brew_coffee", True) == (new.matches[0].name, new.degraded)
    assert (len(NAMED_TOOLS) + 1, ()) == (report.vectors, report.diagnostics)
    assert ("hybrid", "brew_coffee", False) == (after.mode, after.matches[0].name, after.degraded)


async def test_missing_pgvector_extension_is_reported_with_the_remedy(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """The database lacks the extension, and the user may not create it."""
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


def test_option_for_rows_in_the_database_requires_a_postgres_store() -> None:
    with pytest.raises(ConfigError, match="needs a store in PostgreSQL"):
        Gateway(strategy="auto", embedder=HashingEmbedder(SIZE), options=IN_DATABASE)
