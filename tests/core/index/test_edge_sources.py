"""Edges of plugins in the compiled graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from gateway.index import Snapshot, SnapshotCompiler
from gateway.index.edge_sources import ToolEdge
from gateway.options import GraphOptions
from gateway.types import Entity
from graphs.markdown import Document, Edge
from tests.fakes import entity, tool

ASK, PAY, SIGN = (
    entity(tool(name, f"{name} things"), server="s") for name in ("ask", "pay", "sign")
)
NEXT = ToolEdge(
    subject=ASK.id, predicate="nextStep", object=PAY.id, weight=0.9, path="s.md", line=12
)


@dataclass
class PluginEdges:
    """An `EdgeSource` with fixed edges and examples. It counts the calls of `edges`."""

    stated: Sequence[ToolEdge]
    name: str = "acme"
    order: int = 0
    version: str = "1"
    calls: int = 0
    requests: Sequence[str] = ()
    """Examples of the tool ``ask``."""

    def edges(self, tools: Sequence[Entity]) -> Iterable[ToolEdge]:
        """Return the fixed edges."""
        self.calls += 1
        if not self.stated:
            raise LookupError("no edges")
        return self.stated

    def examples(self, tools: Sequence[Entity]) -> Mapping[str, Sequence[str]]:
        """Return the fixed examples."""
        if not self.stated:
            raise LookupError("no examples")
        return {ASK.id: self.requests}


def compile_with(
    *sources: PluginEdges, documents: Sequence[Document] = (), tools: Sequence[Entity] = (ASK, PAY)
) -> Snapshot:
    compiler = SnapshotCompiler(GraphOptions(), edge_sources=sources)
    compiler.prepare(tools, documents)
    return compiler.compile(documents=documents)


def edges(snapshot: Snapshot) -> list[tuple[str, str, float, bool, str]]:
    """Return the edges between tools: predicate, place, weight, declared, origin."""
    assert snapshot.graph is not None
    return [
        (fact.predicate, f"{fact.path}:{fact.line}", fact.weight, fact.declared, fact.origin)
        for fact in snapshot.graph.index.edges
        if fact.predicate != "memberOf"
    ]


def test_edges_of_a_plugin_are_declared_and_name_their_place() -> None:
    snapshot = compile_with(PluginEdges([NEXT]))

    assert [("nextStep", "s.md:12", 0.9, True, "acme")] == edges(snapshot)
    assert snapshot.graph is not None
    (step,) = snapshot.graph.steps(
        snapshot.graph.index.edges_from(snapshot.graph.nodes[0], "next_step")
    )
    assert (ASK.id, PAY.id, "acme/s.md:12", True) == (
        step.subject, step.object, step.source, step.declared,
    )  # fmt: skip


def test_edges_with_unknown_ends_are_ignored() -> None:
    assert [] == edges(compile_with(PluginEdges([replace(NEXT, object=SIGN.id)])))


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_the_same_edge_of_the_host_takes_precedence(weight: float) -> None:
    plan = Document(
        id="plan",
        title="plan",
        path="plan.md",
        edges=(Edge(subject=ASK.id, predicate="nextStep", object=PAY.id, weight=weight, line=3),),
    )

    snapshot = compile_with(PluginEdges([NEXT]), documents=[plan])

    assert [("nextStep", "plan.md:3", weight, True, "")] == edges(snapshot)


@pytest.mark.parametrize("predicate", ["nextStep", ""])
def test_the_host_can_forbid_an_edge_of_a_plugin(predicate: str) -> None:
    ban = Edge(subject=ASK.id, predicate=predicate, object=PAY.id)
    plan = Document(id="plan", title="plan", forbidden=(ban,))

    assert [] == edges(compile_with(PluginEdges([NEXT]), documents=[plan]))


def test_a_failing_plugin_loses_its_edges_with_a_diagnostic() -> None:
    snapshot = compile_with(PluginEdges([], name="broken"), PluginEdges([NEXT]))

    assert ["acme"] == [origin for *_, origin in edges(snapshot)]
    assert {("graph", "plugin_failed")} == {
        (note.stage, note.code) for note in snapshot.diagnostics
    }
    assert [
        "the examples of 'broken' are left out: LookupError",
        "the edges of 'broken' are left out: LookupError",
    ] == [note.detail for note in snapshot.diagnostics]


def test_edges_are_read_again_only_if_the_catalog_changed() -> None:
    source = PluginEdges([NEXT, replace(NEXT, object=SIGN.id)])
    compiler = SnapshotCompiler(GraphOptions(), edge_sources=[source])

    snapshots = []
    for tools in ([ASK, PAY], [ASK, PAY], [ASK, PAY, SIGN]):
        compiler.prepare(tools)
        snapshots.append(compiler.compile())

    assert 2 == source.calls
    assert [1, 1, 2] == [len(edges(snapshot)) for snapshot in snapshots]


def test_examples_of_plugins_follow_those_of_hints_and_documents() -> None:
    """A tool without added examples stays the same object."""
    asking = ASK.with_hints(examples=("may I ask", "a question"))
    plan = Document(
        id="plan",
        title="plan",
        edges=(Edge(subject=ASK.id, predicate="example", object="tell me"),),
    )
    hidden = Document(
        id="odd",
        title="odd",
        declared=False,
        edges=(Edge(subject=ASK.id, predicate="example", object="send money"),),
    )
    source = PluginEdges([NEXT], requests=("say it", "may I ask"))

    snapshot = compile_with(source, documents=[plan, hidden], tools=[asking, PAY])

    (first, second) = snapshot.entities
    assert ("may I ask", "a question", "tell me", "say it") == first.hints.examples
    assert second is PAY
