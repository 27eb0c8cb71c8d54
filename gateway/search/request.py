"""Arguments of a caller -> a checked `SearchRequest`. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from gateway.errors import InvalidRequestError
from gateway.options import SearchOptions
from gateway.runtime.text import clean
from gateway.types import Diagnostic, Filters, RankingPolicy, SearchRequest

_POLICIES = get_args(RankingPolicy)


def prepare(  # noqa: PLR0913  (keyword-only, one a parameter of the public search)
    query: str | None,
    *,
    queries: Sequence[str],
    context: Mapping[str, object] | None,
    context_summary: str,
    limit: int | None,
    filters: Filters,
    options: SearchOptions,
    ranking: RankingPolicy = "strategy",
    diversify: bool = False,
    display_limit: int = 0,
    tenant: str = "",
) -> tuple[SearchRequest, tuple[Diagnostic, ...]]:
    """Check and clean what a caller asks.

    Blank queries are dropped; with none left and no context the search browses.

    Raises:
        InvalidRequestError: If *limit* is below 1, *display_limit* below 0 or given with several
            queries, *ranking* is unknown, both *query* and *queries* are given, there are too
            many queries, or one is not a text.
    """
    notes: list[Diagnostic] = []
    if query is not None and queries:
        raise InvalidRequestError("give one query or several queries, not both")
    if isinstance(queries, str):
        raise InvalidRequestError("queries is a list of texts; for one text use query")
    texts = tuple(queries) if queries else ((query,) if query is not None else ())
    if ranking not in _POLICIES:
        policies = ", ".join(_POLICIES)
        raise InvalidRequestError(f"ranking must be one of {policies}, got {ranking!r}")
    if isinstance(display_limit, bool) or not isinstance(display_limit, int) or display_limit < 0:
        raise InvalidRequestError(
            f"display_limit must be a whole number of at least 0, got {display_limit!r}"
        )
    if display_limit and len(texts) > 1:
        raise InvalidRequestError("display_limit applies to one ranking: give one query")
    if len(texts) > options.max_queries:
        raise InvalidRequestError(
            f"{len(texts)} queries; a search takes at most {options.max_queries}"
        )
    request = SearchRequest(
        queries=tuple(dict.fromkeys(_texts(texts, options.max_query_chars, notes))),
        context=_context(context, context_summary, options.max_query_chars, notes),
        limit=_limit(limit, options, notes),
        filters=filters,
        ranking=ranking,
        diversify=diversify,
        display_limit=display_limit,
        tenant=tenant,
    )
    return request, tuple(notes)


def _limit(limit: int | None, options: SearchOptions, notes: list[Diagnostic]) -> int:
    if limit is None:
        return options.limit
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidRequestError(f"limit must be a whole number of at least 1, got {limit!r}")
    if limit > options.max_limit:
        detail = f"{limit} asked, {options.max_limit} given"
        notes.append(Diagnostic(stage="catalog", code="limit_clamped", detail=detail))
    return min(limit, options.max_limit)


def _texts(texts: Iterable[object], max_chars: int, notes: list[Diagnostic]) -> Iterable[str]:
    for text in texts:
        if not isinstance(text, str):
            raise InvalidRequestError(f"a query must be a text, got {type(text).__name__}")
        if len(text) > max_chars:
            detail = f"{len(text)} characters, cut to {max_chars}"
            notes.append(Diagnostic(stage="normalize", code="query_truncated", detail=detail))
        cleaned = clean(text, limit=max_chars)
        if cleaned:
            yield cleaned


def _context(
    context: Mapping[str, object] | None, summary: str, max_chars: int, notes: list[Diagnostic]
) -> str:
    if not context and not summary:
        return ""
    parts = [clean(summary, limit=max_chars)]
    if context:
        try:
            plain = json.loads(json.dumps(context, ensure_ascii=False))
        except (TypeError, ValueError, RecursionError):
            detail = "it does not serialize as JSON"
            notes.append(Diagnostic(stage="normalize", code="context_ignored", detail=detail))
        else:
            parts.append(clean("; ".join(_flatten(plain, "")), limit=max_chars))
    return "; ".join(part for part in parts if part)


def _flatten(value: object, key: str) -> Iterable[str]:
    """``{"a": {"b": [1, 2]}}`` -> ``a b 1``, ``a b 2``."""
    if isinstance(value, dict):
        for inner, item in value.items():
            yield from _flatten(item, f"{key} {inner}".strip())
    elif isinstance(value, list):
        for item in value:
            yield from _flatten(item, key)
    elif value is not None:
        yield f"{key} {value}".strip()
