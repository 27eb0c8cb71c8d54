"""Who asks, and what that allows: bearer tokens with scopes (RFC 6750), or anybody on loopback.

* A token is known by its SHA-256 alone, and compared with every one that there is in constant time.
* Two scopes are rights of this API; all others are those that entities ask for.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gateway.serve.api.problems import RefusedError

WRITE = "catalog:write"
"""Allows to add, change and remove entities."""
ADMIN = "catalog:admin"
"""Allows to rebuild the index, and to read what went wrong while it was built."""
EVERYTHING = "*"
"""Stands for every scope."""
_REALM = 'Bearer realm="gateway"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks."""

    name: str
    """For people; empty where nobody says."""
    scopes: frozenset[str]

    def may(self, right: str) -> bool:
        """Say whether a right of this API is theirs."""
        return right in self.scopes or EVERYTHING in self.scopes


NOBODY = Caller(name="", scopes=frozenset())
"""Who asks where nobody needs to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A bearer token that is accepted."""

    name: str
    digest: bytes
    """SHA-256 of the token: the token itself is kept nowhere."""
    scopes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, name: str, secret: str, scopes: Iterable[str] = ()) -> Token:
        """Accept *secret*."""
        return cls(name=name, digest=_digest(secret), scopes=frozenset(scopes))


OPERATOR = frozenset({WRITE, ADMIN})
"""What the server's own token allows, or anybody where none is needed: all rights, and no scope of
an entity."""


class Callers:
    """Tells who asks.

    Args:
        tokens: Who is known. Empty lets anybody in as the operator, which only loopback may.
    """

    def __init__(self, tokens: Sequence[Token] = ()) -> None:
        self._tokens = tuple(tokens)
        self._anybody = Caller(name="", scopes=OPERATOR)
        self._callers: Mapping[bytes, Caller] = {
            token.digest: Caller(name=token.name, scopes=token.scopes) for token in tokens
        }

    @property
    def open(self) -> bool:
        """Whether no token is needed."""
        return not self._tokens

    def who(self, authorization: str) -> Caller:
        """Tell who bears *authorization*, the header as it came.

        Raises:
            RefusedError: 401, if nobody does.
        """
        if not self._tokens:
            return self._anybody
        scheme, _, given = authorization.partition(" ")
        if scheme.casefold() != "bearer" or not given.strip():
            raise RefusedError(
                401,
                "token_missing",
                "send a bearer token: Authorization: Bearer …",
                headers={"WWW-Authenticate": _REALM},
            )
        digest = _digest(given.strip())
        found = [each for each in self._callers if secrets.compare_digest(each, digest)]
        if not found:
            raise RefusedError(
                401,
                "token_unknown",
                "this bearer token is not known here",
                headers={"WWW-Authenticate": f'{_REALM}, error="invalid_token"'},
            )
        return self._callers[found[0]]


def check(caller: Caller, right: str) -> None:
    """Refuse whoever lacks *right*; an empty one is everybody's.

    Raises:
        RefusedError: 403, naming the scope that is missing.
    """
    if right and not caller.may(right):
        raise RefusedError(
            403,
            "scope_missing",
            f"this needs a token with the scope {right!r}",
            headers={"WWW-Authenticate": f'{_REALM}, error="insufficient_scope", scope="{right}"'},
        )


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
