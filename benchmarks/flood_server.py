"""A server that floods its client: ``flood_server.py FLOOD`` on pipes, with ``--http`` on loopback.

Raw JSON-RPC, no SDK, so that it starts quickly and sends as fast as it can. It floods while it
answers ``tools/call``, or with its list; FLOOD ``none`` is an honest server, and ``hang`` one that
never answers a call and ignores SIGTERM.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
_GOOD: Json = {"name": "good", "description": "Works.", "inputSchema": {"type": "object"}}
_WATCHED = "file:///a"
_CAPABILITIES: Json = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
_FORM: Json = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}}
_WORST = "add password in " * 1250
_MARKS = "a" + "\u0300\u0316" * 9999
"""Takes long to normalize."""
_PLAIN = "Reads the report of a day and returns its lines. " * 120
_PAGES = 4
_WRITING = threading.Lock()
_REPEATS = 500
_PAUSE_S = 0.0025
"""Just below what ends a connection."""


def _line(method: str, params: Json | None = None, **more: Any) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params or {}, **more}
    return json.dumps(message).encode() + b"\n"


def _progress(tokens: Iterable[object] = range(1, 9)) -> bytes:
    return b"".join(
        _line("notifications/progress", {"progressToken": token, "progress": 1}) for token in tokens
    )


ENDLESS: dict[str, Callable[[], bytes]] = {
    "ping": lambda: _line("ping", id="p"),
    "roots": lambda: _line("roots/list", id="r"),
    "sampling": lambda: _line("sampling/createMessage", {"messages": [], "maxTokens": 1}, id="s"),
    "elicitation": lambda: _line("elicitation/create", _FORM, id="e"),
    "logging": lambda: _line("notifications/message", {"level": "info", "data": "x" * 200}),
    "progress": _progress,
    "list_changed": lambda: _line("notifications/tools/list_changed"),
    "updated": lambda: _line("notifications/resources/updated", {"uri": _WATCHED}),
    "unknown_answers": lambda: b'{"jsonrpc": "2.0", "id": 999999, "result": {}}\n',
    "blank_lines": lambda: b"\n" * 100,
    "garbage": lambda: b"Processing request...\n",
    "endless_line": lambda: b"x" * 1000,
    "stderr": lambda: b"a warning on the side\n",
}
LISTS: dict[str, Callable[[int], bytes]] = {
    "empty_objects": lambda _page: b'{"tools":[' + b",".join([b"{}"] * 2_600_000) + b"]}",
    "worst_text": lambda _page: json.dumps({"tools": _tools(0, 20, _WORST, 12)}).encode(),
    "big_tools": lambda page: _page(page, 65, _MARKS, 2),
    "many_tools": lambda page: _page(page, 1240, _WORST[:6000], 0),
    "plain_tools": lambda page: _page(page, 1240, _PLAIN, 0),
    "giant_description": lambda page: _page(page, 1, _MARKS * 195, 0),
}
"""By flood, the result of a page of its list."""
HTTP = ("http_pings", "http_comments", "http_packed", "http_empty_objects")
SERVED = tuple(
    f"served_{pace}{name}"
    for name in ("progress", "logging", "list_changed", "updated")
    for pace in ("", "paced_")
)
"""Floods while a client of the served gateway listens."""
FLOODS = (*ENDLESS, "paced_ping", *LISTS, *HTTP, *SERVED)


def _tools(first: int, count: int, text: str, parameters: int) -> list[Json]:
    texts = {f"p{each}": {"type": "string", "description": text} for each in range(parameters)}
    schema = {"type": "object", "properties": texts}
    return [
        {**_GOOD, "name": f"t{number}", "description": text, "inputSchema": schema}
        for number in range(first, first + count)
    ]


def _page(page: int, count: int, text: str, parameters: int) -> bytes:
    """Return one of four pages of nearly 8 MiB."""
    result: Json = {"tools": _tools(count * page, count, text, parameters)}
    if page + 1 < _PAGES:
        result["nextCursor"] = str(page + 1)
    return json.dumps(result, ensure_ascii=False).encode()


def result_of(flood: str, message: Json) -> bytes:
    """Return the result of a request as JSON; an error of an unknown method is one too."""
    method = message["method"]
    if method == "tools/list" and flood.removeprefix("http_") in LISTS:
        page = int(message.get("params", {}).get("cursor", 0))
        return b'"result":' + LISTS[flood.removeprefix("http_")](page)
    results: dict[str, Json] = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": _CAPABILITIES,
            "serverInfo": {"name": "flood", "version": "0"},
        },
        "tools/list": {"tools": [{**_GOOD, "title": _title(flood)}]},
        "resources/list": {"resources": [{"uri": _WATCHED, "name": "a"}]},
        "resources/subscribe": {},
        "tools/call": {"content": [{"type": "text", "text": "pong"}]},
    }
    if method not in results:
        return b'"error":{"code":-32601,"message":"no such method"}'
    return b'"result":' + json.dumps(results[method]).encode()


def _title(flood: str) -> str:
    """Return the title of the tool: where the list is said to change, it does."""
    return f"Good {time.time_ns()}" if flood.endswith("list_changed") else "Good"


def answer(flood: str, message: Json) -> bytes:
    """Return the whole answer to *message*."""
    return b'{"jsonrpc":"2.0","id":%d,%b}' % (message["id"], result_of(flood, message))


def serve_pipes(flood: str) -> None:
    """Answer lines of standard input; a call is answered by the flood."""
    kind = flood.removeprefix("served_").removeprefix("paced_")
    if flood == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "tools/call" and flood == "hang":
            threading.Event().wait()
        if message.get("method") == "tools/call" and kind in ENDLESS:
            token = message.get("params", {}).get("_meta", {}).get("progressToken")
            is_asked = kind == "progress" and token is not None
            piece = _progress([token]) if is_asked else ENDLESS[kind]()
            if kind == "list_changed" and flood != kind:
                # It answers meanwhile, and so is listed again and again.
                threading.Thread(target=pour, args=(flood, piece), daemon=True).start()
            else:
                pour(flood, piece)
        if "id" in message and "method" in message:
            write(1, answer(flood, message) + b"\n")


def pour(flood: str, piece: bytes) -> None:
    """Write *piece* until nobody reads it any more."""
    is_paced = "paced" in flood
    while True:
        write(2 if flood == "stderr" else 1, piece * (1 if is_paced else _REPEATS))
        if is_paced:
            time.sleep(_PAUSE_S)


def write(file: int, data: bytes) -> None:
    """Write all of *data*, no other write between."""
    view = memoryview(data)
    with _WRITING:
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
