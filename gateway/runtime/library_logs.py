"""Removal of secrets from the logs of HTTP and model libraries.

Their DEBUG records contain headers, complete addresses, messages and arguments. Within
`quiet_libraries`, records below WARNING are dropped, and addresses in other records are shortened
to scheme, host and port.
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
"""Loggers that libraries create at their first connection, after the filters are installed."""
_ALWAYS_DROPPED = re.compile(r"httpx2?")
"""Loggers whose records are all dropped, because they log each address at INFO."""
_ADDRESS = re.compile(r"(https?://)(?:[^/\s@]*@)?([^/\s?#]*)\S*")
_filtered = 0
"""Number of existing loggers when the filter was last added to them."""


@contextmanager
def quiet_libraries(work: str) -> Iterator[None]:
    """Remove secrets from the logs of libraries in this block, and in tasks that start in it.

    Records from WARNING on go to the gateway's own log at DEBUG, with the name of the *work*, such
    as a server. If *work* is empty, they stay in the libraries' loggers.
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
