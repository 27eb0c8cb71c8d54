"""Searches that are remembered: only by a memory of associations, and never waited for."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.errors import StoreError
from gateway.gateway import Gateway
from gateway.options import Options, UsageOptions
from gateway.storage.call_log import SqliteCallLog
from gateway.testing import HashingEmbedder, ManualClock
from tests.conftest import OpenGateway
from tests.fakes import names

CONTENT = "Zwetschgenknödel"


class Counted(SqliteCallLog):
    """Counts its transactions of exposure; waits with each for the word."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.writes: list[int] = []
        self.go = threading.Event()
        self.broken = False

    def show(self, *lists: Sequence[str]) -> None:
        """Note them, when somebody lets it."""
        self.go.wait(60)
        self.writes.append(len(lists))
        if self.broken:
            raise StoreError("full")
        super().show(*lists)


def letters(open_gateway: OpenGateway, folder: Path, **more: object) -> Gateway:
    """Three letters that differ in their names' last letters alone."""
    usage = UsageOptions(**{"record": True, "rerank": "compat"} | more)  # type: ignore[arg-type]
    gateway = open_gateway(
        options=Options(catalog_store_path=folder / "catalog.sqlite3", usage=usage),
        strategy="auto",
        embedder=HashingEmbedder(),
        clock=ManualClock(),
    )

    def letter_x(to: str) -> str:
        """Send a letter to somebody."""
        return to

    def letter_y(to: str) -> str:
        """Send a letter to somebody."""
        return to

    def parcel(to: str) -> str:
        """Send a parcel, not a letter, to somebody."""
        return to

    for function in (letter_x, letter_y, parcel):
        gateway.add_tool(function)
    return gateway


async def test_a_search_does_not_wait_for_the_ledger(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Thirty answers are out before one is noted; then all are, in few transactions."""
    gateway = letters(open_gateway, tmp_path)
    ledger = gateway.usage.call_log = Counted(tmp_path / "usage.sqlite3")

    found = [names(await gateway.search("a letter", limit=2)) for _ in range(30)]
    before = list(ledger.writes)
    ledger.go.set()
    await gateway.usage.finish()

    assert [] == before
    assert 30 == sum(ledger.writes)
    assert len(ledger.writes) < 5
    assert [found[0]] * 30 == found
    assert [30, 30] == [seen.count for seen in ledger.shown().values()]
    assert [30] == [seen.count for seen in ledger.pairs().values()]


async def test_what_is_not_written_is_lost_and_nothing_else(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Best effort; a search that found nothing showed nothing."""
    gateway = letters(open_gateway, tmp_path)
    ledger = gateway.usage.call_log = Counted(tmp_path / "usage.sqlite3")
    ledger.broken = True
    ledger.go.set()

    assert (await gateway.search("a letter", limit=1)).matches
    assert not (await gateway.search("qqq zzz", ranking="lexical")).matches
    await gateway.usage.finish()

    assert [1] == ledger.writes
    assert {} == ledger.shown()


@pytest.mark.parametrize("rerank", ["off", "bounded", "auto"])
async def test_exposure_counts_for_nobody_else(
    open_gateway: OpenGateway, tmp_path: Path, rerank: str
) -> None:
    """Thirty equal searches write nothing, and change nothing."""
    gateway = letters(open_gateway, tmp_path, rerank=rerank, refresh_s=0.0)
    ledger = gateway.usage.call_log = Counted(tmp_path / "usage.sqlite3")
    ledger.go.set()

    found = [
        [(match.id, match.score) for match in (await gateway.search("a letter")).matches]
        for _ in range(30)
    ]
    await gateway.usage.finish()

    assert [found[0]] * 30 == found
    assert [] == ledger.writes
    assert ({}, {}) == (ledger.shown(), ledger.pairs())


async def test_who_was_shown_is_shown_again(open_gateway: OpenGateway, tmp_path: Path) -> None:
    """As the formula says: base 1 - distance, salience 1.5 and more; a name still goes first."""
    gateway = letters(open_gateway, tmp_path, refresh_s=0.0)
    before = await gateway.search("send a letter", ranking="hybrid")
    for _ in range(3):
        gateway.usage.call_log.show(["local/letter_y", "local/parcel"])

    after = await gateway.search("send a letter", ranking="hybrid")
    lexical = await gateway.search("send a letter", ranking="lexical")
    named = await gateway.search("letter_x")

    assert ["letter_x", "letter_y"] == names(before)[:2]
    assert "letter_y" == names(after)[0]
    assert "letter_y" == names(lexical)[0]
    assert "letter_x" == names(named)[0]


def written(folder: Path) -> bytes:
    """All that lies in the ledger's files."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("usage.sqlite3*")))


async def test_no_value_and_no_query_reaches_the_file(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Neither arguments, answers, queries, tasks nor tenants, in any file of the ledger."""
    gateway = letters(open_gateway, tmp_path, learn="on", refresh_s=0.0)

    await gateway.invoke("letter_x", {"to": CONTENT}, task=f"task {CONTENT}", tenant=CONTENT)
    await gateway.search(f"a letter to {CONTENT}", tenant=CONTENT)
    await gateway.next_steps(["letter_x"], query=f"then {CONTENT}", tenant=CONTENT)
    await gateway.usage.finish()
    gateway.usage.call_log.close()

    held = written(tmp_path)
    assert b"local/letter_x" in held
    assert CONTENT.encode() not in held
    assert b"Zwetschgen" not in held
    assert b"a letter to" not in held


async def test_a_gateway_that_closes_notes_what_it_showed(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Before its loop ends."""
    gateway = letters(open_gateway, tmp_path)
    await gateway.search("a letter", limit=1)
    await gateway.aclose()

    ledger = SqliteCallLog(tmp_path / "usage.sqlite3")
    assert [1] == [seen.count for seen in ledger.shown().values()]
    ledger.close()
