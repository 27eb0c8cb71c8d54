"""A dynamic batcher: texts that wait while its workers are busy share the next pass.

* There is no timer: an idle worker starts at once, with what there is.
* Queries go before documents. Documents go in small slices, one at a time, so that a query waits
  for one slice at most. After a number of query passes in a row, a slice goes first: a busy gateway
  still finishes its index.
* Cancelled texts are left out of passes that have not begun.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeAlias

from gateway.embed.protocol import Role
from gateway.runtime.vectors import Matrix, Vector

QUERIES_A_PASS = 4
"""More gain little, and the last ones wait longer."""
DOCUMENTS_A_PASS = 8
"""Twice as many gain little, and a query may be waiting."""
MAX_QUERY_PASSES = 8
"""After so many in a row, waiting documents have one."""


_Text: TypeAlias = tuple[str, Future[Vector]]


class DynamicBatcher:
    """Passes texts through worker threads, those of several requests together.

    Args:
        run: Returns one row for each text of one role. Called in the threads of all workers at
            once.
        workers: How many passes run at once, >= 1.
    """

    def __init__(self, run: Callable[[list[str], Role], Matrix], *, workers: int = 1) -> None:
        self._run = run
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="gateway-embed")
        self._idle = workers
        self._lock = threading.Lock()
        self._is_reading_documents = False
        self._query_passes = 0
        """In a row."""
        self._queues: dict[Role, deque[_Text]] = {"query": deque(), "document": deque()}

    def submit(self, texts: Sequence[str], role: Role) -> list[Future[Vector]]:
        """Return a future of the row of each text.

        Cancelling one takes its text out of passes that have not begun. An error in a pass goes to
        every text of that pass.
        """
        waiting: list[_Text] = [(text, Future()) for text in texts]
        with self._lock:
            self._queues[role].extend(waiting)
            started = min(self._idle, len(texts))
            self._idle -= started
        for _ in range(started):
            self._start_worker()
        return [row for _, row in waiting]

    def _start_worker(self) -> None:
        try:
            self._executor.submit(self._work)
        except RuntimeError as error:  # the process is ending
            for role in self._queues:
                for _, row in self._take(role, len(self._queues[role])):
                    row.set_exception(error)

    def _work(self) -> None:
        with self._lock:
            role, batch = self._take_batch()
            self._idle += not batch
        if not batch:
            return
        try:
            rows = self._run([text for text, _ in batch], role)
            for (_, row), vector in zip(batch, rows, strict=True):
                row.set_result(vector)
        except BaseException as error:
            for _, row in batch:
                if not row.done():
                    row.set_exception(error)
            raise
        finally:
            if role == "document":
                self._is_reading_documents = False
            self._start_worker()

    def _take_batch(self) -> tuple[Role, list[_Text]]:
        """Take the texts of the next pass; none if nothing waits that may start."""
        documents_wait = not self._is_reading_documents and bool(self._queues["document"])
        documents_first = documents_wait and self._query_passes >= MAX_QUERY_PASSES
        if not documents_first and (batch := self._take("query", QUERIES_A_PASS)):
            self._query_passes += 1
            return "query", batch
        self._query_passes = 0
        if documents_wait and (batch := self._take("document", DOCUMENTS_A_PASS)):
            self._is_reading_documents = True
            return "document", batch
        return "query", self._take("query", QUERIES_A_PASS)

    def _take(self, role: Role, limit: int) -> list[_Text]:
        queue, batch = self._queues[role], list[_Text]()
        while queue and len(batch) < limit:
            text, row = queue.popleft()
            if row.set_running_or_notify_cancel():
                batch.append((text, row))
        return batch
