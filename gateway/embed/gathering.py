"""Few workers for all who ask: what waits while they are busy goes together in the next pass.

* Nobody waits for company: an idle worker starts at once, with what there is.
* Queries go before documents, and documents in small slices, one at a time: a query waits for one
  slice at most. Every few passes one slice goes first, so that a busy gateway still finishes its
  index.
* Whoever goes away is left out of the next pass, and the others of a pass still get theirs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from gateway.embed.protocol import Role
from gateway.vectors import Matrix

SLICE = 8
"""Documents in one pass: twice as many gain little, and a query may be waiting."""
PATIENCE = 8
"""So many passes of queries in a row, and waiting documents have one."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Asked:
    texts: Sequence[str]
    role: Role
    answer: Future[Matrix] = field(default_factory=Future)
    parts: list[Matrix] = field(default_factory=list)
    taken: int = 0

    def take(self, most: int) -> list[str]:
        part = list(self.texts[self.taken : self.taken + most])
        self.taken += len(part)
        return part

    def give(self, rows: Matrix) -> None:
        self.parts.append(rows)
        if self.taken < len(self.texts):
            return
        whole = rows if len(self.parts) == 1 else np.concatenate(self.parts)
        # Until here it could still be cancelled; from here on nobody can.
        if self.answer.set_running_or_notify_cancel():
            self.answer.set_result(whole)

    def fail(self, error: BaseException) -> None:
        self.taken = len(self.texts)
        if self.answer.set_running_or_notify_cancel():
            self.answer.set_exception(error)


class Gathering:
    """Passes texts through worker threads, those of several who ask together.

    Args:
        run: Gives one row a text. Called in the workers' threads, by all of them at once.
        most: Texts in one pass of queries.
        workers: Passes at once, >= 1.
    """

    def __init__(self, run: Callable[[list[str]], Matrix], *, most: int, workers: int = 1) -> None:
        self._run = run
        self._most = most
        self._workers = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="gateway-embed")
        self._idle = workers
        self._lock = threading.Lock()
        self._reading = False
        self._in_a_row = 0
        self._waiting: dict[Role, deque[_Asked]] = {"query": deque(), "document": deque()}

    def ask(self, texts: Sequence[str], role: Role) -> Future[Matrix]:
        """Give what will hold one row a text, in the order of *texts*.

        Cancelling it leaves the texts out of the passes that have not begun. What a pass raises,
        all of that pass get.
        """
        asked = _Asked(texts=texts, role=role)
        if not texts:
            asked.answer.set_result(np.empty((0, 0), dtype=np.float32))
            return asked.answer
        with self._lock:
            self._waiting[role].append(asked)
            if not self._idle:
                return asked.answer
            self._idle -= 1
        self._go()
        return asked.answer

    def _go(self, landed: Sequence[tuple[_Asked, list[str]]] = ()) -> None:
        while taken := self._turn(landed):
            try:
                done = self._workers.submit(self._run, [text for _, part in taken for text in part])
            except RuntimeError as error:  # the process is ending
                for asked, _ in taken:
                    asked.fail(error)
                landed = taken
            else:
                done.add_done_callback(partial(self._landed, taken))
                return

    def _turn(self, landed: Sequence[tuple[_Asked, list[str]]]) -> list[tuple[_Asked, list[str]]]:
        """Take the next pass for the worker that brought *landed*; with none it is idle."""
        with self._lock:
            if any(asked.role == "document" for asked, _ in landed):
                self._reading = False
            taken = self._next()
            self._idle += not taken
            return taken

    def _landed(self, taken: Sequence[tuple[_Asked, list[str]]], done: Future[Matrix]) -> None:
        error = done.exception()
        at = 0
        # Whatever becomes of this pass, those behind it must have theirs.
        try:
            for asked, part in taken:
                if error is None:
                    _delivered(asked, done.result()[at : at + len(part)])
                else:
                    asked.fail(error)
                at += len(part)
        finally:
            self._go(taken)

    def _next(self) -> list[tuple[_Asked, list[str]]]:
        """Take the texts of the next pass."""
        queries = self._open("query")
        documents = None if self._reading else self._open("document")
        patient = self._in_a_row < PATIENCE or not documents
        # Whoever asked may have gone since.
        if patient and (taken := self._together(queries)):
            self._in_a_row += 1
            return taken
        self._in_a_row = 0
        if not documents:
            return []
        self._reading = True
        return [(documents[0], documents[0].take(SLICE))]

    def _open(self, role: Role) -> deque[_Asked]:
        waiting = self._waiting[role]
        while waiting and (waiting[0].taken == len(waiting[0].texts) or _gone(waiting[0])):
            waiting.popleft()
        return waiting

    def _together(self, waiting: deque[_Asked]) -> list[tuple[_Asked, list[str]]]:
        taken: list[tuple[_Asked, list[str]]] = []
        room = self._most
        while waiting and (not taken or len(waiting[0].texts) <= room):
            asked = waiting.popleft()
            if not _gone(asked):
                taken.append((asked, asked.take(len(asked.texts))))
                room -= len(asked.texts)
        return taken


def _delivered(asked: _Asked, rows: Matrix) -> None:
    try:
        asked.give(rows)
    except (ValueError, MemoryError) as error:  # slices of unlike length, or too many
        asked.fail(error)


def _gone(asked: _Asked) -> bool:
    return asked.answer.cancelled()
