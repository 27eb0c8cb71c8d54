"""``#tag`` in a query: taken out of it as a filter, where an eligible entity has the tag.

* A tag is ``#`` and what follows without a space: letters of any script with their marks, digits
  and ``-_./``, at least one letter among them. Before it stands nothing, a space or an opening
  bracket, behind it nothing, a space or a mark of the sentence. So ``C#``, ``#42``, ``page#part``,
  ``# heading`` and colours of digits are none, nor is what stands in quotes or backticks.
* Only a tag that an eligible entity has is one. Any other word stays in the query as it is: a
  channel is called ``#general`` too.
* A tag is compared without case; a blank in it is written ``-`` or ``_``.
* Of several queries, which are steps of one task, only what all of them say is a filter.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from gateway.index.snapshot import Snapshot
from gateway.runtime.text import near
from gateway.types import Diagnostic, Filters, SearchRequest

_QUOTED = r'"[^"]*"|`[^`]*`|\u201c[^\u201d]*\u201d|\u00ab[^\u00bb]*\u00bb'
_WRITTEN = r"""
    (?<![^\s(\[{\uff08\u300c])\#            # at a boundary
    ([^\s\#"'`()\[\]{}<>,;:!?|\\&*+=@$%^~\u3001\u3002\uff0c\uff01\uff1f\uff08\uff09\u300c\u300d]+)
    (?=$|[\s)\]},;:!?\u3001\u3002\uff0c\uff01\uff1f\uff09\u300d])
"""
_EDGES = "-_./"


def extract_tags(
    snapshot: Snapshot, request: SearchRequest
) -> tuple[SearchRequest, tuple[Diagnostic, ...]]:
    """Take the tags out of the queries of *request* into its filters.

    Args:
        snapshot: The index: says which tags there are.
        request: A query that was nothing but tags is gone afterwards; without any left and
            without a context, the search browses.

    Returns:
        The request, and diagnostics: which tags were taken, and of a filter that no entity
        has, which there are like it.
    """
    filters = request.filters
    if not filters.tags and not any("#" in query for query in request.queries):
        return request, ()
    tags = _visible_tags(snapshot, filters)
    notes = [_unknown(tag, tags) for tag in sorted(filters.tags) if tag.casefold() not in tags]
    written = [_written_tags(query, tags) for query in request.queries]
    notes += [note for query in request.queries for note in _near_misses(query, tags)]
    common = (
        frozenset.intersection(*(frozenset(each.values()) for each in written)) if written else ()
    )
    if common:
        detail_text = f"filtered by {', '.join(sorted(common))}"
        notes.append(Diagnostic(stage="catalog", code="query_tagged", detail=detail_text))
        pairs = zip(request.queries, written, strict=True)
        rest = (_without(query, spans, common) for query, spans in pairs)
        request = replace(
            request,
            queries=tuple(dict.fromkeys(query for query in rest if query)),
            filters=replace(filters, tags=filters.tags | common),
        )
    return request, tuple(notes)


def words(query: str) -> Iterator[tuple[int, int, str]]:
    """Return what may be tags in *query*: start, end and the tag, casefolded."""
    quoted = [each.span() for each in re.finditer(_QUOTED, query)]
    for match in re.finditer(_WRITTEN, query, re.VERBOSE):
        tag = match.group(1).rstrip(_EDGES)
        end = match.start(1) + len(tag)
        inside = any(start <= match.start() < stop for start, stop in quoted)
        if not inside and any(char.isalpha() for char in tag):
            yield match.start(), end, tag.casefold()


def _visible_tags(snapshot: Snapshot, filters: Filters) -> Mapping[str, str]:
    """Return the tags of all eligible entities, by each way of writing them."""
    mask = snapshot.mask(replace(filters, tags=frozenset()))
    tags = snapshot.eligibility.tags(mask)
    ways = {re.sub(r"\s+", mark, tag): tag for tag in tags for mark in "_-"}
    return {**ways, **{tag: tag for tag in tags}}


def _written_tags(query: str, tags: Mapping[str, str]) -> dict[tuple[int, int], str]:
    return {(start, end): tags[tag] for start, end, tag in words(query) if tag in tags}


def _near_misses(query: str, tags: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Return of words that look like a tag, but are none, which tags are near."""
    for _, _, tag in words(query) if tags else ():
        note = _unknown(tag, tags)
        if tag not in tags and "near" in note.detail:
            yield note


def _without(query: str, spans: Mapping[tuple[int, int], str], removed: Collection[str]) -> str:
    for (start, end), tag in sorted(spans.items(), reverse=True):
        if tag in removed:
            query = f"{query[:start]} {query[end:]}"
    return " ".join(query.split()).strip(" ,;:.!?") if removed else query


def _unknown(tag: str, tags: Mapping[str, str]) -> Diagnostic:
    like = dict.fromkeys(tags[each] for each in near(tag, tags))
    detail_text = f"; near: {', '.join(like)}" if like else ""
    return Diagnostic(
        stage="catalog", code="unknown_tag", detail=f"nobody has the tag {tag!r}{detail_text}"
    )
