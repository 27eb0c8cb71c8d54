"""Who waits for the worker, and what its next pass holds."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import TypeVar

import numpy as np
import pytest

from gateway.embed.gathering import AHEAD, PATIENCE, SLICE, Gathering, _Text
from gateway.embed.protocol import Role
from gateway.errors import EmbeddingError
from gateway.runtime.vectors import Matrix, Vector

WAIT_S = 60


class Held:
    """A model that holds its first pass until it is let go; a text's vector is its length."""

    def __init__(self) -> None:
        self.passes: list[list[str]] = []
        self.busy, self.free = threading.Event(), threading.Event()
        self.gathering = Gathering(self.run, most=4)

    def run(self, texts: list[str], _begun: Sequence[Vector]) -> Matrix:
        self.passes.append(texts)
        self.busy.set()
        assert self.free.wait(WAIT_S)
        if "bad" in texts:
            raise ValueError("a bad text")
        width = 2 if "odd" in texts else 1
        return np.array([[len(text)] * width for text in texts], dtype=np.float32)

    def ask(self, *texts: str) -> Future[Matrix]:
        return self.gathering.ask(texts, "query")

    def documents(self, *texts: str) -> Future[Matrix]:
        return self.gathering.ask(texts, "document")


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


def lengths(asked: Future[Matrix]) -> list[float]:
    return [float(length) for (length,) in asked.result(WAIT_S)]


def test_an_idle_worker_starts_at_once(held: Held) -> None:
    """A query alone must not wait for company."""
    assert [["first"]] == held.passes


def test_what_waits_goes_together_in_order(held: Held) -> None:
    """Each gets its own rows; what is too much for a pass waits for the next."""
    asked = [held.ask("a"), held.ask("bb", "ccc"), held.ask("dddd", "eeeee"), held.ask("f")]
    held.free.set()

    assert [[1], [2, 3], [4, 5], [1]] == [lengths(one) for one in asked]
    assert [["first"], ["a", "bb", "ccc", "dddd"], ["eeeee", "f"]] == held.passes


def test_more_than_a_pass_at_once_are_several(held: Held) -> None:
    """Or who asks for one text would wait for who asks for many."""
    asked = held.ask(*"abcdef")
    held.free.set()

    assert [1.0] * 6 == lengths(asked)
    assert [1, 4, 2] == [len(one) for one in held.passes]


def test_whoever_goes_away_is_left_out(held: Held) -> None:
    """And the others are served."""
    gone, waiting = held.ask("gone"), held.ask("aa")
    first_gone, documents_gone = held.ask("g"), held.documents("gone")
    assert all(one.cancel() for one in (gone, first_gone, documents_gone))
    held.free.set()

    assert [2] == lengths(waiting)
    assert 2 == lengths(held.ask("bb"))[0]
    assert [["first"], ["aa"], ["bb"]] == held.passes


def test_going_away_in_a_pass_hurts_nobody() -> None:
    """What it asked for is done and thrown away."""
    held = Held()
    first = held.ask("first")
    assert held.busy.wait(WAIT_S)
    assert first.cancel()
    second = held.ask("aa")
    held.free.set()

    assert [2] == lengths(second)


def test_a_fault_is_not_told_to_who_went_away_in_its_pass() -> None:
    """And the worker goes on."""
    held = Held()
    bad = held.ask("bad")
    assert held.busy.wait(WAIT_S)
    assert bad.cancel()
    held.free.set()

    assert [2] == lengths(held.ask("aa"))


def test_a_fault_is_told_to_all_of_its_pass(held: Held) -> None:
    """And to nobody else."""
    bad, beside = held.ask("bad"), held.ask("beside")
    gone = held.ask("gone")
    held.gathering.ask(["x"] * 3, "query")
    after = held.ask("aa")
    held.free.set()

    for asked in (bad, beside, gone):
        with pytest.raises(ValueError, match="a bad text"):
            asked.result(WAIT_S)
    assert [2] == lengths(after)


def test_documents_come_in_slices_behind_queries(held: Held) -> None:
    """A query waits for one slice at most, whatever is being indexed."""
    texts = ["d" * size for size in range(1, 2 * SLICE + 2)]
    documents, query = held.documents(*texts), held.ask("q")
    held.free.set()

    assert [len(text) for text in texts] == lengths(documents)
    assert [1] == lengths(query)
    assert [1, 1, SLICE, SLICE, 1] == [len(one) for one in held.passes]
    assert ["q"] == held.passes[1]


def test_an_index_gets_done_in_a_busy_hour(held: Held) -> None:
    """Queries that never end would starve it."""
    asked = [held.ask(*"aaaa") for _ in range(2 * PATIENCE)]
    documents = held.documents("d")
    held.free.set()

    assert [1] == lengths(documents)
    assert [1.0] * 4 == lengths(asked[-1])
    assert PATIENCE == held.passes.index(["d"])


def test_a_fault_ends_the_documents_that_it_met(held: Held) -> None:
    """The slices behind it would be embedded for nobody."""
    documents = held.documents("bad", *["d"] * SLICE)
    beside = held.documents("aa")
    held.free.set()

    with pytest.raises(ValueError, match="a bad text"):
        documents.result(WAIT_S)
    assert [2] == lengths(beside)
    assert 3 == len(held.passes)


def test_nothing_is_answered_with_nothing(held: Held) -> None:
    """Without a pass of the model."""
    assert (0, 0) == held.ask().result(WAIT_S).shape


def test_whoever_waits_at_the_end_of_the_process_is_told(held: Held) -> None:
    """Or a thread would wait for ever, and the process with it."""
    waiting, behind = held.ask(*"abcd"), held.documents("d")
    held.gathering._workers.shutdown(wait=False)  # noqa: SLF001  (as the interpreter does)
    held.free.set()

    for asked in (waiting, behind):
        with pytest.raises(RuntimeError, match="shutdown"):
            asked.result(WAIT_S)


def test_however_many_wait_at_the_end_all_are_told(held: Held) -> None:
    """More than a thread's stack could take one in the other."""
    held.ask("first")
    waiting = [held.ask(*"abcd") for _ in range(1500)]
    held.gathering._workers.shutdown(wait=False)  # noqa: SLF001  (as the interpreter does)
    held.free.set()

    for asked in waiting:
        with pytest.raises(RuntimeError, match="shutdown"):
            asked.result(WAIT_S)


class Leaving(Gathering):
    """Somebody goes away between the look at who waits and the taking."""

    def __init__(self, held: Held) -> None:
        super().__init__(held.run, most=4)
        self.leaving: Future[Matrix] | None = None

    def _open(self, role: Role) -> deque[_Text]:
        waiting = super()._open(role)
        if role == "document" and self.leaving is not None:
            self.leaving.cancel()
        return waiting


def test_whoever_leaves_at_the_last_moment_leaves_nobody_waiting() -> None:
    """Or an index build would wait until somebody asks again."""
    held = Held()
    gathering = Leaving(held)
    gathering.ask(["first"], "query")
    assert held.busy.wait(WAIT_S)
    gathering.leaving = gathering.ask(["gone"], "query")
    documents = gathering.ask(["a document"], "document")
    held.free.set()

    assert [10] == documents.result(WAIT_S)[:, 0].tolist()


def test_what_cannot_be_joined_is_told_and_stops_nobody(held: Held) -> None:
    """An engine whose rows are of unlike length would leave all who wait waiting."""
    asked = held.documents(*["short"] * SLICE, "odd")
    held.free.set()

    with pytest.raises(ValueError, match="inhomogeneous"):
        asked.result(WAIT_S)
    assert [2] == lengths(held.ask("bb"))


class Two(Held):
    """Two passes at once; whose pass holds ``quick`` is not held."""

    def __init__(self) -> None:
        super().__init__()
        self.gathering = Gathering(self.run, most=4, workers=2)

    def run(self, texts: list[str], begun: Sequence[Vector]) -> Matrix:
        if "quick" in texts:
            self.passes.append(texts)
            return np.array([[len(text)] for text in texts], dtype=np.float32)
        return super().run(texts, begun)


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
    documents = held.documents(*(f"document {number}" for number in range(2 * SLICE)))
    assert held.busy.wait(WAIT_S)

    assert [5.0] == lengths(held.ask("quick"))
    assert [SLICE, 1] == [len(each) for each in held.passes]

    held.free.set()

    assert 2 * SLICE == len(lengths(documents))
    assert [SLICE, 1, SLICE] == [len(each) for each in held.passes]


class Alike(Two):
    """Texts of one length go together."""

    def __init__(self) -> None:
        super().__init__()
        self.gathering = Gathering(self.run, most=4, like=len)


@pytest.fixture
def alike() -> Iterator[Alike]:
    """Busy with a first query."""
    yield from busy(Alike())


def test_queries_that_are_alike_go_together_and_the_oldest_says_which(alike: Alike) -> None:
    """An engine reads them for less together, and nobody waits for ever."""
    asked = [alike.ask("a", "bb"), alike.ask("cc"), alike.ask("d", "ee")]
    alike.free.set()

    assert [[1, 2], [2], [1, 2]] == [lengths(one) for one in asked]
    assert [["first"], ["a", "d"], ["bb", "cc", "ee"]] == alike.passes


def test_documents_keep_their_order_whatever_they_are_like(alike: Alike) -> None:
    """Whoever asks would have to look at thousands."""
    documents = alike.documents("a", "bb", "c")
    alike.free.set()

    assert [1, 2, 1] == lengths(documents)
    assert [["first"], ["a", "bb", "c"]] == alike.passes


def test_the_unlike_texts_of_one_query_take_the_idle_workers() -> None:
    """Two cores serve one who asks alone."""
    two = Alike()
    two.gathering = Gathering(two.run, most=4, workers=2, like=len)
    asked = two.ask("slow", "quick")
    assert two.busy.wait(WAIT_S)
    two.free.set()

    assert [4, 5] == lengths(asked)
    assert [["quick"], ["slow"]] == sorted(two.passes)


class InParts(Two):
    """The first part is the length; the rest doubles it, and is held."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[list[str]] = []
        self.gathering = Gathering(self.run, most=2, first=self.first)

    def first(self, texts: list[str]) -> Matrix:
        self.begun.append(texts)
        if "worse" in texts:
            raise ValueError("a worse text")
        return np.array([[len(text)] for text in texts], dtype=np.float32)

    def run(self, texts: list[str], begun: Sequence[Vector]) -> Matrix:
        super().run(texts, begun)
        return 2 * np.array(begun)


@pytest.fixture
def parted() -> Iterator[InParts]:
    """Busy with the rest of a first query."""
    yield from busy(InParts())


def test_a_first_part_that_is_cheap_for_many_is_done_for_all_who_wait(parted: InParts) -> None:
    """Once for each text; the rest comes pass by pass."""
    asked = [parted.ask(text) for text in ("a", "bb", "ccc", "dddd", "eeeee")]
    parted.free.set()

    assert [[2], [4], [6], [8], [10]] == [lengths(one) for one in asked]
    assert [["first"], ["a", "bb", "ccc", "dddd", "eeeee"]] == parted.begun
    assert [["first"], ["a", "bb"], ["ccc", "dddd"], ["eeeee"]] == parted.passes


def test_the_first_part_of_long_texts_is_not_done_for_others(parted: InParts) -> None:
    """A short query would wait for them; nor is it done for who has gone."""
    asked = [parted.ask(text) for text in ("a", "bb", "gone", "ccc", "d" * AHEAD, "e")]
    assert asked.pop(2).cancel()
    parted.free.set()

    assert [[2], [4], [6], [2 * AHEAD], [2]] == [lengths(one) for one in asked]
    assert [["first"], ["a", "bb", "ccc"], ["d" * AHEAD, "e"]] == parted.begun


def test_a_fault_of_the_first_part_is_told_to_that_pass(parted: InParts) -> None:
    """Who was only beside it has a try of its own."""
    asked = [parted.ask(text) for text in ("a", "b", "c", "d", "worse")]
    parted.free.set()

    for one in (*asked[:2], asked[-1]):
        with pytest.raises(ValueError, match="a worse text"):
            one.result(WAIT_S)
    assert [[2], [2]] == [lengths(one) for one in asked[2:4]]
    assert [["first"], ["a", "b", "c", "d", "worse"], ["c", "d"], ["worse"]] == parted.begun


def test_too_few_vectors_are_a_fault_of_their_pass() -> None:
    """Whoever waits for the others is told."""
    short = Gathering(lambda texts, _begun: np.zeros((len(texts) - 1, 1), np.float32), most=4)

    with pytest.raises(EmbeddingError, match="1 vectors for 2 texts"):
        short.ask(("a", "b"), "query").result(WAIT_S)
