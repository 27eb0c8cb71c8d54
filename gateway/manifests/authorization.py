"""The key ``auth`` of a server in a configuration -> how it signs in.

``{"type": "oauth"}`` with the fields of `OAuth`, or ``{"type": "bearer", "token": "env:NAME"}``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import get_args

from gateway.errors import ConfigError
from gateway.mcp.oauth import OAuth, Where

_OAUTH_KEYS = frozenset(
    {"type", "scope", "client_id", "client_secret", "client_metadata_url", "callback_port", "store"}
)


def read_auth(
    name: str, entry: Mapping[str, object], expand: Callable[[str], str]
) -> tuple[OAuth | None, dict[str, str]]:
    """Give how the server of *entry* signs in, and the headers that say so by themselves.

    Args:
        name: Of the server, for messages.
        entry: The server's table in the configuration.
        expand: Gives what a text with references means.

    Raises:
        ConfigError: The key cannot be read.
    """
    auth = entry.get("auth")
    if auth is None:
        return None, {}
    kind = auth.get("type") if isinstance(auth, dict) else None
    if not isinstance(auth, dict) or kind not in {"oauth", "bearer"}:
        raise ConfigError(f'server {name!r}: auth must be an object of "type" oauth or bearer')
    if kind == "bearer":
        _check(name, auth, frozenset({"type", "token"}))
        token = _text(name, {"token": "", **auth}, "token", expand)
        return None, {"Authorization": f"Bearer {token}"}
    _check(name, auth, _OAUTH_KEYS)
    port = auth.get("callback_port", 0)
    if isinstance(port, bool) or not isinstance(port, int):
        raise ConfigError(f"server {name!r}: auth.callback_port must be a whole number")
    store = next((each for each in get_args(Where) if each == auth.get("store", "file")), None)
    if store is None:
        raise ConfigError(f"server {name!r}: auth.store must be file or keyring")
    text = partial(_text, name, auth, expand=expand)
    return OAuth(
        scope=text("scope"),
        client_id=text("client_id"),
        client_secret=text("client_secret"),
        client_metadata_url=text("client_metadata_url"),
        callback_port=port,
        store=store,
    ), {}


def _check(name: str, auth: Mapping[str, object], known: frozenset[str]) -> None:
    strange = sorted(set(auth) - known)
    if strange:
        raise ConfigError(f"server {name!r}: auth has an unknown key {strange[0]!r}")


def _text(name: str, auth: Mapping[str, object], key: str, expand: Callable[[str], str]) -> str:
    if key not in auth:
        return ""
    value = auth[key]
    if not isinstance(value, str) or not value:
        raise ConfigError(f"server {name!r}: auth.{key} must be a text that is not empty")
    return expand(value)
