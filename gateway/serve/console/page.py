"""Building blocks of the console's pages: routes, requests, results, facets and template filters.

A page is a class with route methods (`page`). Its data is a frozen dataclass, for the template and
``?format=json``. Every address works without scripts.
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
    """Files of the console. A feature without its file is not offered."""

    config: Path | None = None
    """The gateway's ``mcp.json``."""
    requests: Path | None = None
    """Test requests in the format of `gateway.plugins.quality.requests`."""
    reports: Path | None = None
    documents: Path | None = None
    """Folder of the host's graph documents."""
    spans: SpanRing | None = None
    """Recent spans of the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An entry of the navigation. Each page class has one as ``place``."""

    title: str
    path: str
    """Path below `CONSOLE`."""
    right: str = ""
    """Scope required to see the entry. Empty requires none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A browser's request that passed the checks of session, scope and form."""

    caller: Caller
    path: dict[str, str]
    """Path parameters, keyed by name."""
    query: Texts
    form: Texts
    session: str
    """Session key. Pages never show it."""
    address: str = ""
    """Address of the server in the browser, such as ``http://127.0.0.1:8930``."""
    needs_token: bool = False
    """True if MCP and the API require a token."""

    def can(self, right: str) -> bool:
        """Return whether the caller has the scope *right*. Empty requires none."""
        return not right or self.caller.holds({right})


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """A page to render: a template and its data."""

    template: str
    """File in ``templates``, which sees *data* as ``view``."""
    title: str
    data: Any
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """Redirect after a change."""

    to: str
    """Path below `CONSOLE`."""
    note: str = ""
    """Message that the next page shows once."""


Handler: TypeAlias = Callable[..., Awaitable[PageView | Redirect | Response]]
"""Answers a request. Its arguments are the page object and a `Visit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRoute:
    """One route, and the method that handles it."""

    method: str
    path: str
    """Path below `CONSOLE`, in Starlette's syntax."""
    handler: Handler
    right: str = ""
    """Required scope. Empty requires none."""


def page(method: str, path: str, *, right: str = "") -> Callable[[Handler], PageRoute]:
    """Return a decorator that turns a page class's method into a route."""
    return lambda handler: PageRoute(
        method=method, path=CONSOLE + path, handler=handler, right=right
    )


def download(document: object, name: str) -> Response:
    """Return *document* as JSON for browsers to save as *name*."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": "default-src 'none'",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(f"{text}\n".encode("utf-8", "replace"), 200, headers, "application/json")


def page_routes(page_object: object) -> Iterator[PageRoute]:
    """Yield a page object's routes, in the order of its class."""
    for value in vars(type(page_object)).values():
        if isinstance(value, PageRoute):
            yield replace(value, handler=MethodType(value.handler, page_object))


MAX_SHOWN_CHARS = 2000
UNKNOWN = "\N{EN DASH}"
"""Text of an unknown number: a dash."""
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


def number(value: float | None) -> str:
    """Format a number with thousands separators. None is a dash."""
    if value is None:
        return UNKNOWN
    return (
        f"{value:,.2f}" if isinstance(value, float) and not value.is_integer() else f"{value:,.0f}"
    )


def percent(value: float | None) -> str:
    """Format a share, 0 to 1, as per cent. None is a dash."""
    return UNKNOWN if value is None else f"{100 * value:.1f} %"


def ms(seconds: float | None) -> str:
    """Format *seconds* as milliseconds. None is a dash."""
    return UNKNOWN if seconds is None else f"{1000 * seconds:,.1f} ms"


def span(seconds: float | None) -> str:
    """Format a duration in its largest whole unit. None is a dash."""
    if seconds is None:
        return UNKNOWN
    for unit, length in (("d", _DAY_S), ("h", _HOUR_S), ("min", _MINUTE_S)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def clip(text: object, limit: int = MAX_SHOWN_CHARS) -> str:
    """Truncate *text*, and append the number of omitted characters."""
    whole = str(text)
    missing = len(whole) - limit
    return whole if missing <= 0 else f"{whole[:limit]}… ({missing:,} more characters)"


def pretty(value: object) -> str:
    """Format *value* as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def path(text: str) -> str:
    """Escape *text* for the end of a URL path, and its slashes if a segment is ``.`` or ``..``."""
    takes_steps = {".", ".."} & {*text.split("/")}
    return quote(text.encode("utf-8", "replace"), safe="" if takes_steps else "/")


def node(text: str) -> str:
    """Return the readable id of a graph node. Ids of concepts lose their namespace."""
    return text.removeprefix(CONCEPT_BASE)


FILTERS: Mapping[str, Callable[..., Any]] = {
    each.__name__: each for each in (number, percent, ms, span, clip, pretty, path, node)
}
MAX_VALUES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetValue:
    """A value of a facet, such as ``tool``."""

    value: str
    count: int
    selected: bool
    query: str
    """Query string that selects or deselects this value. It omits the chosen ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """A property that filters the list, with its most frequent values."""

    name: str
    values: tuple[FacetValue, ...]
    more: int


def facet_of(name: str, counts: Mapping[str, int], pairs: Sequence[tuple[str, str]]) -> Facet:
    """Return the facet *name*. Only tags can be combined."""
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
    limit = max(MAX_VALUES, len(selected))
    return Facet(name=name, values=tuple(values[:limit]), more=max(len(values) - limit, 0))
