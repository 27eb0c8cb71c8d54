"""Another endpoint, over a real loopback server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from graphs.errors import QueryError
from graphs.rdf.federation import post

ANSWERS = {
    "/ok": (200, json.dumps({"results": {"bindings": []}})),
    "/list": (200, "[]"),
    "/html": (200, "<html>"),
    "/large": (200, " " * (16 * 1024 * 1024 + 1)),
    "/error": (500, ""),
    "/away": (302, ""),
}


class Endpoint(BaseHTTPRequestHandler):
    asked: list[str] = []  # noqa: RUF012  (a test's notebook)

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.asked.append(f"{self.path} {text}")
        status, body = ANSWERS[self.path]
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/ok")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (its own signature)
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Endpoint) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_a_query_is_posted_and_its_results_are_read(server: str) -> None:
    """As the SPARQL protocol says."""
    assert {"results": {"bindings": []}} == post(f"{server}/ok", "ASK { }", timeout_s=5)
    assert "/ok query=ASK+%7B+%7D" == Endpoint.asked[-1]


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/list", "answers no SPARQL results"),
        ("/html", "answers no JSON"),
        ("/large", "more than 16 MB"),
        ("/error", "does not answer"),
        ("/away", "does not answer"),
    ],
)
def test_whatever_else_comes_back_is_an_error(server: str, path: str, detail: str) -> None:
    """A redirect too: it may lead off the allow-list."""
    with pytest.raises(QueryError, match=detail):
        post(server + path, "ASK { }", timeout_s=5)

    assert Endpoint.asked[-1].startswith(path)


@pytest.mark.parametrize("endpoint", ["file:///etc/passwd", "ftp://e.org/x", "urn:x"])
def test_only_http_is_spoken(endpoint: str) -> None:
    """Even where the host named it."""
    with pytest.raises(QueryError, match="is no HTTP address"):
        post(endpoint, "ASK { }", timeout_s=5)


def test_nobody_there_is_told() -> None:
    """And is no empty answer."""
    with pytest.raises(QueryError, match="does not answer"):
        post("http://127.0.0.1:9/x", "ASK { }", timeout_s=5)
