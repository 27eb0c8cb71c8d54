"""What libraries log while they work for the gateway.

Their DEBUG lines hold headers, whole addresses, messages and arguments, and with them secrets.
Within `quiet_libraries` those lines are dropped, whatever the level of a logger or a handler, and
of addresses in other lines only scheme, host and port are left. Elsewhere nothing is touched: the
filter looks only at records that come from such a block.
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
"""Loggers that the first connection makes, when it is too late to look for them."""
_SILENT = re.compile(r"httpx2?")
"""Logs each address at INFO."""
_ADDRESS = re.compile(r"(https?://)(?:[^/\s@]*@)?([^/\s?#]*)\S*")
_filtered = 0
"""How many loggers there were when the filter was last added."""


@contextmanager
def quiet_libraries(work: str) -> Iterator[None]:
    """Keep what libraries log in this block, and in tasks that begin in it, free of secrets.

    Args:
        work: What they work for, such as the name of a server: what they log from WARNING on
            goes to our own log, at DEBUG. Empty leaves it with their own loggers.
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
    for name in (*_ROOTS, *_CONNECTIONS, *(each for each in loggers if each.startswith(_ROOTS))):
        logging.getLogger(name).addFilter(_filter)  # adding it again changes nothing
    _filtered = len(loggers)


def _filter(record: logging.LogRecord) -> bool:
    work = _WORK.get()
    if work is None:
        return True
    if record.levelno < logging.WARNING or _SILENT.fullmatch(record.name):
        return False
    text = _ADDRESS.sub(r"\1\2", record.getMessage())
    if work:
        log.debug("%s: %s", work, text)
        return False
    record.msg, record.args = text, None
    return True
