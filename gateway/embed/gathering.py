"""A few workers for all who ask: texts that wait while these are busy share the next pass.

* Nothing waits for company: an idle worker starts at once, with what there is.
* Queries go before documents, and documents go in small slices, one at a time: a query waits for
  at most one slice. Every few passes a slice goes first, so that a busy gateway still finishes its
  index.
* The query that has waited longest is in the next pass, and with it those that are like it.
* A first part of the work, if it is cheap for many at once, is done for all that wait.
* What nobody waits for any more is left out of the next pass; the others of a pass get their rows.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from gateway.embed.protocol import Role
from gateway.errors import EmbeddingError
from gateway.runtime.vectors import Matrix, Vector

SLICE = 8
"""How many documents share a pass: twice as many gain little, and a query may be waiting."""
PATIENCE = 8
"""After so many passes of queries in a row, waiting documents have one."""
AHEAD = 1000
"""For how many letters of waiting queries the first part is done beside a pass: enough for twenty
requests, too few for a long text, which a short one would have to wait for."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Asked:
    role: Role
    rows: list[Vector | None]
    left: int
    """Texts that have no row yet."""
    answer: Future[Matrix] = field(default_factory=Future)
    failed: bool = False

    @property
    def gone(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.failed or self.answer.cancelled()

    def give(self) -> None:
        whole = np.array(self.rows, dtype=np.float32)
        # Until here it could still be cancelled; from here on nobody can.
        if self.answer.set_running_or_notify_cancel():
            self.answer.set_result(whole)

    def fail(self, error: BaseException) -> None:
        if self.answer.set_running_or_notify_cancel():
            self.answer.set_exception(error)


@dataclass(slots=True, kw_only=True, eq=False)
class _Text:
    asked: _Asked
    place: int
    text: str
    like: Hashable
    begun: Vector | None = None
    """What the first part of the work made of it."""
    beside: bool = False
    """Whether that was tried beside another pass."""


def _all_alike(_text: str) -> Hashable:
    return None


class Gathering:
    """Passes texts through worker threads, those of several who ask together.

    Args:
        run: Gives one row for each text, with what *first* made of each, if there is a *first*.
            Called in the threads of all workers at once.
        most: How many texts of queries share a pass.
        workers: How many passes run at once, >= 1.
        like: Queries for which it gives equal values share a pass. Called by whoever asks.
        first: The first part of the work, cheap for many at once: gives one row for each text.
            Called in the workers' threads, by one at a time.
    """

    def __init__(
        self,
        run: Callable[[list[str], Sequence[Vector]], Matrix],
        *,
        most: int,
        workers: int = 1,
        like: Callable[[str], Hashable] = _all_alike,
        first: Callable[[list[str]], Matrix] | None = None,
    ) -> None:
        self._run = run
        self._most = most
        self._like = like
        self._first = first
        self._workers = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="gateway-embed")
        self._idle = workers
        self._lock = threading.Lock()
        self._beginning = threading.Lock()
        self._reading = False
        self._in_a_row = 0
        self._waiting: dict[Role, deque[_Text]] = {"query": deque(), "document": deque()}

    def ask(self, texts: Sequence[str], role: Role) -> Future[Matrix]:
        """Give what will hold one row for each text, in the order of *texts*.

        To cancel it leaves the texts out of passes that have not begun. What a pass raises, all in
        that pass get.
        """
        asked = _Asked(role=role, rows=[None] * len(texts), left=len(texts))
        if not texts:
            asked.answer.set_result(np.empty((0, 0), dtype=np.float32))
            return asked.answer
        like = self._like if role == "query" else _all_alike
        every = [
            _Text(asked=asked, place=place, text=text, like=like(text))
            for place, text in enumerate(texts)
        ]
        with self._lock:
            self._waiting[role].extend(every)
            begun = min(self._idle, len(every))
            self._idle -= begun
        for _ in range(begun):
            self._go()
        return asked.answer

    def _go(self, landed: Sequence[_Text] = ()) -> None:
        while taken := self._turn(landed):
            try:
                done = self._workers.submit(self._through, taken)
            except RuntimeError as error:  # the process is ending
                self._failed(taken, error)
                landed = taken
            else:
                done.add_done_callback(partial(self._landed, taken))
                return

    def _through(self, taken: Sequence[_Text]) -> Matrix:
        if self._first is not None:
            with self._beginning:
                self._begin(taken, self._first)
        begun = [each.begun for each in taken if each.begun is not None]
        rows = self._run([each.text for each in taken], begun)
        if len(rows) != len(taken):
            raise EmbeddingError(f"the model gave {len(rows)} vectors for {len(taken)} texts")
        return rows

    def _begin(self, taken: Sequence[_Text], first: Callable[[list[str]], Matrix]) -> None:
        """Do the first part for *taken* and for all that wait, unless another pass did."""
        new = [each for each in taken if each.begun is None]
        if not new:
            return
        with self._lock:
            new += (beside := _ahead(self._waiting["query"]))
            for each in beside:
                each.beside = True
        for each, row in zip(new, first([each.text for each in new]), strict=True):
            each.begun = row

    def _turn(self, landed: Sequence[_Text]) -> list[_Text]:
        """Take the next pass for the worker that brought *landed*; with none it is idle."""
        with self._lock:
            if any(each.asked.role == "document" for each in landed):
                self._reading = False
            taken = self._next()
            self._idle += not taken
            return taken

    def _landed(self, taken: Sequence[_Text], done: Future[Matrix]) -> None:
        error = done.exception()
        # Whatever becomes of this pass, the next one must run.
        try:
            if error is None:
                self._delivered(taken, done.result())
            else:
                self._failed(taken, error)
        finally:
            self._go(taken)

    def _delivered(self, taken: Sequence[_Text], rows: Matrix) -> None:
        with self._lock:
            for each, row in zip(taken, rows, strict=True):
                each.asked.rows[each.place] = row
                each.asked.left -= 1
            whole = [asked for asked in _askers(taken) if not asked.left]
        for asked in whole:
            try:
                asked.give()
            except (ValueError, MemoryError) as error:  # rows of unlike length, or too many
                asked.fail(error)

    def _failed(self, taken: Sequence[_Text], error: BaseException) -> None:
        with self._lock:
            met = _askers(taken)
            for asked in met:
                asked.failed = True
        for asked in met:
            asked.fail(error)

    def _next(self) -> list[_Text]:
        """Take the texts of the next pass."""
        queries = self._open("query")
        documents = None if self._reading else self._open("document")
        patient = self._in_a_row < PATIENCE or not documents
        # Whoever asked may have gone since.
        if patient and (taken := _taken(queries, self._most)):
            self._in_a_row += 1
            return taken
        self._in_a_row = 0
        if not documents:
            return []
        taken = _taken(documents, SLICE)
        self._reading = bool(taken)
        # If their asker went just now, the queries must not wait for somebody else to ask.
        return taken or _taken(queries, self._most)

    def _open(self, role: Role) -> deque[_Text]:
        waiting = self._waiting[role]
        while waiting and waiting[0].asked.gone:
            waiting.popleft()
        return waiting


def _taken(waiting: deque[_Text], most: int) -> list[_Text]:
    """Take the text that waits longest, and those that are like it."""
    taken: list[_Text] = []
    for each in waiting:
        if len(taken) == most:
            break
        if not each.asked.gone and (not taken or each.like == taken[0].like):
            taken.append(each)
    for each in taken:
        waiting.remove(each)
    return taken


def _ahead(waiting: Iterable[_Text]) -> list[_Text]:
    found: list[_Text] = []
    room = AHEAD
    for each in waiting:
        room -= len(each.text)
        if room < 0:
            break
        if not (each.beside or each.asked.gone):
            found.append(each)
    return found


def _askers(taken: Iterable[_Text]) -> list[_Asked]:
    """Give who asked for *taken* and was not told of a fault yet."""
    return [asked for asked in {each.asked: None for each in taken} if not asked.failed]
