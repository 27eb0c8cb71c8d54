"""JSON documents of services that the host configured."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from gateway.errors import ConfigError, GatewayError, UpstreamError
from gateway.mcp.json_fetch import fetch_json

fetch = partial(fetch_json, max_bytes=1000, timeout_s=60.0)


@contextmanager
def answering(body: bytes, *headers: str) -> Iterator[str]:
    """Answer one request with *body*; yield the URL."""
    head = "\r\n".join(["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers, "", ""])
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(head.encode() + body)

        done = pool.submit(answer)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        done.result(timeout=60)


@pytest.mark.parametrize(
    ("body", "headers", "message"),
    [
        (b"<html>", (), "did not send JSON"),
        (b"[" * 900, (), "did not send JSON"),
        (b"[" * 2000, (), "sent more than 1000 bytes"),
        (b"\x1f\x8b", ("Content-Encoding: gzip",), "did not send JSON"),
    ],
)
async def test_fetch_refuses_a_document_that_is_too_long_compressed_or_not_json(
    body: bytes, headers: tuple[str, ...], message: str
) -> None:
    """The size of a compressed document is unknown until it is decompressed."""
    with answering(body, *headers) as url, pytest.raises(UpstreamError, match=message):
        await fetch(url, configured=url)


async def test_fetch_returns_the_json_object_of_the_answer() -> None:
    with answering(b'{"a": [1]}') as url:
        assert {"a": [1]} == await fetch(url, configured=url)


@pytest.mark.parametrize(
    ("url", "configured", "error"),
    [
        ("http://idp.example/jwks", "http://idp.example", ConfigError),
        ("http://127.0.0.1:9/jwks", "https://idp.example", ConfigError),
        ("https://10.0.0.1/jwks", "https://idp.example", ConfigError),
        ("https://169.254.169.254/jwks", "https://169.254.169.254", ConfigError),
        ("http://127.0.0.1:1/jwks", "http://127.0.0.1:1", UpstreamError),
    ],
)
async def test_fetch_refuses_urls_that_are_not_allowed(
    url: str, configured: str, error: type[GatewayError]
) -> None:
    with pytest.raises(error):
        await fetch(url, configured=configured)
