"""Dynamic batching: texts that wait while all workers are busy share the next pass.

* Queries precede documents, whose passes are small and run one at a time. After a number of query
  passes, one pass of documents comes first, so that a busy gateway finishes its index.
* Cancelled texts are removed from passes that have not started.
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
"""Maximum number of queries in one pass. More gain little and delay the last queries."""
DOCUMENTS_A_PASS = 8
"""Maximum number of documents in one pass. More gain little and delay queries."""
MAX_QUERY_PASSES = 8
"""Number of consecutive query passes before waiting documents get one."""


_Text: TypeAlias = tuple[str, Future[Vector]]


class DynamicBatcher:
    """Collects texts of several requests into batches for worker threads.

    Args:
        run: Returns one vector row for each text. Several workers may call it at the same time.
        workers: Number of concurrent passes, >= 1.
    """

    def __init__(self, run: Callable[[list[str], Role], Matrix], *, workers: int = 1) -> None:
        self._run = run
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="gateway-embed")
        self._idle = workers
        self._lock = threading.Lock()
        self._is_reading_documents = False
        self._query_passes = 0
        self._queues: dict[Role, deque[_Text]] = {"query": deque(), "document": deque()}

    def submit(self, texts: Sequence[str], role: Role) -> list[Future[Vector]]:
        """Return a future for the vector of each text.

        Cancelling a future removes its text from passes that have not started. An error of a pass
        is set on all its futures.
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
        except RuntimeError as error:  # the process is exiting
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
        """Take the texts of the next pass from their queue; empty if no pass may start."""
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
