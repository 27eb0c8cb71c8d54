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
_TELLING = ("httpx2",)
"""Say whole addresses, in which secrets may stand: not heard at all."""
_LOGGERS = (
    *_TELLING,
    "client",
    "mcp.client.auth.oauth2",
    "mcp.client.auth.utils",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "mcp.shared.jsonrpc_dispatcher",
)
_ADDRESS = re.compile(r"(https?://)(?:[^/\s@]*@)?([^/\s?#]*)\S*")
"""Of an address only scheme, host and port may be shown."""
_LINE_CHARS = 4096
_SECRET_CHARS = 6


@contextmanager
def quietly(server: str) -> Iterator[None]:
    """Send what the SDK logs about *server* within this context to our own log at DEBUG.

    What it logs at DEBUG itself holds whole messages and goes nowhere.
    """
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_aside)  # adding it again changes nothing
    token = _SERVER.set(server)
    try:
        yield
    finally:
        _SERVER.reset(token)


def _aside(record: logging.LogRecord) -> bool:
    server = _SERVER.get()
    if server and record.name not in _TELLING and record.levelno >= logging.INFO:
        log.debug("%s: %s", server, _ADDRESS.sub(r"\1\2", record.getMessage()))
    return not server


def stderr_log(server: str, secrets: Iterable[str] = ()) -> TextIO:
    """Give a file for a child's standard error; its lines go to our log. The caller closes it.

    Args:
        server: Stands before each line.
        secrets: What is never written; short ones would hide half of every line and are ignored.
    """
    read, write = os.pipe()
    hidden = sorted({each for each in secrets if len(each) >= _SECRET_CHARS}, key=len, reverse=True)
    threading.Thread(
        target=_relay, args=(server, read, hidden), name=f"{server} stderr", daemon=True
    ).start()
    return os.fdopen(write, "w", encoding="utf-8")


def _relay(server: str, descriptor: int, hidden: Sequence[str]) -> None:
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as lines:
        while line := lines.readline(_LINE_CHARS):
            for secret in hidden:
                line = line.replace(secret, "***")
            log.debug("%s: %s", server, line.rstrip())
