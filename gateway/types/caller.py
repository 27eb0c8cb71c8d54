"""The party that a search or a call is for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import get_args

from gateway.types.entities import Filters, Kind, Status, texts_of

ALL_SCOPES = "*"
"""Holds every scope."""
TOKEN = "token"  # noqa: S105  (the name of an attribute)
"""The attribute of a `Caller` that names its access token."""


class Secret:
    """A text that no repr, log, copy as JSON or pickle shows; only `reveal` returns it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        """Return that there is something."""
        return "Secret(…)"

    def __reduce__(self) -> str:
        """Refuse to be pickled."""
        raise TypeError("a Secret is never written anywhere")

    def reveal(self) -> str:
        """Return the text."""
        return self._text


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What the host knows of the party that asks. It travels with every search, list and call.

    What it may not see cannot be found, listed, suggested, explained or called, and is named in no
    error.

    Raises:
        TypeError: If a value is of another type; it says which.
    """

    user: str = ""
    """The host's label of the user; empty if unknown."""
    tenant: str = ""
    """The host's label of the tenant. What its calls taught is suggested to no other."""
    scopes: frozenset[str] = frozenset()
    """The scopes that it holds; any collection of texts will do. ``*`` is every scope."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """What else the host's own hooks decide by, such as its approval."""
    token: Secret | None = field(default=None, repr=False, compare=False)
    """The access token that it came with, if a server wants one in exchange (RFC 8693)."""

    def __post_init__(self) -> None:
        """Check each value; the scopes become a frozen set."""
        object.__setattr__(self, "scopes", frozenset(texts_of(self, "scopes", self.scopes)))
        for name in ("user", "tenant"):
            if not isinstance(value := getattr(self, name), str):
                raise TypeError(f"Caller: {name} must be a text, got {value!r}")
        attributes = self.attributes
        if not isinstance(attributes, Mapping) or not all(
            isinstance(text, str) for pair in attributes.items() for text in pair
        ):
            raise TypeError(f"Caller: attributes must be texts by name, got {attributes!r}")

    def holds(self, scopes: AbstractSet[str]) -> bool:
        """Return whether it holds all of *scopes*."""
        return scopes <= self.scopes or ALL_SCOPES in self.scopes

    def filters(self, filters: Filters | None = None) -> Filters:
        """Return *filters*, None for the default ones, with the scopes of this caller, its user and
        its tenant.
        """
        filters = Filters() if filters is None else filters
        if not (self.scopes or self.user or self.tenant):
            return filters
        scopes = filters.scopes | self.scopes
        return replace(filters, scopes=scopes, user=self.user, tenant=self.tenant)


ANYONE = Caller()
"""A caller of whom nothing is known: it sees what needs no scope."""
ACTOR: ContextVar[Caller] = ContextVar("actor", default=ANYONE)
"""The party whose request is being served, which makes a change."""
_CURRENT: ContextVar[Caller] = ContextVar("gateway_caller", default=ANYONE)


@contextmanager
def acting_for(caller: Caller) -> Iterator[None]:
    """Make what sources are asked in the block be asked for *caller*."""
    token = _CURRENT.set(caller)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_caller() -> Caller:
    """Return the caller that a source is asked for; `ANYONE` outside of `acting_for`.

    To be read by the code that is asked, and passed on: tasks that outlive a request inherit it.
    """
    return _CURRENT.get()


def filters_for(caller: Caller | None, kinds: Collection[Kind] = ("tool",)) -> Filters:
    """Return the filters that let pass what *caller* may see; None is the host, which sees all."""
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
    """Return filters that let pass all of the kinds of *filters* that their caller may see."""
    return replace(
        filters_for(None, filters.kinds),
        scopes=filters.scopes,
        user=filters.user,
        tenant=filters.tenant,
        unrestricted=filters.unrestricted,
    )
