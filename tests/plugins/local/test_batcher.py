"""Order of the batcher's passes, and the texts in each pass."""

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


class PausedModel:
    """Model whose passes wait until `free` is set. The vector of a text is its length."""

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


ModelType = TypeVar("ModelType", bound=PausedModel)


def busy(model: ModelType) -> Iterator[ModelType]:
    """Start a first query and yield *model* while it runs. Release it at the end, or its thread
    would never end.
    """
    model.ask("first")
    assert model.busy.wait(WAIT_S)
    yield model
    model.free.set()


@pytest.fixture
def busy_model() -> Iterator[PausedModel]:
    """Model that is busy with a first query."""
    yield from busy(PausedModel())


def lengths(futures: Rows) -> list[float]:
    return [float(row.result(WAIT_S)[0]) for row in futures]


def test_waiting_texts_share_the_next_pass_in_order(busy_model: PausedModel) -> None:
    futures = [
        busy_model.ask("a"),
        busy_model.ask("bb", "ccc"),
        busy_model.ask("dddd", "eeeee"),
        busy_model.ask(*"fghij"),
    ]
    busy_model.free.set()

    assert [[1], [2, 3], [4, 5], [1] * 5] == [lengths(rows) for rows in futures]
    expected = [["first"], ["a", "bb", "ccc", "dddd"], ["eeeee", "f", "g", "h"], ["i", "j"]]
    assert expected == busy_model.passes


def test_cancelled_texts_are_removed_from_the_next_pass(busy_model: PausedModel) -> None:
    gone, waiting = busy_model.ask("gone"), busy_model.ask("aa")
    first_gone, documents_gone = busy_model.ask("g"), busy_model.documents("gone")
    assert all(row.cancel() for row in (*gone, *first_gone, *documents_gone))
    busy_model.free.set()

    assert [2] == lengths(waiting)
    assert 2 == lengths(busy_model.ask("bb"))[0]
    assert [["first"], ["aa"], ["bb"]] == busy_model.passes


def test_error_in_a_pass_is_raised_only_for_its_texts(busy_model: PausedModel) -> None:
    bad, beside = busy_model.ask("bad"), busy_model.ask("beside")
    gone = busy_model.ask("gone")
    busy_model.batcher.submit(["x"] * 3, "query")
    after = busy_model.ask("aa")
    busy_model.free.set()

    for futures in (bad, beside, gone):
        with pytest.raises(ValueError, match="a bad text"):
            lengths(futures)
    assert [2] == lengths(after)


def test_documents_are_embedded_in_small_passes_after_queries(busy_model: PausedModel) -> None:
    """So a query waits for at most one pass of documents."""
    texts = ["d" * size for size in range(1, 2 * DOCUMENTS_A_PASS + 2)]
    documents, query = busy_model.documents(*texts), busy_model.ask("q")
    busy_model.free.set()

    assert [len(text) for text in texts] == lengths(documents)
    assert [1] == lengths(query)
    assert [1, 1, DOCUMENTS_A_PASS, DOCUMENTS_A_PASS, 1] == [
        len(texts_of_pass) for texts_of_pass in busy_model.passes
    ]
    assert ["q"] == busy_model.passes[1]


def test_documents_get_a_pass_after_many_query_passes(busy_model: PausedModel) -> None:
    """Otherwise continuous queries would block the index forever."""
    futures = [busy_model.ask(*"aaaa") for _ in range(2 * MAX_QUERY_PASSES)]
    documents = busy_model.documents("d")
    busy_model.free.set()

    assert [1] == lengths(documents)
    assert [1.0] * 4 == lengths(futures[-1])
    assert MAX_QUERY_PASSES == busy_model.passes.index(["d"])


def test_waiting_texts_fail_when_the_process_exits(busy_model: PausedModel) -> None:
    """Otherwise a thread would wait for them, and the process for the thread."""
    waiting, behind = busy_model.ask(*"abcd"), busy_model.documents("d")
    busy_model.batcher._executor.shutdown(wait=False)  # noqa: SLF001  (as the interpreter does)
    busy_model.free.set()

    for futures in (waiting, behind):
        with pytest.raises(RuntimeError, match="shutdown"):
            lengths(futures)


class TwoWorkerModel(PausedModel):
    """Model with two workers. Passes with the text "quick" do not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.batcher = DynamicBatcher(self.run, workers=2)

    def run(self, texts: list[str], role: Role) -> Matrix:
        if "quick" in texts:
            self.passes.append(texts)
            return np.array([[len(text)] for text in texts], dtype=np.float32)
        return super().run(texts, role)


@pytest.fixture
def two_worker_model() -> Iterator[TwoWorkerModel]:
    """Model with one of two workers busy."""
    yield from busy(TwoWorkerModel())


def test_query_runs_on_a_second_worker_while_the_first_is_busy(
    two_worker_model: TwoWorkerModel,
) -> None:
    assert [5.0] == lengths(two_worker_model.ask("quick"))
    assert [["first"], ["quick"]] == two_worker_model.passes


def test_documents_leave_one_worker_for_queries() -> None:
    """Only one pass of documents runs at a time."""
    model = TwoWorkerModel()
    documents = model.documents(*(f"document {number}" for number in range(2 * DOCUMENTS_A_PASS)))
    assert model.busy.wait(WAIT_S)

    assert [5.0] == lengths(model.ask("quick"))
    assert [DOCUMENTS_A_PASS, 1] == [len(pass_) for pass_ in model.passes]

    model.free.set()

    assert 2 * DOCUMENTS_A_PASS == len(lengths(documents))
    assert [DOCUMENTS_A_PASS, 1, DOCUMENTS_A_PASS] == [len(pass_) for pass_ in model.passes]


def test_pass_that_returns_too_few_vectors_fails() -> None:
    """Otherwise the request for a missing vector would wait forever."""
    short = DynamicBatcher(lambda texts, _role: np.zeros((len(texts) - 1, 1), np.float32))

    with pytest.raises(ValueError, match="shorter"):
        lengths(short.submit(("a", "b"), "query"))
