"""Names and addresses of servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.errors import ConfigError
from gateway.mcp import HttpServer, OAuth, StdioServer
from gateway.runtime.naming import check_server_name


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


def test_the_fingerprint_of_an_address_is_that_of_earlier_releases() -> None:
    """By another one every list would be read again, and every approval asked for again."""
    server = HttpServer("http://h/p?\u00e9", {"A": "b", "\u00dc": "\ud800"})

    assert "8cf290ab8dcf4886" == server.launch[:16]
    assert "4131b3de28dc4dba" == server.fingerprint[:16]


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
    """The values of variables count for the one and not for the other; a client's secret for
    neither.
    """
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
    signing, other = (
        HttpServer("https://run", auth=OAuth(client_id="me", client_secret=secret))
        for secret in ("s3cret", "other")
    )
    others.append(signing)

    assert 8 == len({plain.launch, *(each.launch for each in others)})
    assert 9 == len({plain.fingerprint, turned.fingerprint, *(e.fingerprint for e in others)})
    assert plain.launch == turned.launch
    assert signing.launch == other.launch
    assert "s3cret" not in repr(signing)


@pytest.mark.parametrize(
    "variable", ["PYTHONPATH", "NODE_OPTIONS", "LD_PRELOAD", "PATH", "GIT_SSH_COMMAND", "OTHER"]
)
def test_what_is_approved_has_every_variable_in_it(variable: str) -> None:
    """A value that the file holds counts; of a reference only the reference does."""
    empty = StdioServer("run")
    one, two = (StdioServer("run", env={variable: value}) for value in ("/one", "/two"))
    written = {variable: "${KEY}"}
    first, rotated = (
        StdioServer("run", env={variable: value}, written=written) for value in ("/one", "/two")
    )
    digests = [each.approval_digest(b"key") for each in (empty, one, two, first)]

    assert 4 == len(set(digests))
    assert digests[3] == rotated.approval_digest(b"key")
    assert digests[1] != one.approval_digest(b"other key")
    assert empty.launch == digests[0]


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
