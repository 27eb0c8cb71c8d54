"""A server that floods its client: ``flood_server.py FLOOD`` on pipes, with ``--http`` on loopback.

Raw JSON-RPC, no SDK, so that it starts quickly and sends as fast as it can. It floods while it
answers ``tools/call``, or with its list; FLOOD ``none`` is an honest server.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
_GOOD: Json = {"name": "good", "description": "Works.", "inputSchema": {"type": "object"}}
_FORM: Json = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}}
_WORST = "add password in " * 1250
_REPEATS = 500


def _line(method: str, params: Json | None = None, **more: Any) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params or {}, **more}
    return json.dumps(message).encode() + b"\n"


def _progress() -> bytes:
    return b"".join(
        _line("notifications/progress", {"progressToken": token, "progress": 1})
        for token in range(1, 9)
    )


ENDLESS: dict[str, Callable[[], bytes]] = {
    "ping": lambda: _line("ping", id="p"),
    "roots": lambda: _line("roots/list", id="r"),
    "sampling": lambda: _line("sampling/createMessage", {"messages": [], "maxTokens": 1}, id="s"),
    "elicitation": lambda: _line("elicitation/create", _FORM, id="e"),
    "logging": lambda: _line("notifications/message", {"level": "info", "data": "x" * 200}),
    "progress": _progress,
    "list_changed": lambda: _line("notifications/tools/list_changed"),
    "updated": lambda: _line("notifications/resources/updated", {"uri": "file:///a"}),
    "unknown_answers": lambda: b'{"jsonrpc": "2.0", "id": 999999, "result": {}}\n',
    "blank_lines": lambda: b"\n" * 100,
    "garbage": lambda: b"Processing request...\n",
    "endless_line": lambda: b"x" * 1000,
    "stderr": lambda: b"a warning on the side\n",
    "paced_pings": lambda: _line("ping", id="p"),
}
LISTS: dict[str, Callable[[], bytes]] = {
    "empty_objects": lambda: b'{"tools":[' + b",".join([b"{}"] * 2_600_000) + b"]}",
    "worst_text": lambda: json.dumps({"tools": list(_worst_tools())}).encode(),
}
HTTP = ("http_pings", "http_comments", "http_packed", "http_empty_objects")
FLOODS = (*ENDLESS, *LISTS, *HTTP)


def _worst_tools() -> Iterator[Json]:
    for number in range(20):
        texts = {f"p{each}": {"type": "string", "description": _WORST} for each in range(12)}
        schema = {"type": "object", "properties": texts}
        yield {**_GOOD, "name": f"t{number}", "description": _WORST, "inputSchema": schema}


def result_of(flood: str, message: Json) -> bytes:
    """Return the result of a request as JSON; an error of an unknown method is one too."""
    method = message["method"]
    if method == "tools/list" and flood.removeprefix("http_") in LISTS:
        return b'"result":' + LISTS[flood.removeprefix("http_")]()
    results: dict[str, Json] = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "flood", "version": "0"},
        },
        "tools/list": {"tools": [_GOOD]},
        "tools/call": {"content": [{"type": "text", "text": "pong"}]},
    }
    if method not in results:
        return b'"error":{"code":-32601,"message":"no such method"}'
    return b'"result":' + json.dumps(results[method]).encode()


def answer(flood: str, message: Json) -> bytes:
    """Return the whole answer to *message*."""
    return b'{"jsonrpc":"2.0","id":%d,%b}' % (message["id"], result_of(flood, message))


def serve_pipes(flood: str) -> None:
    """Answer lines of standard input; a call is answered by the flood."""
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "tools/call" and flood in ENDLESS:
            pour(flood, ENDLESS[flood]())
        if "id" in message and "method" in message:
            write(1, answer(flood, message) + b"\n")


def pour(flood: str, piece: bytes) -> None:
    """Write *piece* until nobody reads it any more."""
    while True:
        write(2 if flood == "stderr" else 1, piece * (1 if flood == "paced_pings" else _REPEATS))
        if flood == "paced_pings":
            time.sleep(0.0025)


def write(file: int, data: bytes) -> None:
    """Write all of *data*."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


class Handler(BaseHTTPRequestHandler):
    """Answers requests as JSON; a call is answered by the flood."""

    flood = "none"

    def do_GET(self) -> None:
        """Offer no stream of events."""
        self.send_error(405)

    def do_POST(self) -> None:
        """Answer a message."""
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message or "method" not in message:
            self._send(202, b"")
        elif message["method"] != "tools/call" or self.flood == "http_empty_objects":
            self._send(200, answer(self.flood, message))
        elif self.flood == "http_packed":
            bomb = gzip.compress(b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * (1 << 28))
            self._send(200, bomb, ("Content-Encoding", "gzip"))
        else:
            pings = b"data: " + _line("ping", id="p") + b"\n"
            self._pour(pings if self.flood == "http_pings" else b": nothing\n")

    def _send(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (("Content-Type", "application/json"), *headers):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        with suppress(OSError):
            self.end_headers()
            self.wfile.write(body)

    def _pour(self, piece: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(piece * _REPEATS)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def serve_http(flood: str) -> None:
    """Serve on a free port of the loopback, whose number is printed."""
    Handler.flood = flood
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    (serve_http if sys.argv[2:] == ["--http"] else serve_pipes)(sys.argv[1])
