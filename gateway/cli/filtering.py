"""What the options of a command say of who may be found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from gateway.errors import InvalidRequestError
from gateway.types import Filters, Status


def statuses_of(words: Sequence[str]) -> frozenset[Status]:
    """Read statuses.

    Raises:
        InvalidRequestError: If there is no such one.
    """
    known: dict[str, Status] = {each: each for each in get_args(Status)}
    if unknown := sorted({*words} - known.keys()):
        raise InvalidRequestError(f"status {unknown[0]!r} is none of {', '.join(known)}")
    return frozenset(known[word] for word in words)


def filters_of(
    kinds: Sequence[str] | None, tags: Sequence[str] | None, statuses: Sequence[str] | None
) -> Filters:
    """Give what the options of a search let pass; without any, active tools.

    Raises:
        InvalidRequestError: If a status is unknown.
    """
    plain = Filters()
    return Filters(
        kinds=frozenset(kinds or plain.kinds),
        tags=frozenset(tags or ()),
        statuses=statuses_of(statuses) if statuses else plain.statuses,
    )
