"""Removal of secrets from the logs of libraries.

DEBUG records of HTTP and model libraries contain headers, complete addresses, messages and
arguments, and so secrets. Within `quiet_libraries`, records below WARNING are dropped, regardless
of levels. Addresses in other records are shortened to scheme, host and port. Records from outside
such a block are not changed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

log = logging.getLogger("gateway.upstream")
_WORK: ContextVar[str | None] = ContextVar("gateway_library_work", default=None)
_HTTP = ("httpcore", "httpcore2", "httpx", "httpx2")
_ROOTS = (*_HTTP, "client", "mcp", "openai", "sse_starlette", "urllib3", "uvicorn")
_PARTS = ("connection", "http11", "http2", "proxy", "socks")
_CONNECTIONS = tuple(f"{root}.{part}" for root in _HTTP[:2] for part in _PARTS)
"""Names of loggers that libraries create at their first connection, when the filters are already
installed."""
_ALWAYS_DROPPED = re.compile(r"httpx2?")
"""Names of loggers whose records are all dropped within `quiet_libraries`, because they log each
address at INFO."""
_ADDRESS = re.compile(r"(https?://)(?:[^/\s@]*@)?([^/\s?#]*)\S*")
_filtered = 0
"""Number of existing loggers when the filter was last added to them."""


@contextmanager
def quiet_libraries(work: str) -> Iterator[None]:
    """Remove secrets from the logs of libraries in this block, and in tasks that start in it.

    Args:
        work: Name of the work in the block, such as a server. Records from WARNING on then go to
            the gateway's own log at DEBUG. Empty keeps them in the libraries' loggers.
    """
    _add_filters()
    token = _WORK.set(work)
    try:
        yield
    finally:
        _WORK.reset(token)


def _add_filters() -> None:
    global _filtered  # noqa: PLW0603  (loggers are global too)
    loggers = logging.root.manager.loggerDict
    if len(loggers) == _filtered:
        return
    for name in (
        *_ROOTS,
        *_CONNECTIONS,
        *(logger for logger in loggers if logger.startswith(_ROOTS)),
    ):
        logging.getLogger(name).addFilter(_filter)  # idempotent
    _filtered = len(loggers)


def _filter(record: logging.LogRecord) -> bool:
    work = _WORK.get()
    if work is None:
        return True
    if record.levelno < logging.WARNING or _ALWAYS_DROPPED.fullmatch(record.name):
        return False
    text = _ADDRESS.sub(r"\1\2", record.getMessage())
    if work:
        log.debug("%s: %s", work, text)
        return False
    record.msg, record.args = text, None
    return True
