"""The graph -> what people and programs read. Nothing here prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from gateway.cli.screen import printable
from gateway.cli.show import plain_table
from gateway.search.edges import ShownEdge
from gateway.search.index.toolgraph import ToolGraph
from graphs import Answer, Term


def counted(graph: ToolGraph, found: Sequence[ShownEdge], *, tools: int) -> dict[str, object]:
    """Count nodes, *tools* and edges: by predicate, declared or derived, and by rule."""
    declared = Counter(edge.predicate for edge in found if edge.declared)
    derived = Counter(edge.predicate for edge in found if not edge.declared)
    return {
        "nodes": graph.index.node_count,
        "documents": graph.index.document_count,
        "tools": tools,
        "edges": len(found),
        "declared": declared.total(),
        "derived": derived.total(),
        "predicates": {
            name: {"declared": declared[name], "derived": derived[name]}
            for name in sorted(declared | derived)
        },
        "rules": dict(sorted(Counter(edge.rule for edge in found if edge.rule).items())),
    }


def summary(counts: Mapping[str, object]) -> RenderableType:
    """Show what `counted` counted."""
    head = plain_table("graph", "")
    for name in ("nodes", "documents", "tools", "edges", "declared", "derived"):
        head.add_row(name, str(counts[name]))
    predicates, rules = (_pairs(counts[name]) for name in ("predicates", "rules"))
    by_predicate = plain_table("edges by predicate", "declared", "derived")
    for name, both in predicates:
        by_predicate.add_row(name, *(str(number) for _, number in _pairs(both)))
    by_rule = plain_table("derived by rule", "edges")
    for name, number in rules:
        by_rule.add_row(name, str(number))
    shown = (by_predicate, predicates), (by_rule, rules)
    return Group(head, *(table for table, rows in shown if rows))


def _pairs(value: object) -> list[tuple[str, object]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def directed(tool: str, found: Sequence[ShownEdge]) -> list[dict[str, object]]:
    """Say of each edge around *tool* where it leads, or where it comes from."""
    return [
        {
            "direction": "out" if edge.subject == tool else "in",
            "predicate": edge.predicate,
            "other": edge.object if edge.subject == tool else edge.subject,
            "declared": edge.declared,
            "rule": edge.rule,
            "source": edge.source,
        }
        for edge in found
    ]


def near(tool: str, found: Sequence[ShownEdge]) -> RenderableType:
    """Show the edges around *tool*."""
    if not found:
        return Text(f"No edge starts or ends at {printable(tool)}.")
    table = plain_table(printable(tool), "predicate", "other end", "from")
    for row in directed(tool, found):
        origin = row["source"] or (f"rule {row['rule']}" if row["rule"] else "declared")
        cells = row["predicate"], row["other"], origin
        table.add_row(
            "->" if row["direction"] == "out" else "<-", *(printable(str(each)) for each in cells)
        )
    return table


def answered(answer: Answer) -> RenderableType:
    """Show what a query answered."""
    if answer.value is not None:
        return Text("yes" if answer.value else "no")
    if not answer.rows:
        return Text("Nothing was found.")
    table = plain_table(*map(printable, answer.columns))
    for row in answer.rows:
        table.add_row(*map(_cell, row))
    return table


def _cell(term: Term | None) -> str:
    if term is None:
        return ""
    return printable(term.value + (f"@{term.language}" if term.language else ""))
