"""What every page of the console is made of: routes, what a request brings, what a page answers.

* A page is a class whose methods are marked by `page`; its data is one frozen dataclass, which the
  template shows and ``?format=json`` gives as it is.
* Every URL is a whole page that needs no script; a script only picks parts of it.

How the templates write numbers, times and texts.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MethodType
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from starlette.datastructures import ImmutableMultiDict
from starlette.responses import Response

from gateway.serve.console.spans import SpanRing
from gateway.serve.guard import CONSOLE
from gateway.types import Caller
from graphs.facts.vocabulary import CONCEPT_BASE

Texts: TypeAlias = "ImmutableMultiDict[str, str]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOptions:
    """The files that the console reads and writes. Without one, what needs it is not offered."""

    config: Path | None = None
    """The ``mcp.json`` that the gateway was started with."""
    requests: Path | None = None
    """Where test requests are saved, as `gateway.plugins.quality.requests` reads them."""
    reports: Path | None = None
    """The folder of evaluation reports."""
    documents: Path | None = None
    """The folder of the host's own graph documents."""
    spans: SpanRing | None = None
    """The last spans of the process; whoever makes it adds it to the tracer provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An entry of the navigation: the class of each page has one as ``place``."""

    title: str
    path: str
    """Below `CONSOLE`."""
    right: str = ""
    """Without it the entry is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request of a browser, after all checks."""

    caller: Caller
    path: dict[str, str]
    """The parts of the path, by name."""
    query: Texts
    """The parameters of the address."""
    form: Texts
    """The fields of the sent form; empty for a GET."""
    session: str
    """The id of the session; never shown."""
    address: str = ""
    """Of the server as the browser reached it, such as ``http://127.0.0.1:8930``."""
    needs_token: bool = False
    """Whether the protocol and the API want a token there."""

    def can(self, right: str) -> bool:
        """Return whether the caller has *right*, one of `gateway.serve.auth`."""
        return not right or self.caller.holds({right})


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """A page to show."""

    template: str
    """A file in ``templates``; it sees *data* as ``view``."""
    title: str
    data: Any
    """A frozen dataclass."""
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """Where a browser goes after a change."""

    to: str
    """A path below `CONSOLE`."""
    note: str = ""
    """What happened, in words: the next page shows it once."""


Handler: TypeAlias = Callable[..., Awaitable[PageView | Redirect | Response]]
"""Takes its page and a `Visit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRoute:
    """One path of a page, and the method that answers it."""

    method: str
    path: str
    """Below `CONSOLE`, as Starlette writes paths."""
    handler: Handler
    right: str = ""
    """The scope that it needs; see `gateway.serve.auth`."""


def page(method: str, path: str, *, right: str = "") -> Callable[[Handler], PageRoute]:
    """Make a route of a method of a page's class."""
    return lambda handler: PageRoute(
        method=method, path=CONSOLE + path, handler=handler, right=right
    )


def download(document: object, name: str) -> Response:
    """Return *document* as a JSON file called *name*, which no browser shows."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": "default-src 'none'",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(f"{text}\n".encode("utf-8", "replace"), 200, headers, "application/json")


def page_routes(of_page: object) -> Iterator[PageRoute]:
    """Yield the routes of the class of *of_page*, in their order, bound to it."""
    for value in vars(type(of_page)).values():
        if isinstance(value, PageRoute):
            yield replace(value, handler=MethodType(value.handler, of_page))


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
MAX_VALUES = 12
"""How many values of a facet are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetValue:
    """A value to select by."""

    value: str
    count: int
    """How many the list would hold."""
    selected: bool
    query: str
    """Of the list that selects it or, if it is selected, does not; without the chosen ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """The most frequent values of a facet."""

    name: str
    values: tuple[FacetValue, ...]
    more: int
    """How many others there are."""


def facet_of(name: str, counts: Mapping[str, int], pairs: Sequence[tuple[str, str]]) -> Facet:
    """Return a facet whose addresses select one value instead of another, or one tag more."""
    selected = [value for facet, value in pairs if facet == name]
    others = [pair for pair in pairs if name == "tag" or pair[0] != name]
    values = []
    for value in dict.fromkeys((*selected, *counts)):
        after = [*others, (name, value)]
        if value in selected:
            after = [pair for pair in pairs if pair != (name, value)]
        values.append(
            FacetValue(
                value=value,
                count=counts.get(value, 0),
                selected=value in selected,
                query=urlencode(after, errors="replace"),
            )
        )
    shown = max(MAX_VALUES, len(selected))
    return Facet(name=name, values=tuple(values[:shown]), more=max(len(values) - shown, 0))
