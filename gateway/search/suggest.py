"""Next steps on request: the given tools and the query -> suggestions, with what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gateway.embed.cache import Embed
from gateway.errors import Failed, InvalidRequestError
from gateway.index.eligibility import Mask
from gateway.index.snapshot import Snapshot
from gateway.index.vectors.exact import VectorQuery
from gateway.options import SearchOptions
from gateway.runtime.vectors import Vector, deviations
from gateway.search.asked import Asked
from gateway.search.dense.vector import candidates
from gateway.search.evidence import look_up
from gateway.search.fusion import together
from gateway.search.invoke import resolve
from gateway.search.nextsteps import AFTER_WEIGHT, following_clauses, served, weigh
from gateway.search.patience import patient
from gateway.search.request import clauses
from gateway.search.results import plain
from gateway.search.usage.signals import NOTHING, Signals
from gateway.types import Evidence, Filters, Match


async def suggest(  # noqa: PLR0913  (keyword-only, the options of `Gateway.next_steps`)
    snapshot: Snapshot,
    tools: Sequence[str],
    *,
    query: str,
    embed: Embed | None,
    filters: Filters,
    limit: int,
    options: SearchOptions,
    use: Signals = NOTHING,
) -> tuple[Match, ...]:
    """Suggest what may come after *tools*, best first, never one of them.

    Args:
        snapshot: The index.
        tools: Those just used, the last one last, each as `Gateway.invoke` takes it.
        query: The task, if it is known.
        embed: Embeds the task; without it the task is read by its words alone.
        filters: Who may be suggested.
        limit: Suggestions at most.
        options: Those of searches.
        use: What calls have shown.

    Raises:
        UnknownToolError: If one of *tools* is not in the catalog.
        InvalidRequestError: If *limit* is below 1, or *tools* is one text.
    """
    if isinstance(tools, str):
        raise InvalidRequestError("tools is a list of ids or names; for one give a list of one")
    # A tool that was used is known, even if tools like it may not be suggested.
    nobody = frozenset[str]()
    known = replace(filters, tags=nobody, servers=nobody, without=nobody)
    used = [snapshot.position(resolve(snapshot, tool, known).id) for tool in tools]
    if limit < 1:
        raise InvalidRequestError(f"limit must be at least 1, got {limit}")
    if not used:
        return ()
    mask = snapshot.mask(filters)
    task = await _task(snapshot, used[-1], query, embed, mask, options) if query else None
    found = weigh(snapshot, used, task=task, mask=mask).ranked(limit, use.learned)
    return tuple(
        plain(snapshot.entities[each.position], score=each.score, evidence=Evidence(path=each.path))
        for each in found
    )


async def _task(
    snapshot: Snapshot,
    last: int,
    query: str,
    embed: Embed | None,
    mask: Mask,
    options: SearchOptions,
) -> Vector:
    """Score every entity for the task, as a search would, and for what follows the entity *last*.

    Without vectors it is scored by words alone.

    Returns:
        Standard deviations, shape (n,).
    """
    asked = Asked(query=query, english=query, clauses=clauses(query))
    lexical, _ = look_up(snapshot.lexical, snapshot.names, asked)
    question = await _question(snapshot, asked, embed, options.query_timeout_s)
    if question is None or snapshot.vectors is None:
        return deviations(lexical.scores)
    found = candidates(snapshot.vectors, question, mask=mask, limit=1, options=options)
    task = together(
        found,
        lexical,
        spots=np.arange(len(snapshot.entities)),
        mask=mask,
        weight=options.lexical_weight,
    )
    following = following_clauses(question.clauses, snapshot.vectors, snapshot.common, last)
    if len(following):
        task = task + AFTER_WEIGHT * served(following, snapshot.vectors)
    return np.asarray(task, dtype=np.float32)


async def _question(
    snapshot: Snapshot, asked: Asked, embed: Embed | None, patience: float
) -> VectorQuery | None:
    if embed is None or snapshot.vectors is None:
        return None
    texts = asked.all_texts
    found = await patient(embed(texts, dimensions=snapshot.dimensions), patience)
    if isinstance(found, Failed):
        return None
    return asked.question(dict(zip(texts, found.vectors, strict=True)))
