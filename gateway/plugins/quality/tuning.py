"""Learn from requests that are known: the tools that serve them get them as examples.

* The vector of a tool leans to its examples (`gateway.index.compiler`), and their words find it.
* Whether that helps is measured on requests that are no examples: they are split in parts, and each
  part is asked while the others are examples. Nothing changes unless recall@5 gains surely, and
  every tool is found that was.
* The examples become rules of the catalog: they hold from the next search on, and after a restart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.catalog.catalog import Catalog
from gateway.index.indexer import Progress
from gateway.index.snapshot import Snapshot
from gateway.plugins.quality.comparison import Comparison, compare
from gateway.plugins.quality.evaluation import evaluate
from gateway.plugins.quality.offline import offline_requests
from gateway.plugins.quality.report import EvalReport
from gateway.plugins.quality.requests import EvalRequest, RequestSet, freeze
from gateway.plugins.quality.variants import Tunable, variant_of
from gateway.types import ANYONE, Caller, Entity

MIN_REQUESTS = 30
"""Of fewer nothing sure can be said."""
PARTS = 5
JUDGED = "recall@5"
_SOURCES = frozenset({"user", "model", "usage"})
"""Requests by rules are made of the tools' own words: nothing is learned from them."""
Examples = Mapping[str, tuple[str, ...]]
"""Requests by the id of the tool that serves them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What was learned, and what it is worth."""

    requests: int
    """How many were learned from."""
    kept: bool
    reason: str
    """Why it is kept or not, in words."""
    comparison: Comparison | None = None
    """Each request without examples, and with those of the other parts."""
    unfound: tuple[str, ...] = ()
    """The tools that were found, and that the examples of others would hide."""
    examples: Examples
    """What the tools that were found to serve a request get; empty if nothing is kept."""
    before: Examples
    """What these tools had from an earlier tuning or by the catalog's own rules."""


async def tune(
    gateway: Tunable,
    requests: RequestSet,
    *,
    caller: Caller = ANYONE,
    progress: Progress = lambda *_: None,
) -> Tuning:
    """Make requests examples of the tools that serve them, if other requests gain by it.

    Args:
        gateway: A `Gateway`. Its rules change if the examples are kept, and nothing else.
        requests: Their tools are ids or names. Of those made by rules nothing is learned.
        caller: What may be seen; the requests are its own.
        progress: Called with ``part`` or ``requests``, how much is done and how much there is.

    Raises:
        InvalidRequestError: A tool is unknown, or several have its name.
        StoreError: The examples could not be kept.
    """
    snapshot = await gateway.snapshot(vectors=True)
    filters = caller.filters()
    frozen = freeze(requests.requests, snapshot, filters)
    usable = [each for each in frozen.requests if each.source in _SOURCES and each.wanted]
    if len(usable) < MIN_REQUESTS:
        reason = f"{len(usable)} requests are too few to learn from: give {MIN_REQUESTS}"
        return Tuning(requests=len(usable), kept=False, reason=reason, examples={}, before={})
    trial = _Trial(gateway=gateway, snapshot=snapshot, caller=caller, progress=progress)
    comparison = await trial.compare_parts(usable)
    examples = examples_of(usable)
    unfound: tuple[str, ...] = ()
    if sure := comparison.changes[JUDGED].low > 0:
        unfound = await trial.find_hidden(usable, snapshot.visible(filters))
    is_gain = sure and not unfound
    before: dict[str, tuple[str, ...]] = {}
    if is_gain:
        before = await _keep(gateway.catalog, snapshot, examples)
    return Tuning(
        requests=len(usable),
        kept=is_gain,
        reason=_reason(comparison, unfound),
        comparison=comparison,
        unfound=unfound,
        examples=examples if is_gain else {},
        before=before,
    )


async def undo(gateway: Tunable, tuning: Tuning) -> None:
    """Restore the examples that the tools of *tuning* had before it.

    Raises:
        StoreError: They could not be kept.
    """
    await _keep(gateway.catalog, await gateway.snapshot(), tuning.before)


def examples_of(requests: Iterable[EvalRequest]) -> dict[str, tuple[str, ...]]:
    """Return the requests that each tool serves, by its id; of alternatives each serves."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for request in requests:
        for tool in dict.fromkeys(tool for group in request.wanted for tool in group):
            found[tool].append(request.text)
    return {tool: tuple(dict.fromkeys(texts)) for tool, texts in found.items()}


def _reason(comparison: Comparison, unfound: Sequence[str]) -> str:
    gain = comparison.changes[JUDGED]
    points = f"{100 * gain.difference:+.1f} points of {JUDGED}, {100 * gain.low:+.1f} at least"
    if gain.low <= 0:
        return f"not kept, since the gain is not sure: {points}"
    if unfound:
        named = ", ".join(unfound[:5])
        return f"not kept, since {len(unfound)} tools would be found no longer: {named}"
    return f"kept: {points}, on requests that were no examples"


async def _keep(
    catalog: Catalog, snapshot: Snapshot, examples: Examples
) -> dict[str, tuple[str, ...]]:
    """Make *examples* rules of the catalog; return what its rules gave these tools before."""
    tools = {entity.id: entity for entity in snapshot.entities}
    before = {}
    for key, texts in examples.items():
        if entity := tools.get(key):
            before[key] = catalog.governed(entity).examples
            await catalog.govern(entity, {"examples": list(texts)})
    return before


# -- trial -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """Asks requests while others are examples."""

    gateway: Tunable
    snapshot: Snapshot
    caller: Caller
    progress: Progress

    async def compare_parts(self, requests: Sequence[EvalRequest]) -> Comparison:
        """Compare each request without examples with itself when the other parts are examples."""
        before = await self._evaluate({}, requests)
        reports = []
        for part in range(PARTS):
            self.progress("part", part, PARTS)
            others = [each for at, each in enumerate(requests) if at % PARTS != part]
            reports.append(await self._evaluate(examples_of(others), requests[part::PARTS]))
        outcomes = tuple(outcome for report in reports for outcome in report.outcomes)
        tools = tuple(tool for report in reports for tool in report.tools)
        self.progress("part", PARTS, PARTS)
        return compare(before, replace(before, outcomes=outcomes, tools=tools))

    async def find_hidden(
        self, requests: Sequence[EvalRequest], tools: Sequence[Entity]
    ) -> tuple[str, ...]:
        """Return the tools that are found only without examples.

        They are asked for by *requests*, and in the words of their own definitions.
        """
        every = [*requests, *offline_requests(tools, typos=False)]
        before = await self._evaluate({}, every)
        return compare(before, await self._evaluate(examples_of(requests), every)).lost_tools

    async def _evaluate(self, examples: Examples, requests: Sequence[EvalRequest]) -> EvalReport:
        entities = with_examples(self.snapshot.entities, examples)
        variant = await variant_of(self.gateway, self.snapshot, entities)
        return await evaluate(
            variant,
            RequestSet(requests=tuple(requests)),
            caller=self.caller,
            progress=self.progress,
        )


def with_examples(entities: Iterable[Entity], examples: Examples) -> Iterator[Entity]:
    """Yield *entities*, those with *examples* with these added."""
    for entity in entities:
        every = dict.fromkeys((*entity.hints.examples, *examples.get(entity.id, ())))
        yield entity.with_hints(examples=tuple(every)) if entity.id in examples else entity
