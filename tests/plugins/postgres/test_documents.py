"""Embedding of the same texts by several processes with one store."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from gateway.embed import Embedded, Role, embed_documents, text_key
from gateway.plugins.postgres import TABLES, PostgresDatabase, PostgresVectorStore
from gateway.testing import HashingEmbedder
from tests.core.embed.test_documents import TELEMETRY, TEXTS, WAIT_S, Endless, documents
from tests.fakes import Narrow
from tests.postgres_server import PostgresServer

_REPLICA = """
import asyncio, sys
from dataclasses import replace
from gateway.embed.documents import embed_documents
from gateway.embed.protocol import EmbeddingLimits
from gateway.runtime.telemetry import Telemetry
from gateway.plugins.postgres.store import PostgresStore
from gateway.testing import HashingEmbedder

class Reporting(HashingEmbedder):
    def __init__(self):
        super().__init__(8)
        self.info = replace(self.info, limits=EmbeddingLimits(max_texts=64))

    async def embed(self, texts, *, role):
        if sys.argv[3] == "hangs":
            print("began ", flush=True)
            await asyncio.Event().wait()
        return await super().embed(texts, role=role)

def progress(done, total):
    print(f"done {done} ", flush=True)

async def main():
    store, embedder = PostgresStore(sys.argv[1], schema=sys.argv[2]), Reporting()
    texts = [f"Text number {number}." for number in range(600)]
    found = await embed_documents(
        texts, embedder=embedder, store=store.vectors, telemetry=Telemetry(), progress=progress)
    print("embedded", embedder.texts, len(found.rows), len(found.diagnostics), flush=True)
    store.close()

asyncio.run(main())
"""


async def test_text_is_embedded_once_among_processes_even_if_one_is_killed(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """Two processes share a store with the killed process. They embed all texts that it has not
    claimed, and the claimed ones after it is killed.
    """
    keys = sorted(text_key(text) for text in TEXTS)
    begun = {key[:2] for key in keys[:64]}
    others = len([key for key in keys if key[:2] not in begun])

    async def start(kind: str) -> asyncio.subprocess.Process:
        command = [sys.executable, "-c", _REPLICA, postgres.url, tmp_path.name, kind]
        return await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)

    async def line(process: asyncio.subprocess.Process, prefix: str) -> str:
        assert process.stdout is not None
        async for raw in process.stdout:
            if raw.decode().startswith(f"{prefix} "):
                return raw.decode().strip()
        raise AssertionError(prefix)

    async with asyncio.timeout(WAIT_S):
        first = await start("hangs")
        await line(first, "began")
        others_running = [await start("works"), await start("works")]
        for process in others_running:
            await line(process, f"done {others}")
        first.kill()
        ends = [(await line(process, "embedded")).split() for process in others_running]
        await asyncio.gather(*(process.wait() for process in (first, *others_running)))

    assert 0 < others < len(TEXTS)
    assert len(TEXTS) == sum(int(embedded) for _, embedded, _, _ in ends)
    assert [(str(len(TEXTS)), "0")] * 2 == [(rows, notes) for _, _, rows, notes in ends]


@pytest.fixture
def open_shared_store(
    postgres: PostgresServer, tmp_path: Path
) -> Iterator[Callable[[], PostgresVectorStore]]:
    """Open the same store, as several processes do."""
    stores: list[PostgresVectorStore] = []

    def opened() -> PostgresVectorStore:
        stores.append(PostgresVectorStore(PostgresDatabase(postgres.url, tmp_path.name, TABLES)))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


async def test_texts_claimed_by_a_hanging_process_are_embedded_after_the_timeout(
    open_shared_store: Callable[[], PostgresVectorStore],
) -> None:
    """The timeout is the embedder's."""
    embedder = HashingEmbedder(8)
    claim = open_shared_store().claim(embedder.info.model_id, [text_key("a")])
    taken = [*claim.take()]

    embedded = await embed_documents(
        ["a"], embedder=embedder, store=open_shared_store(), telemetry=TELEMETRY, timeout_s=0.1
    )
    claim.release()

    assert ([text_key("a")], 1, ()) == (taken, embedded.embedded, embedded.diagnostics)
    assert not [*claim.take()]


async def test_cancelled_index_build_releases_its_claimed_texts(
    open_shared_store: Callable[[], PostgresVectorStore],
) -> None:
    embedder, store = Endless(8), open_shared_store()
    work = asyncio.create_task(documents(["a"], embedder, store=store))
    await embedder.began.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work

    claim = open_shared_store().claim(embedder.info.model_id, [text_key("a")])
    assert [text_key("a")] == [*claim.take()]
    claim.release()


async def test_index_build_embeds_all_texts_even_if_the_store_fails(
    open_shared_store: Callable[[], PostgresVectorStore], postgres: PostgresServer
) -> None:
    """Only storing the vectors fails."""

    class Ending(Narrow):
        async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
            if not self.calls:
                postgres.stop()
            return await super().embed(texts, role=role)

    try:
        embedded = await documents(["a", "b", "c", "d", "e"], Ending(64), store=open_shared_store())
    finally:
        postgres.start()

    assert (5, 5, False) == (len(embedded.rows), embedded.embedded, embedded.failed)
    assert {"store_unavailable"} == {*embedded.store_faults}
