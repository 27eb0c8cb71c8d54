"""Names and addresses of servers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ConfigError
from gateway.mcp.naming import check_server_name
from gateway.mcp.servers import HttpServer, OAuth, StdioServer


@pytest.mark.parametrize("name", ["a", "My.Server_1-x", "x" * 64])
def test_a_plain_name_is_a_server_name(name: str) -> None:
    """It becomes the first half of every id."""
    assert name == check_server_name(name)


@pytest.mark.parametrize("name", ["", "a/b", "a b", "é", "x" * 65, "a\n"])
def test_other_names_are_refused(name: str) -> None:
    """A slash would make two servers out of one id."""
    with pytest.raises(ConfigError, match="1 to 64 letters"):
        check_server_name(name)


@pytest.mark.parametrize(
    "url",
    [
        None,
        1,
        "",
        "mcp",
        "ftp://h/x",
        "http://",
        "http://h:port/",
        "http://[::1",
        "http://h:99999/",
    ],
)
def test_an_address_that_cannot_be_one_is_refused_without_being_shown(url: Any) -> None:
    """It may hold a key."""
    with pytest.raises(ConfigError, match=r"must look like http://host:port/path$"):
        HttpServer(url)


_TEXTS = st.text(st.characters(exclude_categories=()), max_size=4)


@given(_TEXTS, st.dictionaries(_TEXTS, _TEXTS, max_size=2))
def test_the_fingerprint_of_an_address_is_that_of_earlier_releases(
    path: str, headers: dict[str, str]
) -> None:
    """By another one every list would be read again, and every approval asked for again."""

    def digest(*parts: object) -> str:
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    server = HttpServer(f"http://h/{path}", headers)
    marked = sorted((name, digest(value)[:8]) for name, value in headers.items())

    assert digest("http", server.url, sorted(headers)) == server.launch
    assert digest(server.launch, marked) == server.fingerprint


def test_an_empty_command_is_refused() -> None:
    """The operating system's own message names nothing."""
    with pytest.raises(ConfigError, match="command is empty"):
        StdioServer(" ")


def test_no_secret_is_in_what_a_log_would_show() -> None:
    """Option objects end in logs and tracebacks."""
    http = HttpServer("https://me:s3cret@example.org:8/s3cret?k=s3cret", {"A": "s3cret"})
    stdio = StdioServer("run", ("--key", "s3cret"), {"KEY": "s3cret"})

    assert "s3cret" not in f"{http!r} {stdio!r} {http.origin}"
    assert "https://example.org:8" == http.origin


def test_a_fingerprint_tells_configurations_apart_and_a_launch_what_would_run() -> None:
    """The values of variables count for the one and not for the other."""
    plain = StdioServer("run", ("-v",), {"KEY": "one"})
    others: list[StdioServer | HttpServer] = [
        StdioServer("ran", ("-v",), {"KEY": "one"}),
        StdioServer("run", ("-w",), {"KEY": "one"}),
        StdioServer("run", ("-v",), {"KEY": "one"}, Path("/work")),
        StdioServer("run", ("-v",), {"KEYS": "one"}),
        HttpServer("https://run"),
        HttpServer("https://run", {"KEY": "one"}),
    ]
    turned = StdioServer("run", ("-v",), {"KEY": "two"})

    assert 7 == len({plain.launch, *(each.launch for each in others)})
    assert 8 == len({plain.fingerprint, turned.fingerprint, *(e.fingerprint for e in others)})
    assert plain.launch == turned.launch


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"client_metadata_url": "http://a/b"}, "https address with a path"),
        ({"client_metadata_url": "https://a/"}, "https address with a path"),
        ({"client_secret": "x"}, "goes with a client_id"),
        ({"callback_port": 70000}, "between 0 and 65535"),
        ({"store": "cloud"}, "file or keyring"),
    ],
)
def test_what_no_server_would_take_is_refused_at_once(
    options: dict[str, object], fault: str
) -> None:
    """Where it is written, not where it fails."""
    with pytest.raises(ConfigError, match=fault):
        OAuth(**options)  # type: ignore[arg-type]  # on purpose


def test_a_sign_in_is_part_of_what_is_pinned_and_its_secret_is_not() -> None:
    """Another client is another configuration; a file with the tokens tells no secret."""
    url = "https://a/mcp"
    plain = HttpServer(url)
    signing, other = (
        HttpServer(url, auth=OAuth(client_id="me", client_secret=secret))
        for secret in ("s3cret", "other")
    )

    assert 3 == len({plain.launch, signing.launch, HttpServer("https://b/mcp").launch})
    assert signing.launch == other.launch
    assert "s3cret" not in repr(signing)
