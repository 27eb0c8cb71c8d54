"""What a child process and the SDK say on the side goes to our log at DEBUG, never to a terminal.

The host's logging stays as it is: the filter looks only at records that come from sessions of
ours, which it knows by a context variable.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

log = logging.getLogger("gateway.upstream")

_SERVER: ContextVar[str] = ContextVar("gateway_upstream_server", default="")
_SILENCED = "httpx2"
"""Logs whole addresses, in which secrets may stand: dropped."""
_LOGGERS = (
    _SILENCED,
    "client",
    "mcp.client.auth.oauth2",
    "mcp.client.auth.utils",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "mcp.shared.jsonrpc_dispatcher",
)
_ADDRESS = re.compile(r"(https?://)(?:[^/\s@]*@)?([^/\s?#]*)\S*")
"""Of an address only scheme, host and port may be shown."""
_MAX_LINE_CHARS = 4096
_MIN_SECRET_CHARS = 6


@contextmanager
def redirect_sdk_logs(server: str) -> Iterator[None]:
    """Send what the SDK logs about *server* within this context to our own log at DEBUG.

    What it logs at DEBUG itself holds whole messages and is dropped.
    """
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_redirect)  # adding it again changes nothing
    token = _SERVER.set(server)
    try:
        yield
    finally:
        _SERVER.reset(token)


def _redirect(record: logging.LogRecord) -> bool:
    server = _SERVER.get()
    if server and record.name != _SILENCED and record.levelno >= logging.INFO:
        log.debug("%s: %s", server, _ADDRESS.sub(r"\1\2", record.getMessage()))
    return not server


def open_stderr_log(server: str, secrets: Iterable[str] = ()) -> TextIO:
    """Return a file for a child's standard error; its lines go to our log. The caller closes it.

    Args:
        server: Stands before each line.
        secrets: What is never written; short ones would hide half of every line and are ignored.
    """
    read, write = os.pipe()
    hidden = sorted({text for text in secrets if len(text) >= _MIN_SECRET_CHARS}, key=len)
    threading.Thread(
        target=_copy_lines, args=(server, read, hidden[::-1]), name=f"{server} stderr", daemon=True
    ).start()
    return os.fdopen(write, "w", encoding="utf-8")


def _copy_lines(server: str, descriptor: int, hidden: Sequence[str]) -> None:
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as lines:
        while line := lines.readline(_MAX_LINE_CHARS):
            for secret in hidden:
                line = line.replace(secret, "***")
            log.debug("%s: %s", server, line.rstrip())
