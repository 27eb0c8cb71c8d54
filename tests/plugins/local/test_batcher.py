"""Which texts share a pass of the workers, and in what order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import TypeAlias, TypeVar

import numpy as np
import pytest

from gateway.embed import Role
from gateway.plugins.local import DOCUMENTS_A_PASS, MAX_QUERY_PASSES, DynamicBatcher
from gateway.runtime.vectors import Matrix, Vector

WAIT_S = 60
Rows: TypeAlias = list[Future[Vector]]


class Held:
    """A model that holds its first pass until it is let go; a text's vector is its length."""

    def __init__(self) -> None:
        self.passes: list[list[str]] = []
        self.busy, self.free = threading.Event(), threading.Event()
        self.batcher = DynamicBatcher(self.run)

    def run(self, texts: list[str], role: Role) -> Matrix:
        self.passes.append(texts)
        self.busy.set()
        assert self.free.wait(WAIT_S)
        if "bad" in texts:
            raise ValueError("a bad text")
        width = 2 if "odd" in texts else 1
        return np.array([[len(text)] * width for text in texts], dtype=np.float32)

    def ask(self, *texts: str) -> Rows:
        return self.batcher.submit(texts, "query")

    def documents(self, *texts: str) -> Rows:
        return self.batcher.submit(texts, "document")


H = TypeVar("H", bound=Held)


def busy(made: H) -> Iterator[H]:
    """Have *made* be busy with a first query; let go at the end, or its thread would wait on."""
    made.ask("first")
    assert made.busy.wait(WAIT_S)
    yield made
    made.free.set()


@pytest.fixture
def held() -> Iterator[Held]:
    """Busy with a first query."""
    yield from busy(Held())


def lengths(asked: Rows) -> list[float]:
    return [float(row.result(WAIT_S)[0]) for row in asked]


def test_what_waits_goes_together_in_order(held: Held) -> None:
    """Each gets its own rows; what is too much for a pass waits for the next."""
    asked = [held.ask("a"), held.ask("bb", "ccc"), held.ask("dddd", "eeeee"), held.ask(*"fghij")]
    held.free.set()

    assert [[1], [2, 3], [4, 5], [1] * 5] == [lengths(one) for one in asked]
    expected = [["first"], ["a", "bb", "ccc", "dddd"], ["eeeee", "f", "g", "h"], ["i", "j"]]
    assert expected == held.passes


def test_whoever_goes_away_is_left_out(held: Held) -> None:
    """And the others are served."""
    gone, waiting = held.ask("gone"), held.ask("aa")
    first_gone, documents_gone = held.ask("g"), held.documents("gone")
    assert all(row.cancel() for row in (*gone, *first_gone, *documents_gone))
    held.free.set()

    assert [2] == lengths(waiting)
    assert 2 == lengths(held.ask("bb"))[0]
    assert [["first"], ["aa"], ["bb"]] == held.passes


def test_a_fault_is_told_to_all_of_its_pass(held: Held) -> None:
    """And to nobody else."""
    bad, beside = held.ask("bad"), held.ask("beside")
    gone = held.ask("gone")
    held.batcher.submit(["x"] * 3, "query")
    after = held.ask("aa")
    held.free.set()

    for asked in (bad, beside, gone):
        with pytest.raises(ValueError, match="a bad text"):
            lengths(asked)
    assert [2] == lengths(after)


def test_documents_come_in_slices_behind_queries(held: Held) -> None:
    """A query waits for one slice at most, whatever is being indexed."""
    texts = ["d" * size for size in range(1, 2 * DOCUMENTS_A_PASS + 2)]
    documents, query = held.documents(*texts), held.ask("q")
    held.free.set()

    assert [len(text) for text in texts] == lengths(documents)
    assert [1] == lengths(query)
    assert [1, 1, DOCUMENTS_A_PASS, DOCUMENTS_A_PASS, 1] == [len(one) for one in held.passes]
    assert ["q"] == held.passes[1]


def test_an_index_gets_done_in_a_busy_hour(held: Held) -> None:
    """Queries that never end would starve it."""
    asked = [held.ask(*"aaaa") for _ in range(2 * MAX_QUERY_PASSES)]
    documents = held.documents("d")
    held.free.set()

    assert [1] == lengths(documents)
    assert [1.0] * 4 == lengths(asked[-1])
    assert MAX_QUERY_PASSES == held.passes.index(["d"])


def test_whoever_waits_at_the_end_of_the_process_is_told(held: Held) -> None:
    """Or a thread would wait for ever, and the process with it."""
    waiting, behind = held.ask(*"abcd"), held.documents("d")
    held.batcher._executor.shutdown(wait=False)  # noqa: SLF001  (as the interpreter does)
    held.free.set()

    for asked in (waiting, behind):
        with pytest.raises(RuntimeError, match="shutdown"):
            lengths(asked)


class Two(Held):
    """Two passes at once; whose pass holds ``quick`` is not held."""

    def __init__(self) -> None:
        super().__init__()
        self.batcher = DynamicBatcher(self.run, workers=2)

    def run(self, texts: list[str], role: Role) -> Matrix:
        if "quick" in texts:
            self.passes.append(texts)
            return np.array([[len(text)] for text in texts], dtype=np.float32)
        return super().run(texts, role)


@pytest.fixture
def two() -> Iterator[Two]:
    """One of the workers is busy."""
    yield from busy(Two())


def test_a_second_worker_does_not_wait_for_the_first(two: Two) -> None:
    """Two cores serve two."""
    assert [5.0] == lengths(two.ask("quick"))
    assert [["first"], ["quick"]] == two.passes


def test_documents_leave_a_worker_to_queries() -> None:
    """One slice at a time, in order: a query waits for none of them while a worker is idle."""
    held = Two()
    documents = held.documents(*(f"document {number}" for number in range(2 * DOCUMENTS_A_PASS)))
    assert held.busy.wait(WAIT_S)

    assert [5.0] == lengths(held.ask("quick"))
    assert [DOCUMENTS_A_PASS, 1] == [len(each) for each in held.passes]

    held.free.set()

    assert 2 * DOCUMENTS_A_PASS == len(lengths(documents))
    assert [DOCUMENTS_A_PASS, 1, DOCUMENTS_A_PASS] == [len(each) for each in held.passes]


def test_too_few_vectors_are_an_error_of_their_pass() -> None:
    """A request would wait for its row for ever."""
    short = DynamicBatcher(lambda texts, _role: np.zeros((len(texts) - 1, 1), np.float32))

    with pytest.raises(ValueError, match="shorter"):
        lengths(short.submit(("a", "b"), "query"))
