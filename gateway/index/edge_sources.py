"""Further sources of edges between tools and of example requests, such as plugins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from gateway.errors import Failed, attempt_call
from gateway.index.tool_graph import node_of
from gateway.types import Diagnostic, Entity
from graphs.facts.fact import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEdge:
    """One edge between two tools, with the place where it is stated."""

    subject: str
    """Id of the tool where the edge starts. `object` is the id of the tool where it ends."""
    predicate: str
    """Name of a predicate in `graphs.facts.vocabulary`, such as ``nextStep``."""
    object: str
    weight: float = 1.0
    """Certainty of the edge, in (0, 1]."""
    path: str = ""
    """Name of the file that states the edge; empty if it does not come from a file."""
    line: int = 0
    """Line number in the file, from 1; 0 if unknown."""


class EdgeSource(Protocol):
    """A source of declared edges and example requests. The host's edges take precedence."""

    @property
    def name(self) -> str:
        """Origin of the edges in explanations and exports, such as ``bundled``."""
        ...

    @property
    def order(self) -> int:
        """Position among all sources, lowest first."""
        ...

    @property
    def version(self) -> str:
        """Version of the edges. Indexes saved with another version are compiled again."""
        ...

    def edges(self, tools: Sequence[Entity]) -> Iterable[ToolEdge]:
        """Return the edges between *tools*, which are all tools of the catalog, sorted by name.

        Called on the event loop in each build after a change of the catalog, so it must not block.
        Edges with unknown ends are ignored.
        """
        ...

    def examples(self, tools: Sequence[Entity]) -> Mapping[str, Sequence[str]]:
        """Return requests that a tool serves, keyed by its id; tools without examples are absent.

        Called as `edges`, but with the tools in any order.
        """
        ...


def read_examples(
    source: EdgeSource, tools: Sequence[Entity]
) -> Mapping[str, Sequence[str]] | Diagnostic:
    """Return the examples of *source* for *tools*, or a diagnostic if it fails."""
    examples = attempt_call(partial(source.examples, tools))
    return _failure(source, "examples", examples) if isinstance(examples, Failed) else examples


def read_edges(source: EdgeSource, tools: Sequence[Entity]) -> tuple[Fact, ...] | Diagnostic:
    """Return the edges of *source* between *tools* as declared facts, or a diagnostic if it
    fails.
    """
    facts = attempt_call(lambda: tuple(_edge_facts(source, tools)))
    return _failure(source, "edges", facts) if isinstance(facts, Failed) else facts


def _failure(source: EdgeSource, what: str, failed: Failed) -> Diagnostic:
    detail = f"the {what} of {source.name!r} are left out: {failed.reason}"
    return Diagnostic(stage="graph", code="plugin_failed", detail=detail)


def _edge_facts(source: EdgeSource, tools: Sequence[Entity]) -> Iterator[Fact]:
    known = {tool.id for tool in tools}
    for edge in source.edges(tools):
        if edge.subject in known and edge.object in known:
            yield Fact(
                subject=node_of(edge.subject),
                predicate=edge.predicate,
                object=node_of(edge.object),
                literal=False,
                weight=edge.weight,
                path=edge.path,
                line=edge.line,
                origin=source.name,
                declared=True,
            )
