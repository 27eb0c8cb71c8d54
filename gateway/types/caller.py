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
"""Key in `Caller.attributes` under which the name of the access token is stored."""


class Secret:
    """A text that is hidden in reprs, logs, JSON and pickles. Only `reveal` returns it."""

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
    """Id of the caller's organization, chosen by the host; empty without one. Suggestions learned
    from the calls of a tenant are only for this tenant."""
    scopes: frozenset[str] = frozenset()
    """Scopes that the caller was granted, as any collection of texts. ``*`` grants all."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Further facts about the caller for the host's own hooks, such as its approval function."""
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
        """Return *filters* with this caller's scopes, user and tenant added. None means the default
        filters.
        """
        filters = Filters() if filters is None else filters
        if not (self.scopes or self.user or self.tenant):
            return filters
        scopes = filters.scopes | self.scopes
        return replace(filters, scopes=scopes, user=self.user, tenant=self.tenant)


ANYONE = Caller()
"""An unknown caller, who sees only entities without required scopes."""
ACTOR: ContextVar[Caller] = ContextVar("actor", default=ANYONE)
"""Caller whose request is being handled. The audit log names it as the author of changes."""
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

    Sources should read the caller at once and pass it on, because a longer task inherits the caller
    of the request that started it.
    """
    return _CURRENT.get()


def filters_for(caller: Caller | None, kinds: Collection[Kind] = ("tool",)) -> Filters:
    """Return filters for the entities of *kinds* that *caller* may see. None is the host, who sees
    all.
    """
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
    """Return filters that keep only the caller and the kinds of *filters*: every entity of these
    kinds that the caller may see passes.
    """
    return replace(
        filters_for(None, filters.kinds),
        scopes=filters.scopes,
        user=filters.user,
        tenant=filters.tenant,
        unrestricted=filters.unrestricted,
    )
