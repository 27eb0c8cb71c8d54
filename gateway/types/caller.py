"""The caller of a search or a call: user, tenant, scopes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import get_args

from gateway.types.entities import Filters, Kind, Status, texts_of

ALL_SCOPES = "*"
"""A scope that includes all scopes."""
TOKEN = "token"  # noqa: S105  (the name of an attribute)
"""Key of the access token's name in `Caller.attributes`."""


class Secret:
    """A text that is hidden in reprs, logs, JSON and pickles."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> str:
        raise TypeError("a Secret is never written anywhere")

    def reveal(self) -> str:
        """Return the text."""
        return self._text


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The user for whom a search, a list or a call is made.

    Entities that a caller may not see are never found, listed, suggested, explained or called, and
    errors do not name them.

    Raises:
        TypeError: If a value has the wrong type; the message names it.

    Example:
        >>> from gateway.types import Caller
        >>> caller = Caller(user="ada", tenant="acme", scopes={"mail"})
        >>> caller.holds({"mail"})
        True
    """

    user: str = ""
    """Id of the user, chosen by the host; empty if unknown."""
    tenant: str = ""
    """Id of the caller's organization, chosen by the host, or empty. Suggestions learned from a
    tenant's calls are only for this tenant."""
    scopes: frozenset[str] = frozenset()
    """Granted scopes, as any collection of texts. ``*`` grants all."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Further facts for the host's own hooks, such as its approval function."""
    token: Secret | None = field(default=None, repr=False, compare=False)
    """Access token of the caller's request, for servers that exchange it (RFC 8693)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", frozenset(texts_of(self, "scopes", self.scopes)))
        for name in ("user", "tenant"):
            if not isinstance(value := getattr(self, name), str):
                raise TypeError(f"Caller: {name} must be a text, got {value!r}")
        attributes = self.attributes
        if not isinstance(attributes, Mapping) or not all(
            isinstance(text, str) for pair in attributes.items() for text in pair
        ):
            raise TypeError(f"Caller: attributes must map names to texts, got {attributes!r}")

    def holds(self, scopes: AbstractSet[str]) -> bool:
        """Return whether the caller has all of *scopes*."""
        return scopes <= self.scopes or ALL_SCOPES in self.scopes

    def filters(self, filters: Filters | None = None) -> Filters:
        """Return *filters* (None: the default) with this caller's scopes, user and tenant."""
        filters = Filters() if filters is None else filters
        if not (self.scopes or self.user or self.tenant):
            return filters
        scopes = filters.scopes | self.scopes
        return replace(filters, scopes=scopes, user=self.user, tenant=self.tenant)


ANYONE = Caller()
"""An unknown caller, without scopes."""
ACTOR: ContextVar[Caller] = ContextVar("actor", default=ANYONE)
"""Caller of the current request, whom the audit log names as the author of changes."""
_CURRENT: ContextVar[Caller] = ContextVar("gateway_caller", default=ANYONE)


@contextmanager
def acting_for(caller: Caller) -> Iterator[None]:
    """Make *caller* the current caller of all requests to sources in this block."""
    token = _CURRENT.set(caller)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_caller() -> Caller:
    """Return the caller set by `acting_for`, else `ANYONE`.

    Read the caller at once and pass it on, because a longer task keeps the caller that started it.
    """
    return _CURRENT.get()


def filters_for(caller: Caller | None, kinds: Collection[Kind] = ("tool",)) -> Filters:
    """Return filters for the *kinds* that *caller* may see. None is the host, who sees all."""
    if caller is not None:
        return caller.filters(Filters(kinds=frozenset(kinds)))
    return Filters(
        kinds=frozenset(kinds),
        statuses=frozenset(get_args(Status)),
        scopes=frozenset({ALL_SCOPES}),
        include_disabled=True,
        unrestricted=True,
    )


def all_seen_by(filters: Filters) -> Filters:
    """Return filters for all entities that the caller of *filters* may see, of the same kinds."""
    return replace(
        filters_for(None, filters.kinds),
        scopes=filters.scopes,
        user=filters.user,
        tenant=filters.tenant,
        unrestricted=filters.unrestricted,
    )
