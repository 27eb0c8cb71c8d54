"""Secrets by reference: a configuration names them, and never holds them. The one home of keyring.

``${NAME}`` and ``env:NAME`` come from the environment, ``keyring:SERVICE/NAME`` from the system's
keyring. The variables of editors and their files of variables are read here too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from types import ModuleType

from dotenv import dotenv_values

from gateway.errors import ConfigError, MissingExtraError
from gateway.options.environment import variables
from gateway.runtime.secret_scanner import find_secret

_KEYRING = "keyring:"
_SERVICE = "tool-gateway"
_ENV = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")

_EDITOR = re.compile(r"\$\{(workspaceFolder|workspaceFolderBasename|userHome|pathSeparator|/)\}")
_ONLY_EDITOR = re.compile(r"\$\{(?:input|command|config):[^}]*\}")


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


def with_editor_values(value: object, folder: Path) -> object:
    """Return JSON with the variables of editors replaced, such as ``${workspaceFolder}``.

    Args:
        value: An entry of a server.
        folder: The workspace. A relative ``envFile`` or ``openapi`` lies in it.

    Raises:
        ConfigError: It needs an editor, such as ``${input:key}``.
    """
    if isinstance(value, dict):
        members = {key: with_editor_values(item, folder) for key, item in value.items()}
        for key in ("envFile", "openapi"):
            file = members.get(key)
            if isinstance(file, str) and file and "://" not in file and not file.startswith("$"):
                members[key] = str(folder / file)
        return members
    if isinstance(value, list):
        return [with_editor_values(item, folder) for item in value]
    if not isinstance(value, str):
        return value
    if variable := _ONLY_EDITOR.search(value):
        raise ConfigError(
            f"only an editor can fill in {variable[0]}: write ${{NAME}} in its place, and set NAME"
        )
    values = {"workspaceFolder": str(folder), "workspaceFolderBasename": folder.name}
    values |= {"userHome": str(Path.home()), "pathSeparator": os.sep, "/": os.sep}
    return _EDITOR.sub(lambda match: values[match[1]], value)


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables in a file of lines ``NAME=value``.

    Raises:
        ConfigError: There is no such file, or it is no text.
    """
    try:
        values = dotenv_values(stream=StringIO(path.read_text("utf-8-sig")), interpolate=False)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text in UTF-8"
        raise ConfigError(f"envFile {str(path)!r} cannot be read: {reason}") from error
    return {name: value for name, value in values.items() if value is not None}


def check_reference(reference: object, *, owner: str) -> None:
    """Raise a `ConfigError` unless *reference* is one; a default would be a secret in a file."""
    text = as_variable(reference) if isinstance(reference, str) else ""
    found = _VARIABLE.fullmatch(text)
    if not is_keyring(text) and (found is None or found.group(2) is not None):
        raise ConfigError(
            f"{owner} must refer to a secret: write ${{NAME}}, env:NAME or keyring:SERVICE/NAME"
        )


def read_secret(reference: str, *, owner: str) -> str:
    """Return the secret of *owner* that *reference* names.

    Raises:
        ConfigError: It is no reference, or refers to what is not there.
    """
    check_reference(reference, owner=owner)
    if is_keyring(reference):
        return from_keyring(reference)
    variable = as_variable(reference)[2:-1].removeprefix("env:")
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

    fault = ""

    def __init__(self, key: str) -> None:
        self._key = key
        self._ring = _keyring("a sign-in that is kept in the keyring")

    def read(self) -> str | None:
        """See `TokenStore.read`."""
        text: str | None = self._ring.get_password(_SERVICE, self._key)
        return text

    def write(self, text: str) -> None:
        """See `TokenStore.write`."""
        self._ring.set_password(_SERVICE, self._key, text)

    def forget(self) -> None:
        """See `TokenStore.forget`."""
        if self.read() is not None:
            self._ring.delete_password(_SERVICE, self._key)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """See `TokenStore.lock`: a keyring has none."""
        yield


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
