"""Tuning: test requests become search examples of the tools that serve them.

* Examples change a tool's vector (`gateway.index.compiler`) and add to its searched words.
* The gain is measured by cross-validation: each part of the requests is tested with the others as
  examples. Examples are kept only if recall@5 certainly rises and no tool is lost.
* Kept examples become rules of the catalog, and apply from the next search on.
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
from gateway.runtime.text import counted
from gateway.types import ANYONE, Caller, Entity

MIN_REQUESTS = 30
"""Minimum number of usable requests for a reliable result."""
PARTS = 5
JUDGED = "recall@5"
_SOURCES = frozenset({"user", "model", "usage"})
"""Sources of usable requests. Requests by rules consist of the tools' own words."""
Examples = Mapping[str, tuple[str, ...]]
"""Texts of requests, keyed by the id of the tool that serves them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Result of tuning."""

    requests: int
    """Number of usable requests."""
    kept: bool
    reason: str
    """Reason why the examples are kept or rejected, in words."""
    comparison: Comparison | None = None
    """Comparison of requests without and with examples of the other parts; None if not made."""
    unfound: tuple[str, ...] = ()
    """Tools that examples of other tools would hide."""
    examples: Examples
    """New examples; empty if rejected."""
    before: Examples
    """Earlier examples of the same tools, from a previous tuning or the catalog's rules."""


async def tune(
    gateway: Tunable,
    requests: RequestSet,
    *,
    caller: Caller = ANYONE,
    progress: Progress = lambda *_: None,
) -> Tuning:
    """Make requests examples of the tools that serve them, if other requests improve.

    Args:
        gateway: `Gateway`, in which only the catalog's rules change.
        requests: Requests that name tools by id or name. Requests by rules are ignored.
        caller: Caller of the searches.
        progress: Called with ``part`` or ``requests``, the finished number and the total number.

    Raises:
        InvalidRequestError: If a tool is unknown, or several tools have its name.
        StoreError: If the examples cannot be written.
    """
    snapshot = await gateway.snapshot(vectors=True)
    filters = caller.filters()
    frozen = freeze(requests.requests, snapshot, filters)
    usable = [
        request for request in frozen.requests if request.source in _SOURCES and request.wanted
    ]
    if len(usable) < MIN_REQUESTS:
        reason = f"too few requests to learn from ({len(usable)}): give {MIN_REQUESTS} or more"
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
        before = await _write_examples(gateway.catalog, snapshot, examples)
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
    """Restore the examples from before *tuning*.

    Raises:
        StoreError: If the examples cannot be written.
    """
    await _write_examples(gateway.catalog, await gateway.snapshot(), tuning.before)


def examples_of(requests: Iterable[EvalRequest]) -> dict[str, tuple[str, ...]]:
    """Return the texts of *requests*, keyed by the id of each tool that serves them."""
    texts_by_tool: defaultdict[str, list[str]] = defaultdict(list)
    for request in requests:
        for tool in dict.fromkeys(tool for group in request.wanted for tool in group):
            texts_by_tool[tool].append(request.text)
    return {tool: tuple(dict.fromkeys(texts)) for tool, texts in texts_by_tool.items()}


def _reason(comparison: Comparison, unfound: Sequence[str]) -> str:
    gain = comparison.changes[JUDGED]
    points = f"{100 * gain.difference:+.1f} points of {JUDGED}, {100 * gain.low:+.1f} at least"
    if gain.low <= 0:
        return f"not kept, because the gain is uncertain: {points}"
    if unfound:
        named = ", ".join(unfound[:5])
        count = counted(len(unfound), "tool")
        return f"not kept, because {count} would no longer be found: {named}"
    return f"kept: {points}, on requests that were not examples"


async def _write_examples(
    catalog: Catalog, snapshot: Snapshot, examples: Examples
) -> dict[str, tuple[str, ...]]:
    """Write *examples* to the catalog's rules. Return the earlier examples of the same tools."""
    tools = {entity.id: entity for entity in snapshot.entities}
    before = {}
    for key, texts in examples.items():
        if entity := tools.get(key):
            before[key] = catalog.governed(entity).examples
            await catalog.govern(entity, {"examples": list(texts)})
    return before


# -- cross-validation ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """Cross-validation: evaluates requests with other requests as examples."""

    gateway: Tunable
    snapshot: Snapshot
    caller: Caller
    progress: Progress

    async def compare_parts(self, requests: Sequence[EvalRequest]) -> Comparison:
        """Compare requests without examples and with those of the other parts as examples."""
        before = await self._evaluate({}, requests)
        reports = []
        for part in range(PARTS):
            self.progress("part", part, PARTS)
            others = [
                request for position, request in enumerate(requests) if position % PARTS != part
            ]
            reports.append(await self._evaluate(examples_of(others), requests[part::PARTS]))
        outcomes = tuple(outcome for report in reports for outcome in report.outcomes)
        tools = tuple(tool for report in reports for tool in report.tools)
        self.progress("part", PARTS, PARTS)
        return compare(before, replace(before, outcomes=outcomes, tools=tools))

    async def find_hidden(
        self, requests: Sequence[EvalRequest], tools: Sequence[Entity]
    ) -> tuple[str, ...]:
        """Return the ids of tools that are found only without the examples.

        The searches are *requests*, and generated requests in the words of the tools.
        """
        all_requests = [*requests, *offline_requests(tools, typos=False)]
        before = await self._evaluate({}, all_requests)
        return compare(before, await self._evaluate(examples_of(requests), all_requests)).lost_tools

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
    """Yield *entities* with *examples* added to their search hints."""
    for entity in entities:
        all_examples = dict.fromkeys((*entity.hints.examples, *examples.get(entity.id, ())))
        yield entity.with_hints(examples=tuple(all_examples)) if entity.id in examples else entity
