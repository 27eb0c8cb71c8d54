"""References to secrets, which configurations contain in place of the secrets.

``${NAME}`` and ``env:NAME`` refer to the environment, ``keyring:SERVICE/NAME`` to the system's
keyring.
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
    """Return ``env:NAME`` as ``${NAME}``, and other texts unchanged."""
    match = _ENV.fullmatch(text)
    return f"${{{match.group(1)}}}" if match else text


def from_keyring(text: str) -> str:
    """Return the secret to which *text*, ``keyring:SERVICE/NAME``, refers.

    Raises:
        ConfigError: If the reference is invalid, or the keyring does not contain the secret.
        MissingExtraError: If the package keyring is not installed.
    """
    service, _, name = text.removeprefix(_KEYRING).rpartition("/")
    if not service or not name:
        raise ConfigError(f"{text!r} is not a reference: write keyring:SERVICE/NAME")
    secret: str | None = _keyring("a keyring reference").get_password(service, name)
    if secret is None:
        raise ConfigError(f"the keyring has no {text!r}: put it there, or refer to another")
    return secret


def expand(text: str) -> str:
    """Return *text* with references replaced by their values.

    Raises:
        ConfigError: If a variable or a secret is missing.
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
    """Return JSON with variables of editors replaced, such as ``${workspaceFolder}``.

    Relative paths in ``envFile`` and ``openapi`` start at *folder*, the workspace.

    Raises:
        ConfigError: If only an editor can replace a variable, such as ``${input:key}``.
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
    """Return the variables in a file with lines ``NAME=value``, keyed by name.

    Raises:
        ConfigError: If the file cannot be read as text.
    """
    try:
        values = dotenv_values(stream=StringIO(path.read_text("utf-8-sig")), interpolate=False)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a UTF-8 text"
        raise ConfigError(f"envFile {str(path)!r} cannot be read: {reason}") from error
    return {name: value for name, value in values.items() if value is not None}


def check_reference(reference: object, *, owner: str) -> None:
    """Raise a `ConfigError` if *reference* is not a reference to a secret.

    A default value (``${NAME:-default}``) is not allowed, because it would be a secret in a file.
    """
    text = as_variable(reference) if isinstance(reference, str) else ""
    match = _VARIABLE.fullmatch(text)
    if not is_keyring(text) and (match is None or match.group(2) is not None):
        raise ConfigError(
            f"{owner} must refer to a secret: write ${{NAME}}, env:NAME or keyring:SERVICE/NAME"
        )


def read_secret(reference: str, *, owner: str) -> str:
    """Return the secret of a *reference* in the setting *owner*.

    Raises:
        ConfigError: If the reference is invalid, or the secret is missing.
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
    """A `TokenStore` in the system's keyring, under the name *key*.

    Raises:
        MissingExtraError: If the package keyring is not installed.
    """

    fault = ""

    def __init__(self, key: str) -> None:
        self._key = key
        self._ring = _keyring("a sign-in that is kept in the keyring")

    def read(self) -> str | None:
        """Return the stored text; None if missing."""
        text: str | None = self._ring.get_password(_SERVICE, self._key)
        return text

    def write(self, text: str) -> None:
        """Store *text*, which contains the tokens."""
        self._ring.set_password(_SERVICE, self._key, text)

    def forget(self) -> None:
        """Delete the stored text, if any."""
        if self.read() is not None:
            self._ring.delete_password(_SERVICE, self._key)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Yield without locking, because keyrings have no locks."""
        yield


def _keyring(feature: str) -> ModuleType:
    try:
        import keyring  # noqa: PLC0415  (an optional extra)
    except ImportError as error:
        raise MissingExtraError(feature, "keyring") from error
    return keyring


def literal_secrets(values: Mapping[str, object]) -> list[str]:
    """Return the names of values that are secrets instead of references."""
    return [
        name
        for name, value in values.items()
        if isinstance(value, str) and find_secret(name, value) is not None
    ]
