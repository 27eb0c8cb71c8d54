"""How the templates write numbers, times and texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from graphs.facts.vocabulary import CONCEPT_BASE

MAX_SHOWN_CHARS = 2000
NOTHING = "\N{EN DASH}"
"""Stands for a number that is not known."""
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


def number(value: float | None) -> str:
    """Return *value* with groups of three; a dash for None."""
    if value is None:
        return NOTHING
    return (
        f"{value:,.2f}" if isinstance(value, float) and not value.is_integer() else f"{value:,.0f}"
    )


def percent(value: float | None) -> str:
    """Return a share of 0 to 1 as per cent; a dash for None."""
    return NOTHING if value is None else f"{100 * value:.1f} %"


def ms(seconds: float | None) -> str:
    """Return *seconds* as milliseconds; a dash for None."""
    return NOTHING if seconds is None else f"{1000 * seconds:,.1f} ms"


def span(seconds: float | None) -> str:
    """Return how long *seconds* are, in the largest whole unit; a dash for None."""
    if seconds is None:
        return NOTHING
    for unit, length in (("d", _DAY_S), ("h", _HOUR_S), ("min", _MINUTE_S)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def clip(text: object, limit: int = MAX_SHOWN_CHARS) -> str:
    """Return *text*, cut after *limit* characters with a note of how many are missing."""
    whole = str(text)
    missing = len(whole) - limit
    return whole if missing <= 0 else f"{whole[:limit]}… ({missing:,} more characters)"


def pretty(value: object) -> str:
    """Return *value* as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def path(text: str) -> str:
    """Return *text* as the part of an address that may hold slashes.

    Where it holds ``..`` as a step its slashes are escaped: a browser would take the step.
    """
    takes_steps = {".", ".."} & {*text.split("/")}
    return quote(text.encode("utf-8", "replace"), safe="" if takes_steps else "/")


def node(text: str) -> str:
    """Return the id of a node of the graph as people read it: a concept's without its namespace."""
    return text.removeprefix(CONCEPT_BASE)


FILTERS: Mapping[str, Callable[..., Any]] = {
    each.__name__: each for each in (number, percent, ms, span, clip, pretty, path, node)
}
"""The filters of the templates, by name."""
