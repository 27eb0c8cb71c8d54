"""The party that a search or a call is for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import get_args

from gateway.types.entities import Filters, Kind, Status, texts_of

ALL_SCOPES = "*"
"""Holds every scope."""


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
        """Return *filters*, None for the default ones, with the scopes of this caller."""
        filters = Filters() if filters is None else filters
        return replace(filters, scopes=filters.scopes | self.scopes) if self.scopes else filters


ANYONE = Caller()
"""A caller of whom nothing is known: it sees what needs no scope."""


def filters_for(caller: Caller | None, kinds: Collection[Kind] = ("tool",)) -> Filters:
    """Return the filters that let pass what *caller* may see; None is the host, which sees all."""
    if caller is not None:
        return caller.filters(Filters(kinds=frozenset(kinds)))
    return Filters(
        kinds=frozenset(kinds),
        statuses=frozenset(get_args(Status)),
        scopes=frozenset({ALL_SCOPES}),
        include_disabled=True,
    )
