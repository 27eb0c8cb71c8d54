"""What the host says of the use of its tools: whether they may be found, and by which callers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import get_args

from gateway.types.entities import DEFAULT_STATUSES, Status, search_text_of, texts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What the host says of the use of a tool, a server or all that a pattern names.

    Raises:
        TypeError: If a value is of another type; it says which.
    """

    status: Status | None = None
    """None leaves it as it is."""
    enabled: bool | None = None
    """A disabled tool is neither found nor called; None leaves it as it is."""
    tags: tuple[str, ...] = ()
    """Labels to filter by, added to those that are there."""
    scopes: frozenset[str] = frozenset()
    """A caller needs all of these, beside those that are needed already."""
    search_text: str = ""
    """What the search reads in place of the description of each of these; see `Hints`. Empty leaves
    it as it is."""
    examples: tuple[str, ...] = ()
    """Requests that each of these serves, added to those of its hints."""

    def __post_init__(self) -> None:
        """Check each value; any collection of texts will do."""
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
"""Changes nothing."""


def combine(parts: Iterable[Access]) -> Access:
    """Return *parts* as one: tags, scopes and examples add up, the rest later ones decide."""
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
    """Return *access* of a part, at least as closed as *whole*, of which it is a part."""
    if whole is NO_ACCESS_RULE:
        return access
    shown = {None, *DEFAULT_STATUSES}
    is_hidden = whole.status not in shown and access.status in shown
    return replace(
        access,
        status=whole.status if is_hidden else access.status,
        enabled=access.enabled if whole.enabled is not False else False,
        scopes=access.scopes | whole.scopes,
    )


def access_key(access: Access) -> tuple[object, ...]:
    """Return what tells *access* from another, written alike in every process."""
    scopes = sorted(access.scopes)
    return access.status, access.enabled, access.tags, scopes, access.search_text, access.examples
