"""The file of tokens and identity providers."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import ConfigError
from gateway.serve.auth import caller_of_token, find_token
from gateway.serve.authenticator import read_token_file
from gateway.types import Caller

GOOD = """[tokens.ci]
token = "${CI_TOKEN}"
scopes = ["catalog:write", "billing"]
tenant = "acme"
user = "ada"
"""


def put(folder: Path, text: str) -> Path:
    path = folder / "tokens.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("reference", ["${CI_TOKEN}", "env:CI_TOKEN", "${env:CI_TOKEN}"])
def test_token_file_refers_to_the_secret_of_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str
) -> None:
    monkeypatch.setenv("CI_TOKEN", "0123456789abcdef ")
    (token,) = read_token_file(put(tmp_path, GOOD.replace("${CI_TOKEN}", reference)))["tokens"]

    caller = Caller(user="ada", tenant="acme", scopes=frozenset({"catalog:write", "billing"}))
    assert ("ci", caller) == (token.name, token.caller)
    assert caller == caller_of_token(token.to_user().access_token)
    assert token == find_token([token], "0123456789abcdef")
    assert None is find_token([token], "0123456789abcdeg")
    assert "0123456789abcdef" not in repr(token)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tokens", "cannot be read"),
        ("", "add 'tokens' or 'issuers'"),
        ("tokens = 1", "tokens must be an object"),
        ("other = 1\n" + GOOD, "unknown key 'other'"),
        (GOOD + "extra = 1", r"tokens\.ci: unknown key 'extra'"),
        (GOOD.replace("${CI_TOKEN}", "0123456789abcdef"), "must refer to a secret"),
        (
            GOOD.replace("${CI_TOKEN}", "${UNSET_TOKEN}"),
            "^token 'ci' needs the environment variable UNSET_TOKEN: set it$",
        ),
        (GOOD.replace("CI_TOKEN", "CI_TOKEN:-0123456789abcdef"), "must refer to a secret"),
        (GOOD.replace("${CI_TOKEN}", "${SHORT_TOKEN}"), "at least 16"),
        (GOOD.replace('"billing"', "1"), r"tokens\.ci\.scopes\[1\] must be a text"),
        (GOOD.replace("billing", "two words"), "should match pattern"),
        (GOOD.replace('["catalog:write", "billing"]', '"billing"'), "must be a list"),
        (GOOD + GOOD.replace("tokens.ci", "tokens.more"), "are the same"),
        ('[tokens.ci]\nscopes = ["a"]', "must refer to a secret"),
    ],
)
def test_invalid_token_file_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.setenv("CI_TOKEN", "0123456789abcdef")
    monkeypatch.setenv("SHORT_TOKEN", "0123")
    monkeypatch.delenv("UNSET_TOKEN", raising=False)

    with pytest.raises(ConfigError, match=message) as caught:
        read_token_file(put(tmp_path, text))
    assert "0123" not in str(caught.value)


def test_token_file_refers_to_the_client_secret_of_an_issuer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLIENT_SECRET", "of-the-client")
    text = """resource = "https://gw.example/mcp"
[issuers.a]
issuer = "https://idp.example"
[issuers.a.sign_in]
client_id = "browser"
client_secret = "${CLIENT_SECRET}"
"""
    (issuer,) = read_token_file(put(tmp_path, text))["issuers"]
    with pytest.raises(ConfigError, match="client_secret of issuer 'a' must refer") as refused:
        read_token_file(put(tmp_path, text.replace("${CLIENT_SECRET}", "of-the-client")))

    assert issuer.sign_in
    assert "of-the-client" == issuer.sign_in.client_secret
    assert "of-the-client" not in f"{issuer!r} {refused.value}"


def test_missing_token_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml"):
        read_token_file(tmp_path / "none.toml")
