"""The page Activity: the last spans as traces, and what they add up to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, get_args

from gateway.serve.console.spans import Kind, SpanRecord

KINDS: tuple[str, ...] = get_args(Kind)
"""A trace is shown by its first span of the first of these kinds."""
OUTCOMES = ("ok", "failed")
_WORK: tuple[Kind, ...] = ("call", "search", "model", "build")
"""Kinds whose failures are counted: those around them fail with them."""


class TreeSpan(NamedTuple):
    """A span, and how many spans are above it."""

    level: int
    span: SpanRecord


Tree: TypeAlias = tuple[TreeSpan, ...]
"""A root and all below it, each parent before its children, in the order of their start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFilter:
    """Which traces are shown: those with a span that meets all of this; "" and 0 are any."""

    kind: str = ""
    outcome: str = ""
    """``failed``; or ``ok``, if none of these spans failed."""
    text: str = ""
    """In the name, the target, the server or the error, without regard to case."""
    minutes: int = 0
    """How long ago a span may have started."""

    def admits(self, span: SpanRecord, now: float) -> bool:
        """Return whether *span* meets all but the outcome at *now*, Unix time in seconds."""
        words = f"{span.name} {span.target} {span.server} {span.error}".casefold()
        return (
            self.kind in {"", span.kind}
            and self.text.casefold() in words
            and (not self.minutes or span.start >= now - 60 * self.minutes)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """One trace."""

    subject: SpanRecord
    """The span that it is shown by."""
    spans: int
    failed: int
    """How many of them failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTokens:
    """The requests to one model, and their tokens as the service reports them."""

    operation: str
    model: str
    requests: int
    input: int
    output: int
    cached: int
    """Of the input."""
    reasoning: int
    """Of the output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureCount:
    """How often something failed."""

    kind: str
    server: str
    target: str
    error: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What spans add up to."""

    spans: int
    start: float
    """Of the first of them, Unix time in seconds; 0.0 if there is none."""
    searches: int
    cached: int
    """Searches that the cache answered."""
    calls: int
    """Of tools of the catalog."""
    turns: int
    """Requests to the model of a conversation."""
    saved_tokens: int
    """In conversations, against sending every schema with every turn."""
    models: tuple[ModelTokens, ...]
    """By name."""
    failures: tuple[FailureCount, ...]
    """The most frequent first."""


def trees(spans: Sequence[SpanRecord]) -> list[Tree]:
    """Return *spans* as trees, the newest root first; one whose parent is not there is a root."""
    ids = {(span.trace, span.id) for span in spans}
    roots: list[SpanRecord] = []
    children = defaultdict[tuple[str, str], list[SpanRecord]](list)
    for span in sorted(spans, key=lambda span: (span.start, span.id)):
        parent = span.trace, span.parent
        (children[parent] if parent in ids else roots).append(span)
    return [_tree(root, children) for root in reversed(roots)]


def _tree(root: SpanRecord, children: dict[tuple[str, str], list[SpanRecord]]) -> Tree:
    tree, rest = [], [TreeSpan(0, root)]
    while rest:
        level, span = entry = rest.pop()
        tree.append(entry)
        below = children.get((span.trace, span.id), ())
        rest += [TreeSpan(level + 1, child) for child in reversed(below)]
    return tuple(tree)


def select(
    found: Sequence[Tree], wanted: TraceFilter, now: float
) -> Iterator[tuple[TraceSummary, Tree]]:
    """Yield those of *found* that *wanted* admits, each with its summary."""
    for tree in found:
        spans = [span for _, span in tree if wanted.admits(span, now)]
        failed = [span for span in spans if span.error]
        if wanted.outcome:
            spans = failed if wanted.outcome == "failed" else [] if failed else spans
        if spans:
            subject = min(spans, key=lambda span: KINDS.index(span.kind))
            count = sum(bool(span.error) for _, span in tree)
            yield TraceSummary(subject=subject, spans=len(tree), failed=count), tree


def totals(spans: Sequence[SpanRecord]) -> Totals:
    """Return what *spans* add up to."""
    kinds = Counter(span.kind for span in spans)
    failures = Counter(
        (span.kind, span.server, span.target, span.error)
        for span in spans
        if span.error and span.kind in _WORK
    )
    return Totals(
        spans=len(spans),
        start=min((span.start for span in spans), default=0.0),
        searches=kinds["search"],
        cached=_sum(spans, "gateway.cache.hit"),
        calls=kinds["call"],
        turns=_sum(spans, "gateway.chat.turns"),
        saved_tokens=_sum(spans, "gateway.chat.saved_tokens"),
        models=tuple(_models(spans)),
        failures=tuple(
            FailureCount(kind=kind, server=server, target=target, error=error, count=count)
            for (kind, server, target, error), count in failures.most_common()
        ),
    )


def _models(spans: Sequence[SpanRecord]) -> Iterator[ModelTokens]:
    requests = defaultdict[tuple[str, str], list[SpanRecord]](list)
    for span in spans:
        if span.kind == "model":
            requests[str(span.attributes["gen_ai.operation.name"]), span.target].append(span)
    for (operation, model), own in sorted(requests.items()):
        yield ModelTokens(
            operation=operation,
            model=model,
            requests=len(own),
            input=_sum(own, "gen_ai.usage.input_tokens"),
            output=_sum(own, "gen_ai.usage.output_tokens"),
            cached=_sum(own, "gen_ai.usage.cache_read.input_tokens"),
            reasoning=_sum(own, "gen_ai.usage.reasoning.output_tokens"),
        )


def _sum(spans: Sequence[SpanRecord], name: str) -> int:
    return sum(int(span.attributes.get(name, 0)) for span in spans)
