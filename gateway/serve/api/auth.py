"""Bearer tokens with scopes (RFC 6750), and the TOML file that lists them.

* A token is kept as its SHA-256 alone, and compared with every known one in constant time.
* Two scopes are rights of this API; all others are scopes of entities.

[tokens.dashboard]
token = "${DASHBOARD_TOKEN}"
scopes = ["catalog:write", "billing"]
"""

from __future__ import annotations

import hashlib
import re
import secrets
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gateway.errors import ConfigError
from gateway.manifests.secrets import as_variable, from_keyring, is_keyring
from gateway.options.environment import variables
from gateway.serve.api.problems import RefusedError

WRITE = "catalog:write"
"""Allows to add, change and remove entities."""
ADMIN = "catalog:admin"
"""Allows to rebuild the index, and to read why a build failed."""
ALL_SCOPES = "*"
"""Stands for every scope."""
OPERATOR = frozenset({WRITE, ADMIN})
"""The scopes of the server's own token, and of every caller where no token is needed."""
MIN_SECRET_CHARS = 16
"""A shorter secret can be guessed."""
_REALM = 'Bearer realm="gateway"'
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCaller:
    """The sender of a request."""

    name: str = ""
    """The name of its token; empty without one."""
    scopes: frozenset[str] = frozenset()

    def has_scope(self, scope: str) -> bool:
        """Return whether the caller holds *scope*."""
        return scope in self.scopes or ALL_SCOPES in self.scopes

    def check_right(self, right: str) -> None:
        """Refuse a caller that lacks *right*; an empty right is granted to every caller.

        Raises:
            RefusedError: 403, naming the missing scope.
        """
        if right and not self.has_scope(right):
            raise _challenge(
                403,
                "scope_missing",
                f"this needs a token with the scope {right!r}",
                f', error="insufficient_scope", scope="{right}"',
            )


ANONYMOUS = ApiCaller()


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerToken:
    """A bearer token that is accepted."""

    name: str
    digest: bytes
    """SHA-256 of the token; the token itself is not kept."""
    scopes: frozenset[str] = frozenset()

    @classmethod
    def from_secret(cls, name: str, secret: str, scopes: Iterable[str] = ()) -> BearerToken:
        """Return the token of *secret*."""
        return cls(name=name, digest=_digest(secret), scopes=frozenset(scopes))


class Authenticator:
    """Finds the caller of a request by its bearer token.

    Args:
        tokens: The accepted tokens. Without any, every caller is the operator, which only a
            server on loopback may allow.
    """

    def __init__(self, tokens: Sequence[BearerToken] = ()) -> None:
        self.is_open = not tokens
        self._callers: Mapping[bytes, ApiCaller] = {
            token.digest: ApiCaller(name=token.name, scopes=token.scopes) for token in tokens
        }

    def authenticate(self, authorization: str) -> ApiCaller:
        """Return the caller that the header *authorization* names.

        Raises:
            RefusedError: 401, if the token is missing or unknown.
        """
        if self.is_open:
            return ApiCaller(scopes=OPERATOR)
        scheme, _, secret = authorization.partition(" ")
        if scheme.casefold() != "bearer" or not secret.strip():
            raise _challenge(401, "token_missing", "send a bearer token: Authorization: Bearer …")
        digest = _digest(secret.strip())
        matching = [known for known in self._callers if secrets.compare_digest(known, digest)]
        if not matching:
            raise _challenge(
                401,
                "token_unknown",
                "this bearer token is not known here",
                ', error="invalid_token"',
            )
        return self._callers[matching[0]]


def _challenge(status: int, code: str, detail: str, error: str = "") -> RefusedError:
    return RefusedError(status, code, detail, headers={"WWW-Authenticate": _REALM + error})


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


class _TokenEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    token: str = ""
    # RFC 6749, section 3.3.
    scopes: list[Annotated[str, Field(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]{1,128}$")]] = []


class _TokenFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    tokens: Annotated[dict[str, _TokenEntry], Field(min_length=1)]


def read_tokens(path: Path) -> tuple[BearerToken, ...]:
    """Read a file of tokens.

    Raises:
        ConfigError: It cannot be read, has another form, holds a secret instead of a reference, or
            refers to a missing secret.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        entries = _TokenFile.model_validate(table).tokens
    except ValidationError as error:
        fault = error.errors(include_input=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise ConfigError(
            f"{str(path)!r}: {place}: {fault['msg']}; write tables [tokens.NAME] "
            "with 'token' and 'scopes' alone"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from error
    tokens = tuple(
        BearerToken.from_secret(name, _read_secret(name, entry.token), entry.scopes)
        for name, entry in entries.items()
    )
    if len({token.digest for token in tokens}) < len(tokens):
        raise ConfigError(f"{str(path)!r}: two tokens are the same: give each its own secret")
    return tokens


def _read_secret(name: str, reference: str) -> str:
    if is_keyring(reference):
        secret = from_keyring(reference)
    else:
        variable = _VARIABLE.fullmatch(as_variable(reference))
        if variable is None:
            raise ConfigError(
                f"token {name!r}: 'token' must refer to a secret: "
                "write ${NAME}, env:NAME or keyring:SERVICE/NAME"
            )
        secret = variables(frozenset({variable[1]})).get(variable[1], "").strip()
        if not secret:
            raise ConfigError(
                f"token {name!r} needs the environment variable {variable[1]}: set it"
            )
    if len(secret) < MIN_SECRET_CHARS:
        raise ConfigError(f"token {name!r}: take at least {MIN_SECRET_CHARS} random characters")
    return secret
