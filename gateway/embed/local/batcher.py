"""A dynamic batcher: texts that wait while its workers are busy share the next pass.

* There is no timer: an idle worker starts at once, with what there is.
* Queries go before documents. Documents go in small slices, one at a time, so that a query waits
  for one slice at most. After a number of query passes in a row, a slice goes first: a busy gateway
  still finishes its index.
* Cancelled requests are left out of passes that have not begun.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from gateway.embed.protocol import Role
from gateway.runtime.vectors import Matrix, Vector

DOCUMENTS_A_PASS = 8
"""Twice as many gain little, and a query may be waiting."""
MAX_QUERY_PASSES = 8
"""After so many in a row, waiting documents have one."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Request:
    rows: list[Vector | None]
    missing: int
    """Texts without a row."""
    answer: Future[Matrix] = field(default_factory=Future)
    has_failed: bool = False

    @property
    def is_obsolete(self) -> bool:
        return self.has_failed or self.answer.cancelled()


@dataclass(slots=True, kw_only=True, eq=False)
class _Text:
    request: _Request
    index: int
    text: str
    role: Role


class DynamicBatcher:
    """Passes texts through worker threads, those of several requests together.

    Args:
        run: Returns one row for each text. Called in the threads of all workers at once.
        max_queries: The most query texts of one pass.
        workers: How many passes run at once, >= 1.
    """

    def __init__(
        self, run: Callable[[list[str]], Matrix], *, max_queries: int, workers: int = 1
    ) -> None:
        self._run = run
        self._max_queries = max_queries
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="gateway-embed")
        self._idle = workers
        self._lock = threading.Lock()
        self._is_reading_documents = False
        self._query_passes = 0
        """In a row."""
        self._queues: dict[Role, deque[_Text]] = {"query": deque(), "document": deque()}

    def submit(self, texts: Sequence[str], role: Role) -> Future[Matrix]:
        """Return a future of one row for each text, in order.

        Cancelling it takes the texts out of passes that have not begun. An error in a pass goes to
        every request of that pass.
        """
        request = _Request(rows=[None] * len(texts), missing=len(texts))
        if not texts:
            request.answer.set_result(np.empty((0, 0), dtype=np.float32))
            return request.answer
        with self._lock:
            self._queues[role].extend(
                _Text(request=request, index=index, text=text, role=role)
                for index, text in enumerate(texts)
            )
            started = min(self._idle, len(texts))
            self._idle -= started
        for _ in range(started):
            self._start_worker()
        return request.answer

    def _start_worker(self) -> None:
        try:
            self._executor.submit(self._work)
        except RuntimeError as error:  # the process is ending
            with self._lock:
                waiting = [text for queue in self._queues.values() for text in queue]
                for queue in self._queues.values():
                    queue.clear()
            self._fail(waiting, error)

    def _work(self) -> None:
        with self._lock:
            batch = self._take_batch()
            self._idle += not batch
        if not batch:
            return
        try:
            self._deliver(batch, self._run([text.text for text in batch]))
        except BaseException as error:
            self._fail(batch, error)
            raise
        finally:
            if batch[0].role == "document":
                self._is_reading_documents = False
            self._start_worker()

    def _deliver(self, batch: Sequence[_Text], rows: Matrix) -> None:
        with self._lock:
            for text, row in zip(batch, rows, strict=True):
                text.request.rows[text.index] = row
                text.request.missing -= 1
            complete = [request for request in _requests(batch) if not request.missing]
        for request in complete:
            matrix = np.array(request.rows, dtype=np.float32)
            # Up to here it could be cancelled.
            if request.answer.set_running_or_notify_cancel():
                request.answer.set_result(matrix)

    def _fail(self, batch: Sequence[_Text], error: BaseException) -> None:
        with self._lock:
            requests = _requests(batch)
            for request in requests:
                request.has_failed = True
        for request in requests:
            if request.answer.set_running_or_notify_cancel():
                request.answer.set_exception(error)

    def _take_batch(self) -> list[_Text]:
        """Take the texts of the next pass; none if nothing waits that may start."""
        documents_wait = not self._is_reading_documents and bool(self._queues["document"])
        if not (documents_wait and self._query_passes >= MAX_QUERY_PASSES):
            batch = self._take("query", self._max_queries)
            if batch:
                self._query_passes += 1
                return batch
        self._query_passes = 0
        batch = self._take("document", DOCUMENTS_A_PASS) if documents_wait else []
        self._is_reading_documents |= bool(batch)
        return batch or self._take("query", self._max_queries)

    def _take(self, role: Role, limit: int) -> list[_Text]:
        queue, batch = self._queues[role], list[_Text]()
        while queue and len(batch) < limit:
            text = queue.popleft()
            if not text.request.is_obsolete:
                batch.append(text)
        return batch


def _requests(batch: Iterable[_Text]) -> list[_Request]:
    """Return the requests of *batch* that have not failed yet."""
    return [
        request
        for request in dict.fromkeys(text.request for text in batch)
        if not request.has_failed
    ]
