"""Secrets by reference: a configuration names them, and never holds them. The one home of keyring.

``${NAME}`` and ``env:NAME`` come from the environment, ``keyring:SERVICE/NAME`` from the system's
keyring.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import ModuleType

from gateway.errors import ConfigError, MissingExtraError
from gateway.options.environment import variables
from gateway.runtime.secret_scanner import find_secret

_KEYRING = "keyring:"
_SERVICE = "tool-gateway"
_ENV = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def is_keyring(text: str) -> bool:
    """Return whether *text* refers to the system's keyring."""
    return text.startswith(_KEYRING)


def as_variable(text: str) -> str:
    """Return ``env:NAME`` as ``${NAME}``, and anything else as it is."""
    found = _ENV.fullmatch(text)
    return f"${{{found.group(1)}}}" if found else text


def from_keyring(text: str) -> str:
    """Return the secret that *text*, ``keyring:SERVICE/NAME``, refers to.

    Raises:
        ConfigError: It is none, or there is no such secret.
        MissingExtraError: The package is not installed.
    """
    service, _, name = text.removeprefix(_KEYRING).rpartition("/")
    if not service or not name:
        raise ConfigError(f"{text!r} is no reference: write keyring:SERVICE/NAME")
    found: str | None = _keyring("a keyring reference").get_password(service, name)
    if found is None:
        raise ConfigError(f"the keyring has no {text!r}: put it there, or refer to another")
    return found


def expand(text: str) -> str:
    """Return *text* with its references replaced by what they stand for.

    Raises:
        ConfigError: It refers to what is not there.
    """
    if is_keyring(text):
        return from_keyring(text)
    text = as_variable(text)
    values = variables(frozenset(match.group(1) for match in _VARIABLE.finditer(text)))

    def value(match: re.Match[str]) -> str:
        variable, default = match.group(1), match.group(2)
        if values.get(variable):
            return values[variable]
        if default is None:
            raise ConfigError(
                f"it needs the environment variable {variable}: set it, "
                f"or write ${{{variable}:-default}}"
            )
        return default

    return _VARIABLE.sub(value, text)


def read_secret(reference: str, *, owner: str) -> str:
    """Return the secret of *owner* that *reference* names; a default would be a secret in a file.

    Raises:
        ConfigError: It is no reference, or refers to what is not there.
    """
    if is_keyring(reference):
        return from_keyring(reference)
    found = _VARIABLE.fullmatch(as_variable(reference))
    if found is None or found.group(2) is not None:
        raise ConfigError(
            f"{owner} must refer to a secret: write ${{NAME}}, env:NAME or keyring:SERVICE/NAME"
        )
    variable = found.group(1)
    secret = variables(frozenset({variable})).get(variable, "").strip()
    if not secret:
        raise ConfigError(f"{owner} needs the environment variable {variable}: set it")
    return secret


class KeyringTokens:
    """`gateway.mcp.servers.TokenStore` in the system's keyring.

    Args:
        key: Under which name.

    Raises:
        MissingExtraError: The package is not installed.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._ring = _keyring("a sign-in that is kept in the keyring")

    def read(self) -> str | None:
        """See `Tokens.read`."""
        text: str | None = self._ring.get_password(_SERVICE, self._key)
        return text

    def write(self, text: str) -> None:
        """See `Tokens.write`."""
        self._ring.set_password(_SERVICE, self._key, text)

    def forget(self) -> None:
        """See `Tokens.forget`."""
        if self.read() is not None:
            self._ring.delete_password(_SERVICE, self._key)


def _keyring(feature: str) -> ModuleType:
    try:
        import keyring  # noqa: PLC0415  (an optional extra)
    except ImportError as error:
        raise MissingExtraError(feature, "keyring") from error
    return keyring


def literal_secrets(values: Mapping[str, object]) -> list[str]:
    """Return the names of secrets in *values* that hold a text instead of a reference."""
    return [
        name
        for name, value in values.items()
        if isinstance(value, str) and find_secret(name, value) is not None
    ]
