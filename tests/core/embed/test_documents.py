"""Vectors of documents, each embedded once."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gateway.embed.cache import MemoryVectorStore, text_key
from gateway.embed.documents import DocumentVectors, embed_documents
from gateway.embed.protocol import Embedded, Role
from gateway.plugins.postgres.database import PostgresDatabase
from gateway.plugins.postgres.store import TABLES, PostgresVectorStore
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import VectorStore
from gateway.testing import HashingEmbedder
from tests.fakes import BrokenStore, Narrow
from tests.postgres_server import PostgresServer

TELEMETRY = Telemetry()
WAIT_S = 60


class Nameless(HashingEmbedder):
    """Does not say how long its vectors are."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self.info = replace(self.info, dimensions=None, model_id="nameless")


async def documents(
    texts: list[str],
    embedder: HashingEmbedder,
    *,
    store: VectorStore | None = None,
    dimensions: int | None = None,
) -> DocumentVectors:
    return await embed_documents(
        texts,
        embedder=embedder,
        store=MemoryVectorStore() if store is None else store,
        telemetry=TELEMETRY,
        dimensions=dimensions,
    )


async def test_equal_texts_are_embedded_once() -> None:
    """Two servers often offer the same tool."""
    embedder = HashingEmbedder(64)

    found = await documents(["a", "b", "a"], embedder)

    assert (2, 2, 2) == (embedder.texts, found.embedded, len(found.rows))
    assert 2 == found.tokens


async def test_stored_texts_are_not_embedded_again() -> None:
    """The cost of a build is the cost of what is new; vectors of another model are not used."""
    embedder, store = HashingEmbedder(64), MemoryVectorStore()
    await documents(["a", "b"], embedder, store=store)
    again = await documents(["a", "b", "c"], embedder, store=store)
    other = await documents(["a"], HashingEmbedder(64, model_id="other"), store=store)

    assert [("a", "b"), ("c",)] == embedder.batches
    assert (1, 1) == (again.embedded, other.embedded)


@pytest.mark.parametrize(
    "row", [np.full(64, np.nan), np.zeros(64), np.ones(63)], ids=["nan", "zeros", "other length"]
)
async def test_a_damaged_stored_row_is_embedded_again(row: np.ndarray) -> None:
    """One NaN in the matrix would spoil every search."""
    store = MemoryVectorStore()
    store.put("hashing-64", {text_key("a"): row.astype(np.float32)})

    found = await documents(["a"], HashingEmbedder(64), store=store)

    assert 1 == found.embedded
    assert np.isfinite(found.rows[text_key("a")]).all()


async def test_a_model_that_changed_under_its_name_keeps_one_length() -> None:
    """Rows of two lengths make no matrix: the commonest length stays, the others are redone."""
    store = MemoryVectorStore()
    for text, length in (("a", 64), ("b", 64), ("c", 63)):
        store.put("nameless", {text_key(text): np.ones(length, np.float32)})

    found = await documents(["a", "b", "c"], Nameless(64), store=store)

    assert 1 == found.embedded
    assert {64} == {row.shape[0] for row in found.rows.values()}


async def test_a_failing_embedder_leaves_what_there_is_with_a_diagnostic() -> None:
    """Rule 5: an index without all its vectors still serves."""
    store, embedder = MemoryVectorStore(), Narrow(64)
    await documents(["a"], embedder, store=store)
    embedder.fail_with = RuntimeError("secret")

    found = await documents(["a", "b", "c", "d"], embedder, store=store)

    assert [text_key("a")] == list(found.rows)
    assert 2 == embedder.calls
    assert [("embedding_failed", "RuntimeError")] == [
        (note.code, note.detail) for note in found.diagnostics
    ]


async def test_a_broken_store_costs_the_persistence_alone() -> None:
    """Vectors can be made again."""
    found = await documents(["a"], HashingEmbedder(64), store=BrokenStore())

    assert 1 == len(found.rows)
    assert ["store_unavailable", "store_unavailable"] == [n.code for n in found.diagnostics]
    assert ["the disk is gone", "the disk is full"] == [n.detail for n in found.diagnostics]


class Endless(HashingEmbedder):
    """Takes the first request and never answers."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self.began = asyncio.Event()

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        self.began.set()
        await asyncio.Event().wait()
        raise AssertionError(texts, role)


async def test_a_request_for_documents_that_hangs_has_failed() -> None:
    """Else everybody after it would wait for it too."""
    found = await embed_documents(
        ["a"], embedder=Endless(64), store=MemoryVectorStore(), telemetry=TELEMETRY, timeout_s=0.001
    )

    assert found.failed
    assert ["a request for documents took longer than 0.001 s"] == [
        note.detail for note in found.diagnostics
    ]


async def test_progress_is_reported_before_the_first_request_and_after_each() -> None:
    """A first index of thousands takes a while."""
    seen: list[tuple[int, int]] = []

    await embed_documents(
        ["a", "b", "c"],
        embedder=Narrow(64),
        store=MemoryVectorStore(),
        telemetry=TELEMETRY,
        progress=lambda done, total: seen.append((done, total)),
    )

    assert [(0, 3), (2, 3), (3, 3)] == seen


# -- several processes over one store -----------------------------------------------------------

TEXTS = [f"Text number {number}." for number in range(600)]
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


async def test_a_text_is_embedded_once_among_processes_also_if_one_is_killed(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """Two embed all but the texts of the first, and those too as soon as it is gone."""
    keys = sorted(text_key(text) for text in TEXTS)
    begun = {key[:2] for key in keys[:64]}
    others = len([key for key in keys if key[:2] not in begun])

    async def start(kind: str) -> asyncio.subprocess.Process:
        command = [sys.executable, "-c", _REPLICA, postgres.url, tmp_path.name, kind]
        return await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)

    async def line(process: asyncio.subprocess.Process, wanted: str) -> str:
        assert process.stdout is not None
        async for raw in process.stdout:
            if raw.decode().startswith(f"{wanted} "):
                return raw.decode().strip()
        raise AssertionError(wanted)

    async with asyncio.timeout(WAIT_S):
        first = await start("hangs")
        await line(first, "began")
        rest = [await start("works"), await start("works")]
        for process in rest:
            await line(process, f"done {others}")
        first.kill()
        ends = [(await line(process, "embedded")).split() for process in rest]
        await asyncio.gather(*(process.wait() for process in (first, *rest)))

    assert 0 < others < len(TEXTS)
    assert len(TEXTS) == sum(int(embedded) for _, embedded, _, _ in ends)
    assert [(str(len(TEXTS)), "0")] * 2 == [(rows, notes) for _, _, rows, notes in ends]


@pytest.fixture
def shared(postgres: PostgresServer, tmp_path: Path) -> Iterator[Callable[[], PostgresVectorStore]]:
    """Open one store, as several processes do."""
    made: list[PostgresVectorStore] = []

    def opened() -> PostgresVectorStore:
        made.append(PostgresVectorStore(PostgresDatabase(postgres.url, tmp_path.name, TABLES)))
        return made[-1]

    yield opened
    for store in made:
        store.close()


async def test_texts_of_a_process_that_hangs_are_embedded_in_the_end(
    shared: Callable[[], PostgresVectorStore],
) -> None:
    """It is waited for as long as for the embedder itself."""
    embedder = HashingEmbedder(8)
    claim = shared().claim(embedder.info.model_id, [text_key("a")])
    taken = [*claim.take()]

    found = await embed_documents(
        ["a"], embedder=embedder, store=shared(), telemetry=TELEMETRY, timeout_s=0.1
    )
    claim.release()

    assert ([text_key("a")], 1, ()) == (taken, found.embedded, found.diagnostics)
    assert not [*claim.take()]


async def test_a_build_that_is_cancelled_lets_others_embed_at_once(
    shared: Callable[[], PostgresVectorStore],
) -> None:
    embedder, store = Endless(8), shared()
    work = asyncio.create_task(documents(["a"], embedder, store=store))
    await embedder.began.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work

    claim = shared().claim(embedder.info.model_id, [text_key("a")])
    assert [text_key("a")] == [*claim.take()]
    claim.release()


async def test_a_store_that_goes_down_in_the_middle_costs_the_persistence_alone(
    shared: Callable[[], PostgresVectorStore], postgres: PostgresServer
) -> None:
    """What is claimed then is nobody's; all texts are embedded."""

    class Ending(Narrow):
        async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
            if not self.calls:
                postgres.stop()
            return await super().embed(texts, role=role)

    try:
        found = await documents(["a", "b", "c", "d", "e"], Ending(64), store=shared())
    finally:
        postgres.start()

    assert (5, 5, False) == (len(found.rows), found.embedded, found.failed)
    assert {"store_unavailable"} == {*found.store_faults}
