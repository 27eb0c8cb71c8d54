"""Evaluation: run test requests on a gateway and report which tools are found."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gateway.discovery.token_counter import TokenCounter
from gateway.index.indexer import Progress
from gateway.index.snapshot import Snapshot
from gateway.options import Options
from gateway.plugins.quality.metrics import (
    DEPTH,
    Figures,
    find_confusions,
    mean,
    report_tools,
    score,
)
from gateway.plugins.quality.report import Cost, EvalReport, Outcome, Summary
from gateway.plugins.quality.requests import EvalRequest, RequestSet, catalog_digests
from gateway.plugins.quality.twins import Twins, find_twins, with_twins
from gateway.runtime.background_loop import in_thread
from gateway.search.results import lacking_words
from gateway.types import ANYONE, Caller, Entity, Filters, Match, SearchResult, Strategy

_MAX_CONCURRENT = 8
"""Maximum number of concurrent searches. The embedding model has two workers for four queries each;
with more searches, the last could time out."""
_WEAK_CODES = frozenset({"no_match", "low_confidence_results"})


class Searchable(Protocol):
    """Parts of a `Gateway` that an evaluation uses."""

    @property
    def options(self) -> Options:
        """Options of the gateway."""

    @property
    def strategy(self) -> Strategy:
        """Strategy of the gateway."""

    async def snapshot(self, *, vectors: bool = False) -> Snapshot:
        """Return the current index, with *vectors* after waiting for them."""

    async def search(
        self,
        query: str | None = None,
        *,
        limit: int | None = None,
        filters: Filters | None = None,
        caller: Caller = ANYONE,
        task: str | None = "",
    ) -> SearchResult:
        """Find tools, as `Gateway.search` does."""

    async def next_steps(
        self, tools: Sequence[str], *, query: str = "", limit: int = 5, caller: Caller = ANYONE
    ) -> tuple[Match, ...]:
        """Suggest tools to use after *tools*, as `Gateway.next_steps` does."""


async def evaluate(
    gateway: Searchable,
    requests: RequestSet,
    *,
    caller: Caller = ANYONE,
    tokens: TokenCounter | None = None,
    progress: Progress = lambda *_: None,
) -> EvalReport:
    """Run all requests on *gateway* and report the results.

    Args:
        gateway: `Gateway` to evaluate.
        requests: Requests from `freeze`, which name tools by id.
        caller: Caller of the searches.
        tokens: Token counter for the cost; None leaves the cost out.
        progress: Called with ``requests``, the number of finished requests and their total number.
    """
    snapshot = await gateway.snapshot(vectors=True)
    tools = snapshot.visible(caller.filters())
    wanted_ids = {key for request in requests.requests for group in request.wanted for key in group}
    # In a thread, because this takes a while for thousands of tools, and searches share the loop.
    twins = await in_thread(find_twins, tools, wanted_ids)
    run = _Evaluation(gateway=gateway, snapshot=snapshot, caller=caller, twins=twins, tokens=tokens)
    outcomes = await run.ask_all(requests.requests, progress)
    return await in_thread(run.report, outcomes, tools, wanted_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluation:
    gateway: Searchable
    snapshot: Snapshot
    caller: Caller
    twins: Twins
    tokens: TokenCounter | None

    @property
    def limit(self) -> int:
        return self.gateway.options.search.limit

    async def ask_all(self, requests: Sequence[EvalRequest], progress: Progress) -> list[Outcome]:
        """Run all requests, and those again whose search lacked an optional stage."""
        outcomes: list[Outcome] = []
        for start in range(0, len(requests), _MAX_CONCURRENT):
            progress("requests", start, len(requests))
            outcomes += await asyncio.gather(
                *map(self.ask, requests[start : start + _MAX_CONCURRENT])
            )
        progress("requests", len(requests), len(requests))
        # A model may have timed out because the machine was busy.
        return [
            await self.ask(outcome.request) if outcome.degraded else outcome for outcome in outcomes
        ]

    def report(
        self, outcomes: Sequence[Outcome], tools: Iterable[Entity], wanted: AbstractSet[str]
    ) -> EvalReport:
        """Return the report on *outcomes*, for all visible *tools* and the *wanted* ids."""
        digests = catalog_digests(tools)
        return EvalReport(
            catalog=digests,
            strategy=self.gateway.strategy,
            limit=self.limit,
            summary=summarize(outcomes),
            by_source=_summaries_by(outcomes, lambda request: request.source),
            by_language=_summaries_by(outcomes, lambda request: request.language or "und"),
            tools=report_tools(outcomes, limit=self.limit),
            untested=tuple(sorted(digests.keys() - wanted)),
            unknown=tuple(sorted(wanted - digests.keys())),
            pairs=find_confusions(outcomes, self.twins),
            cost=_cost(outcomes, self.tokens) if self.tokens and outcomes else None,
            degraded=sum(outcome.degraded for outcome in outcomes),
            outcomes=tuple(outcomes),
        )

    async def ask(self, request: EvalRequest) -> Outcome:
        result = await self._search(request)
        groups = with_twins(request, self.twins)
        ranked = tuple(match.id for match in result.matches)
        if any(group.isdisjoint(ranked) for group in groups):
            # A deeper search ranks the tools that the first search did not return.
            deep = await self._search(request, self.gateway.options.search.max_limit)
            ranked = tuple(dict.fromkeys((*ranked, *(match.id for match in deep.matches))))
        places = tuple(_rank(ranked, group) for group in groups)
        tools = tuple(_best_of_group(ranked, group) for group in request.wanted)
        is_late = [rank is None or rank > self.limit for rank in places]
        missed = [tool for tool, is_behind in zip(tools, is_late, strict=True) if is_behind]
        answer, schemas = self.tokens.count(result) if self.tokens else (0, 0)
        return Outcome(
            request=request,
            found=ranked[:DEPTH],
            places=places,
            tools=tools,
            missed=bool(missed),
            accepted=_WEAK_CODES.isdisjoint(note.code for note in result.diagnostics),
            confidence=max((match.confidence for match in result.matches), default=0.0),
            figures=judge(ranked, groups) if groups else {},
            # Generated requests do not contain a user's own words.
            missing_words={}
            if request.source == "rules"
            else self._missing_words(request.text, missed),
            answer_tokens=answer,
            schema_tokens=schemas,
            degraded=result.degraded,
            follows=await self._follows(request, groups),
        )

    async def _follows(self, request: EvalRequest, groups: Sequence[frozenset[str]]) -> bool | None:
        first = request.wanted[0][0] if request.ordered and request.wanted[1:] else ""
        if first not in self.snapshot.eligibility.by_id:
            return None
        next_steps = await self.gateway.next_steps([first], query=request.text, caller=self.caller)
        return any(match.id in groups[1] for match in next_steps)

    async def _search(self, request: EvalRequest, limit: int | None = None) -> SearchResult:
        filters = Filters(without=request.without)
        return await self.gateway.search(
            request.text, limit=limit, filters=filters, caller=self.caller, task=None
        )

    def _missing_words(self, text: str, tools: Sequence[str]) -> dict[str, tuple[str, ...]]:
        all_positions = {key: self.snapshot.eligibility.by_id.get(key) for key in tools}
        positions = {
            key: position for key, position in all_positions.items() if position is not None
        }
        words = lacking_words(self.snapshot, text, [*positions.values()])
        return dict(zip(positions, words, strict=True))


def _rank(found: Sequence[str], group: frozenset[str]) -> int | None:
    return next((rank for rank, key in enumerate(found, 1) if key in group), None)


def _best_of_group(found: Sequence[str], group: Sequence[str]) -> str:
    """Return the alternative in *group* that ranks best, or the first if none is found."""
    return next((key for key in found if key in group), group[0])


def judge(found: Sequence[str], groups: Sequence[frozenset[str]]) -> Figures:
    """Return the figures of one ranking, as shares of 1, keyed by name.

    Args:
        found: Tool ids, best first.
        groups: Ids that count as found, for each wanted tool. At least one group.
    """
    scores = score(found, groups)
    return {
        "hit@1": scores["hit@1"],
        "hit@5": float(scores["recall@5"] > 0),
        "recall@5": scores["recall@5"],
        "recall@10": scores["recall@10"],
        "complete@10": scores["comp@10"],
        "ndcg@10": scores["ndcg@10"],
        "mrr": scores["mrr"],
    }


def summarize(outcomes: Iterable[Outcome]) -> Summary:
    """Return the mean figures of *outcomes*, without figures that apply to none."""
    outcomes = list(outcomes)
    served = [outcome for outcome in outcomes if outcome.figures]
    unserved = [outcome for outcome in outcomes if not outcome.figures]
    figures = dict(mean([outcome.figures for outcome in served]))
    if served:
        figures["false_rejects"] = float(np.mean([not report.accepted for report in served]))
    if follow := [report.follows for report in outcomes if report.follows is not None]:
        figures["next@5"] = float(np.mean(follow))
    if unserved:
        figures["false_accepts"] = float(np.mean([report.accepted for report in unserved]))
    return Summary(requests=len(outcomes), unanswerable=len(unserved), figures=figures)


def _summaries_by(
    outcomes: Iterable[Outcome], key: Callable[[EvalRequest], str]
) -> Mapping[str, Summary]:
    groups: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[key(outcome.request)].append(outcome)
    return {name: summarize(groups[name]) for name in sorted(groups)}


def _cost(outcomes: Sequence[Outcome], tokens: TokenCounter) -> Cost:
    answers = [outcome.answer_tokens for outcome in outcomes]
    schemas = [outcome.schema_tokens for outcome in outcomes]
    a_search = float(np.median(np.add(answers, schemas)))
    savings = max(tokens.catalog - tokens.fixed, 0)
    return Cost(
        catalog=tokens.catalog,
        fixed=tokens.fixed,
        answer_p50=round(float(np.median(answers))),
        answer_p95=round(float(np.quantile(answers, 0.95))),
        schemas_p50=round(float(np.median(schemas))),
        break_even=int(savings / a_search) if a_search else 0,
    )
