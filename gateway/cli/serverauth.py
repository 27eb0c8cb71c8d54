"""How a server that is added signs in: what somebody typed -> the key ``auth`` of our file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gateway.errors import InvalidRequestError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|env:[A-Za-z_][A-Za-z0-9_]*|keyring:.+/.+")
_SETTINGS = (
    "callback_port",
    "client_id",
    "client_metadata_url",
    "client_secret",
    "scope",
    "store",
)


def auth_of(
    *, url: str, bearer_env: str, oauth: bool, settings: Sequence[str]
) -> dict[str, object] | None:
    """Give the key ``auth``; None if nothing was asked for.

    Args:
        url: Where the server is; a program signs in nowhere.
        bearer_env: The variable that holds a token.
        oauth: Whether it signs in by OAuth.
        settings: ``KEY=VALUE`` of `gateway.mcp.oauth.OAuth`.

    Raises:
        InvalidRequestError: They do not go together, or are not written as they must be.
    """
    if not (bearer_env or oauth or settings):
        return None
    if not url:
        raise InvalidRequestError("only an address signs in: give --url")
    if bearer_env and (oauth or settings):
        raise InvalidRequestError("a server takes --bearer-env or --oauth, not both")
    if bearer_env:
        if not _NAME.fullmatch(bearer_env):
            raise InvalidRequestError("--bearer-env takes the name of a variable, not a token")
        return {"type": "bearer", "token": f"env:{bearer_env}"}
    return {"type": "oauth", **dict(map(_setting, settings))}


def _setting(given: str) -> tuple[str, object]:
    key, between, value = (part.strip() for part in given.partition("="))
    if key not in _SETTINGS or not between or not value:
        raise InvalidRequestError(f"--oauth-set takes KEY=VALUE, KEY one of {', '.join(_SETTINGS)}")
    if key == "client_secret" and not _REFERENCE.fullmatch(value):
        raise InvalidRequestError(
            "client_secret is a reference such as env:NAME: what is typed stays in the history"
        )
    if key != "callback_port":
        return key, value
    if not value.isdecimal():
        raise InvalidRequestError("callback_port is a whole number")
    return key, int(value)
