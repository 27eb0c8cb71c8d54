"""The demo's spans, kept in memory and shown as a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One span with those under it, in the order in which they began."""

    name: str
    duration_ms: float
    attributes: Mapping[str, object]
    children: tuple[Node, ...]


class Spans:
    """Collects the spans of a gateway."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        """Give this to the gateway."""
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def tree(self) -> tuple[Node, ...]:
        """Give what ended until now, roots first."""
        spans = sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
        known = {span.context.span_id for span in spans if span.context}
        under: dict[int, list[ReadableSpan]] = {}
        for span in spans:
            parent = span.parent.span_id if span.parent else 0
            under.setdefault(parent if parent in known else 0, []).append(span)
        return _nodes(under, 0)


def _nodes(under: Mapping[int, Sequence[ReadableSpan]], parent: int) -> tuple[Node, ...]:
    return tuple(
        Node(
            name=span.name,
            duration_ms=((span.end_time or 0) - (span.start_time or 0)) / 1e6,
            attributes=dict(span.attributes or {}),
            children=_nodes(under, span.context.span_id) if span.context else (),
        )
        for span in under.get(parent, ())
    )


def shown(nodes: Sequence[Node]) -> RenderableType:
    """Draw the tree."""
    return Group(Text("Spans", style="bold"), *(_branch(node) for node in nodes))


def _branch(node: Node) -> Tree:
    label = Text.assemble((node.name, "bold"), f"  {node.duration_ms:.1f} ms")
    told = ", ".join(f"{key}={value}" for key, value in node.attributes.items())
    label.append(f"  {told}", style="dim")
    tree = Tree(label)
    for child in node.children:
        tree.children.append(_branch(child))
    return tree
