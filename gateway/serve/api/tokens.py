"""The file of bearer tokens: who may use the API, by name, with secrets by reference alone.

[tokens.dashboard]
token = "${DASHBOARD_TOKEN}"
scopes = ["catalog:write", "billing"]
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from gateway.errors import ConfigError
from gateway.manifests.secrets import as_variable, from_keyring, is_keyring
from gateway.options.environment import variables
from gateway.serve.api.callers import Token

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,128}")
"""RFC 6749, section 3.3."""
_KEYS = {"token", "scopes"}
MIN_SECRET = 16
"""Fewer characters can be guessed."""


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read a file of tokens.

    Raises:
        ConfigError: It cannot be read, says something that is not understood, holds a secret as it
            is, or refers to one that is not there.
    """
    try:
        whole = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from error
    table = whole.get("tokens")
    if not isinstance(table, dict) or not table or whole.keys() != {"tokens"}:
        raise ConfigError(f"{str(path)!r} needs tables [tokens.NAME], and nothing else")
    tokens = tuple(_token(name, entry) for name, entry in table.items())
    if len({token.digest for token in tokens}) < len(tokens):
        raise ConfigError(
            f"{str(path)!r}: two tokens are the same, so nobody could tell them apart"
        )
    return tokens


def _token(name: str, entry: object) -> Token:
    if not isinstance(entry, dict) or not _KEYS.issuperset(entry):
        raise ConfigError(f"token {name!r}: it has 'token' and 'scopes', and nothing else")
    scopes = entry.get("scopes", [])
    if not isinstance(scopes, list) or not all(
        isinstance(each, str) and _SCOPE.fullmatch(each) for each in scopes
    ):
        raise ConfigError(f"token {name!r}: 'scopes' must be a list of words")
    secret = _secret(name, entry.get("token"))
    if len(secret) < MIN_SECRET:
        raise ConfigError(f"token {name!r}: take at least {MIN_SECRET} random characters")
    return Token.of(name, secret, scopes)


def _secret(name: str, reference: object) -> str:
    text = reference if isinstance(reference, str) else ""
    if is_keyring(text):
        return from_keyring(text)
    found = _VARIABLE.fullmatch(as_variable(text))
    if found is None:
        raise ConfigError(
            f"token {name!r}: 'token' must refer to a secret: "
            "write ${NAME}, env:NAME or keyring:SERVICE/NAME"
        )
    secret = variables(frozenset({found[1]})).get(found[1], "").strip()
    if not secret:
        raise ConfigError(f"token {name!r} needs the environment variable {found[1]}: set it")
    return secret
