"""Targets of servers: names, URLs, digests and OAuth settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.errors import ConfigError
from gateway.mcp import HttpServer, OAuth, StdioServer
from gateway.runtime.naming import check_server_name


@pytest.mark.parametrize("name", ["a", "My.Server_1-x", "x" * 64])
def test_server_name_of_letters_and_signs_is_accepted(name: str) -> None:
    assert name == check_server_name(name)


@pytest.mark.parametrize("name", ["", "a/b", "a b", "é", "x" * 65, "a\n"])
def test_invalid_server_name_is_refused(name: str) -> None:
    """The name is the part of an id before the slash."""
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
def test_error_about_an_invalid_url_omits_the_url(url: Any) -> None:
    """The URL may contain a secret key."""
    with pytest.raises(ConfigError, match=r"must look like http://host:port/path$"):
        HttpServer(url)


def test_fingerprint_of_a_url_is_stable() -> None:
    """With another fingerprint, every listing would be read again and every approval requested
    again.
    """
    server = HttpServer("http://h/p?\u00e9", {"A": "b", "\u00dc": "\ud800"})

    assert "8cf290ab8dcf4886" == server.launch[:16]
    assert "4131b3de28dc4dba" == server.fingerprint[:16]


def test_empty_command_is_refused() -> None:
    with pytest.raises(ConfigError, match="command is empty"):
        StdioServer(" ")


def test_repr_of_a_server_contains_no_secret() -> None:
    """Logs and tracebacks contain the `repr`."""
    http = HttpServer("https://me:s3cret@example.org:8/s3cret?k=s3cret", {"A": "s3cret"})
    stdio = StdioServer("run", ("--key", "s3cret"), {"KEY": "s3cret"})

    assert "s3cret" not in f"{http!r} {stdio!r} {http.origin}"
    assert "https://example.org:8" == http.origin


def test_fingerprint_covers_values_of_variables_and_launch_only_their_names() -> None:
    """Neither digest covers the secret of an OAuth client."""
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

    assert 8 == len({plain.launch, *(server.launch for server in others)})
    assert 9 == len({plain.fingerprint, turned.fingerprint, *(e.fingerprint for e in others)})
    assert plain.launch == turned.launch
    assert signing.launch == other.launch
    assert "s3cret" not in repr(signing)


@pytest.mark.parametrize(
    "variable", ["PYTHONPATH", "NODE_OPTIONS", "LD_PRELOAD", "PATH", "GIT_SSH_COMMAND", "OTHER"]
)
def test_approval_digest_covers_every_variable(variable: str) -> None:
    """The digest covers the value in the configuration file, which may be a reference to a
    secret.
    """
    empty = StdioServer("run")
    first_value, second_value = (
        StdioServer("run", env={variable: value}) for value in ("/one", "/second_value")
    )
    written = {variable: "${KEY}"}
    first, rotated = (
        StdioServer("run", env={variable: value}, written=written)
        for value in ("/one", "/second_value")
    )
    digests = [
        server.approval_digest(b"key") for server in (empty, first_value, second_value, first)
    ]

    assert 4 == len(set(digests))
    assert digests[3] == rotated.approval_digest(b"key")
    assert digests[1] != first_value.approval_digest(b"other key")
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
def test_invalid_oauth_settings_are_refused(options: dict[str, object], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        OAuth(**options)  # type: ignore[arg-type]  # on purpose
