"""Detection of secrets in configurations and texts."""

from __future__ import annotations

import pytest

from gateway.runtime.secret_scanner import (
    find_in_arguments,
    find_secret,
    looks_random,
    redact,
    sounds_secret,
)

TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    "name",
    ["API_KEY", "apiKey", "GITHUB_TOKEN", "X-Api-Key", "Authorization", "db_password", "PASSWORD"],
)
def test_sounds_secret_accepts_names_of_secrets(name: str) -> None:
    assert sounds_secret(name)


@pytest.mark.parametrize(
    "name", ["MAX_TOKENS", "KEYBOARD", "AUTHOR", "KEY_PATH", "TOKEN_URL", "AWS_ACCESS_KEY_ID", ""]
)
def test_sounds_secret_rejects_other_names(name: str) -> None:
    """Parts of words do not count."""
    assert not sounds_secret(name)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("API_KEY", "abc", "abc"),
        ("Authorization", "Bearer abc.def", "abc.def"),
        ("X-Whatever", "token abc", "abc"),
        ("ANY", TOKEN, TOKEN),
        ("ANY", f"Basic {TOKEN}", TOKEN),
        ("DATABASE_URL", "postgres://me:p4ss@h/db", "p4ss"),
        ("url", "https://h/mcp?x=1&api_key=abc#f", "abc"),
        ("ANY", "eyJhbGciOiJ9.eyJzdWIiOiIx.c2ln", "eyJhbGciOiJ9.eyJzdWIiOiIx.c2ln"),
    ],
)
def test_find_secret_returns_only_the_secret_part(name: str, value: str, secret: str) -> None:
    span = find_secret(name, value)

    assert span is not None
    assert secret == value[slice(*span)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "${API_KEY}"),
        ("API_KEY", "env:API_KEY"),
        ("API_KEY", "keyring:a/b"),
        ("USE_AUTH", "true"),
        ("TOKEN", "4096"),
        ("TOKEN", ""),
        ("MODEL", "gpt-5.4-mini"),
        ("url", "https://h:8080/mcp?page=2"),
    ],
)
def test_find_secret_ignores_references_and_settings(name: str, value: str) -> None:
    assert find_secret(name, value) is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--token", "abc"], [(1, "token", "abc")]),
        (["--token=abc", "x"], [(0, "token", "abc")]),
        (["run", "-e", "API_KEY=abc", "image"], [(2, "API_KEY", "abc")]),
        (["--header", "Authorization: Bearer abc"], [(1, "Authorization", "abc")]),
        (["--dsn", "postgres://me:p4ss@h/db"], [(1, "dsn", "p4ss")]),
        (["-y", "some-server", TOKEN], [(2, "", TOKEN)]),
        (["--token", "--verbose", "abc", "https://h/a=b"], []),
        (["--token-file", "/run/x", "a: b"], []),
    ],
)
def test_find_in_arguments_recognizes_secrets_by_flags_and_names(
    arguments: list[str], expected: list[tuple[int, str, str]]
) -> None:
    assert expected == [
        (place, name, arguments[place][slice(*span)])
        for place, name, span in find_in_arguments(arguments)
    ]


def test_looks_random_detects_random_values() -> None:
    assert [True, False, False, False] == [
        looks_random(value)
        for value in ("aB3" * 9, "${" + "aB3" * 9 + "}", "just-a-long-lower-case-name-1", "aB3")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"use {TOKEN} and {TOKEN} for the hub", "use [redacted] and [redacted] for the hub"),
        ("open postgres://me:p4ss@h/db now", "open postgres://me:[redacted]@h/db now"),
        ("log in, password: hunter2 please", "log in, password: [redacted] please"),
        ("my api_key=abc and ${NAME}", "my api_key=[redacted] and ${NAME}"),
        ("the password is hunter2", "the password is [redacted]"),
        (f"try {'aB3' * 9}", "try [redacted]"),
        ("reset the password of Ada: today", "reset the password of Ada: today"),
        ("", ""),
    ],
)
def test_redact_replaces_all_secrets_in_a_text(text: str, expected: str) -> None:
    assert expected == redact(text)
