"""Rules of the host: visibility of tools and servers, required scopes, and search hints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import get_args

from gateway.types.entities import DEFAULT_STATUSES, Status, search_text_of, texts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A rule of the host for a tool, a server, or all names that match a pattern.

    Raises:
        TypeError: If a value has the wrong type; the message names it.
    """

    status: Status | None = None
    """New status; None keeps the current one."""
    enabled: bool | None = None
    """False prevents finding and calling the tool; None keeps the current value."""
    tags: tuple[str, ...] = ()
    """Labels for filters, in addition to the existing ones."""
    scopes: frozenset[str] = frozenset()
    """Scopes that a caller needs, all of them, in addition to the existing ones."""
    search_text: str = ""
    """Text for searches in place of the description, as in `Hints`; empty keeps the current one."""
    examples: tuple[str, ...] = ()
    """Requests that the tool serves, in addition to the existing ones."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", texts_of(self, "tags", self.tags))
        object.__setattr__(self, "examples", texts_of(self, "examples", self.examples))
        object.__setattr__(self, "scopes", frozenset(texts_of(self, "scopes", self.scopes)))
        object.__setattr__(self, "search_text", search_text_of(self, self.search_text))
        if self.status is not None and self.status not in get_args(Status):
            choices = ", ".join(get_args(Status))
            raise TypeError(f"Access: status must be one of {choices}, got {self.status!r}")
        if self.enabled is not None and not isinstance(self.enabled, bool):
            raise TypeError(f"Access: enabled must be True or False, got {self.enabled!r}")


NO_ACCESS_RULE = Access()
"""A rule without effect."""


def combine(parts: Iterable[Access]) -> Access:
    """Merge rules: unite tags, scopes and examples, and use the last set value of other fields."""
    whole = NO_ACCESS_RULE
    for part in parts:
        if part is NO_ACCESS_RULE:
            continue
        whole = Access(
            status=whole.status if part.status is None else part.status,
            enabled=whole.enabled if part.enabled is None else part.enabled,
            tags=tuple(dict.fromkeys((*whole.tags, *part.tags))),
            scopes=whole.scopes | part.scopes,
            search_text=part.search_text or whole.search_text,
            examples=tuple(dict.fromkeys((*whole.examples, *part.examples))),
        )
    return whole


def limit(access: Access, whole: Access) -> Access:
    """Return the rule *access* of a tool, restricted by the rule *whole* of its server.

    Scopes are united. A tool of a disabled or hidden server is disabled or hidden too.
    """
    if whole is NO_ACCESS_RULE:
        return access
    visible = {None, *DEFAULT_STATUSES}
    is_hidden = whole.status not in visible and access.status in visible
    return replace(
        access,
        status=whole.status if is_hidden else access.status,
        enabled=access.enabled if whole.enabled is not False else False,
        scopes=access.scopes | whole.scopes,
    )


def access_key(access: Access) -> tuple[object, ...]:
    """Return the fields of a rule with the same repr in every process."""
    scopes = sorted(access.scopes)
    return access.status, access.enabled, access.tags, scopes, access.search_text, access.examples
