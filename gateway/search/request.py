"""Checks of search arguments, and extraction of ``#tag`` from queries into filters. Pure.

* A tag is ``#`` followed by letters of any script, digits and ``-_./``, with at least one letter.
  It begins after a space or opening bracket, and ends before a space or punctuation. ``C#``,
  ``#42`` and ``page#part`` are not tags; nor is text in quotes or backticks.
* Only tags of eligible entities are extracted, because a channel may be called ``#general``. A
  space in a tag is written ``-`` or ``_``. Case does not matter.
* Of several queries, only common tags become filters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import chain

from gateway.errors import InvalidRequestError
from gateway.index.snapshot import Snapshot
from gateway.options import SearchOptions
from gateway.runtime.text import clean, near
from gateway.types import ANYONE, Caller, Diagnostic, Filters, RankingPolicy, SearchRequest

_QUOTED = r'"[^"]*"|`[^`]*`|\u201c[^\u201d]*\u201d|\u00ab[^\u00bb]*\u00bb'
_TAG = r"""
    (?<![^\s(\[{\uff08\u300c])\#            # at a boundary
    ([^\s\#"'`()\[\]{}<>,;:!?|\\&*+=@$%^~\u3001\u3002\uff0c\uff01\uff1f\uff08\uff09\u300c\u300d]+)
    (?=$|[\s)\]},;:!?\u3001\u3002\uff0c\uff01\uff1f\uff09\u300d])
"""
_TAG_ENDINGS = "-_./"


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """The unchecked arguments of `Gateway.search`."""

    query: str | None = None
    _: KW_ONLY
    queries: Sequence[str] = ()
    context: Mapping[str, object] | None = None
    context_summary: str = ""
    limit: int | None = None
    filters: Filters = field(default_factory=Filters)
    ranking: RankingPolicy = "strategy"
    diversify: bool = False
    display_limit: int = 0
    caller: Caller = ANYONE
    explain: bool | Caller = False

    def texts(self, max_queries: int) -> tuple[str, ...]:
        """Check arguments that depend on each other, and return the queries.

        Raises:
            InvalidRequestError: If they contradict, or there are more than *max_queries* queries.
        """
        if self.query is not None and self.queries:
            raise InvalidRequestError("give one query or several queries, not both")
        if isinstance(self.queries, str):
            raise InvalidRequestError("queries is a list of texts; for one text use query")
        texts = tuple(self.queries) if self.queries or self.query is None else (self.query,)
        if _check_count("display_limit", self.display_limit, 0) and len(texts) > 1:
            raise InvalidRequestError("display_limit applies to one ranking: give one query")
        if len(texts) > max_queries:
            raise InvalidRequestError(f"{len(texts)} queries; a search takes at most {max_queries}")
        return texts


def prepare(
    arguments: SearchArguments, options: SearchOptions
) -> tuple[SearchRequest, tuple[Diagnostic, ...]]:
    """Check and clean the arguments of a search. Blank queries are dropped.

    Raises:
        InvalidRequestError: If *limit* or *display_limit* is not a whole number, *limit* is below
            1, *display_limit* is below 0 or given with several queries, both *query* and *queries*
            are given, *queries* is a text or too long, or a query is not a text.
    """
    notes: list[Diagnostic] = []
    texts, filters = arguments.texts(options.max_queries), arguments.filters
    if arguments.ranking != "strategy":
        filters = replace(filters, include_described=True)
    filters = arguments.caller.filters(filters)
    request = SearchRequest(
        queries=tuple(dict.fromkeys(_clean_queries(texts, options.max_query_chars, notes))),
        context=_clean_context(
            arguments.context, arguments.context_summary, options.max_query_chars, notes
        ),
        limit=_clamp_limit(arguments.limit, options, notes),
        filters=filters,
        ranking=arguments.ranking,
        diversify=arguments.diversify,
        display_limit=arguments.display_limit,
        tenant=arguments.caller.tenant,
        explain=bool(arguments.explain),
        reader=_reader_filters(arguments.explain, filters),
    )
    return request, tuple(notes)


def _reader_filters(explain: bool | Caller, filters: Filters) -> Filters:
    """Return the filters that limit which entities the reader of the explanation may see.

    Without an explanation, these are the default filters.
    """
    if isinstance(explain, Caller):
        return explain.filters()
    return filters if explain else Filters()


def _clamp_limit(limit: int | None, options: SearchOptions, notes: list[Diagnostic]) -> int:
    if limit is None:
        return options.limit
    if _check_count("limit", limit, 1) > options.max_limit:
        detail = f"limit {limit} reduced to {options.max_limit}"
        notes.append(Diagnostic(stage="catalog", code="limit_clamped", detail=detail))
    return min(limit, options.max_limit)


def _check_count(name: str, value: object, minimum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise InvalidRequestError(
            f"{name} must be a whole number of at least {minimum}, got {value!r}"
        )
    return value


def _clean_queries(
    texts: Iterable[object], max_chars: int, notes: list[Diagnostic]
) -> Iterable[str]:
    for text in texts:
        if not isinstance(text, str):
            raise InvalidRequestError(f"a query must be a text, got {type(text).__name__}")
        if len(text) > max_chars:
            detail = f"{len(text)} characters, cut to {max_chars}"
            notes.append(Diagnostic(stage="normalize", code="query_truncated", detail=detail))
        cleaned = clean(text, limit=max_chars)
        if cleaned:
            yield cleaned


def _clean_context(
    context: Mapping[str, object] | None, summary: str, max_chars: int, notes: list[Diagnostic]
) -> str:
    if not context and not summary:
        return ""
    parts = [clean(summary, limit=max_chars)]
    if context:
        try:
            plain = json.loads(json.dumps(context, ensure_ascii=False))
        except (TypeError, ValueError, RecursionError):
            detail = "the context cannot be written as JSON"
            notes.append(Diagnostic(stage="normalize", code="context_ignored", detail=detail))
        else:
            parts.append(clean("; ".join(_flatten(plain, "")), limit=max_chars))
    return "; ".join(part for part in parts if part)


def _flatten(value: object, key: str) -> Iterable[str]:
    """Yield each value of nested JSON after its keys: ``a b 1`` for ``{"a": {"b": [1]}}``."""
    if isinstance(value, dict):
        for inner, item in value.items():
            yield from _flatten(item, f"{key} {inner}".strip())
    elif isinstance(value, list):
        for item in value:
            yield from _flatten(item, key)
    elif value is not None:
        yield f"{key} {value}".strip()


def extract_tags(
    snapshot: Snapshot, request: SearchRequest
) -> tuple[SearchRequest, tuple[Diagnostic, ...]]:
    """Move tags from the queries of *request* into its filters.

    A query that contains only tags is removed.

    Returns:
        The new request, and diagnostics about extracted tags and about unknown tags, with
        suggestions.
    """
    filters = request.filters
    if not filters.tags and not any("#" in query for query in request.queries):
        return request, ()
    mask = snapshot.mask(replace(filters, tags=frozenset()))
    tags = _spellings(snapshot.eligibility.tags(mask))
    written = [list(words(query)) for query in request.queries]
    unknown = [tag for tag in sorted(filters.tags) if tag.casefold() not in tags]
    for _, _, tag in chain.from_iterable(written):
        if tag not in tags and near(tag, tags):
            unknown.append(tag)
    notes = [_unknown_tag(tag, tags) for tag in unknown]
    tags_by_query = [
        frozenset(tags[tag] for _, _, tag in query_tags if tag in tags) for query_tags in written
    ]
    common = frozenset.intersection(*tags_by_query) if tags_by_query else frozenset()
    if not common:
        return request, tuple(notes)
    detail = f"filtered by {', '.join(sorted(common))}"
    notes.append(Diagnostic(stage="catalog", code="query_tagged", detail=detail))
    removed = [
        [(start, end) for start, end, tag in query_tags if tags.get(tag) in common]
        for query_tags in written
    ]
    remaining = map(_remove_spans, request.queries, removed)
    queries = tuple(dict.fromkeys(query for query in remaining if query))
    filters = replace(filters, tags=filters.tags | common)
    return replace(request, queries=queries, filters=filters), tuple(notes)


def words(query: str) -> Iterator[tuple[int, int, str]]:
    """Yield each possible tag in *query*, as start index, end index and casefolded tag."""
    quoted = [match.span() for match in re.finditer(_QUOTED, query)]
    for match in re.finditer(_TAG, query, re.VERBOSE):
        tag = match.group(1).rstrip(_TAG_ENDINGS)
        inside = any(start <= match.start() < stop for start, stop in quoted)
        if not inside and any(char.isalpha() for char in tag):
            yield match.start(), match.start(1) + len(tag), tag.casefold()


def _spellings(tags: Iterable[str]) -> Mapping[str, str]:
    ways = {re.sub(r"\s+", mark, tag): tag for tag in tags for mark in "_-"}
    return {**ways, **{tag: tag for tag in tags}}


def _remove_spans(query: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        query = f"{query[:start]} {query[end:]}"
    return " ".join(query.split()).strip(" ,;:.!?")


def _unknown_tag(tag: str, tags: Mapping[str, str]) -> Diagnostic:
    like = dict.fromkeys(tags[spelling] for spelling in near(tag, tags))
    suffix = f"; near: {', '.join(like)}" if like else ""
    detail = f"no entity has the tag {tag!r}{suffix}"
    return Diagnostic(stage="catalog", code="unknown_tag", detail=detail)
