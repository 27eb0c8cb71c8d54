"""Values of the gateway as text and tables for people. Nothing here prints."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.cli.output import printable
from gateway.runtime.text import one_line
from gateway.types import (
    CODES,
    Diagnostic,
    Entity,
    Evidence,
    InvokeResult,
    Match,
    PathStep,
    SearchResult,
)

_SUMMARY_CHARS = 120
_IRI = "urn:tool-gateway:"


def summary(text: str) -> str:
    """Return the first sentence of a description, safe to print."""
    return printable(one_line(text, limit=_SUMMARY_CHARS))


def bold(text: str) -> Text:
    """Return *text* in bold, safe to print."""
    return Text(printable(text), style="bold")


def plain_table(*headings: str, rows: Iterable[Iterable[RenderableType]] = ()) -> Table:
    """Return a table without a frame; cells that are strings are cleaned by `printable`."""
    table = Table(box=None, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(printable(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def search_table(result: SearchResult) -> RenderableType:
    """Return the matches and supplements of a search."""
    if not result.matches:
        return no_matches(result)
    if result.mode == "browse":
        return _match_table("tools, by name", result.matches, is_ranked=False)
    lists = _match_lists(result, "tool", "call before", "related", "next steps")
    return Group(*(_match_table(name, matches) for name, matches in lists))


def _match_lists(result: SearchResult, *names: str) -> list[tuple[str, tuple[Match, ...]]]:
    lists = (result.matches, result.prerequisites, result.related, result.next_steps)
    return [(name, matches) for name, matches in zip(names, lists, strict=True) if matches]


def no_matches(result: SearchResult) -> RenderableType:
    """Return the message for a search without matches, with the nearest entity."""
    if not result.counts.eligible:
        return Text("Nothing was found: there is nothing of this kind, tag and status here.")
    lines = ["Nothing was found."]
    if result.nearest is not None:
        near = result.nearest
        confidence = f"confidence {near.confidence:.0%}"
        lines.append(f"Nearest: {printable(near.name)}, {confidence}: {summary(near.description)}")
    if result.unmatched:
        lines.append(f"Nothing holds these words: {printable(', '.join(result.unmatched))}")
    return Text("\n".join(lines))


def _match_table(name: str, matches: Sequence[Match], *, is_ranked: bool = True) -> Table:
    headings = (name, "confidence", "server", "about") if is_ranked else (name, "server", "about")
    rows = (
        (
            bold(match.name),
            *((_confidence(match.confidence),) if is_ranked else ()),
            match.server,
            summary(match.description),
        )
        for match in matches
    )
    return plain_table(*headings, rows=rows)


def _confidence(value: float) -> Text:
    style = "green" if value >= 0.6 else "yellow" if value >= 0.5 else "red"
    return Text(f"{value:.0%}", style=style)


def tool_table(entities: Sequence[Entity]) -> RenderableType:
    """Return the tools of a catalog."""
    rows = (
        (
            bold(entity.exposed_name),
            entity.server,
            ", ".join(entity.required),
            summary(entity.description),
        )
        for entity in entities
    )
    servers = ", ".join(sorted({entity.server for entity in entities}))
    return Group(
        plain_table("tool", "server", "needs", "about", rows=rows),
        Text(f"{len(entities)} tools; servers: {servers or 'none'}", style="dim"),
    )


def result_text(result: InvokeResult) -> str:
    """Return a tool's answer: texts and the types of other blocks, else structured content."""
    parts = [block.text or f"[{block.type}; --json shows it]" for block in result.content]
    if not parts and result.structured is not None:
        return json.dumps(result.structured, ensure_ascii=False, indent=2, default=str)
    return "\n".join(parts)


def vector_count(count: int, *, embedded: int) -> str:
    """Return how many vectors an index has and how many texts were embedded for it.

    There are more texts than vectors: a tool has several.
    """
    return f"{count}; texts embedded now: {embedded or 'none, all were in the store'}"


def explanation(result: SearchResult, *, diagnostics: Sequence[Diagnostic]) -> RenderableType:
    """Return each match with its evidence, then counts, times and *diagnostics*."""
    lists = _match_lists(result, "Matches", "Call before", "Related", "Next steps")
    parts = [_evidence_list(*item) for item in lists] or [no_matches(result)]
    counts = result.counts
    summary_line = Text(
        f"Ranked by {result.mode}: {counts.eligible} eligible, {counts.candidates} candidates, "
        f"{counts.window} in the window, {counts.graph_nodes} graph nodes visited, "
        f"{counts.embedded_texts} texts embedded.{' From the cache.' if result.cached else ''}"
    )
    return Group(*parts, summary_line, stage_times(result.stages), diagnostic_table(diagnostics))


def _evidence_list(name: str, matches: Sequence[Match]) -> RenderableType:
    lines = [Text(name, style="bold underline")]
    for rank, match in enumerate(matches, 1):
        head = Text.assemble(f"{rank}. ", (match.name, "bold"), f"  {match.id}  ")
        head.append(f"confidence {match.confidence:.2f}, score {match.score:.3f}", style="cyan")
        lines.append(head)
        lines.extend(Text(f"   {line}") for line in _evidence_lines(match))
    return Group(*lines, Text(""))


def _evidence_lines(match: Match) -> Iterator[str]:
    yield summary(match.description)
    yield evidence_text(match.evidence)
    if match.evidence.path:
        yield f"graph path: {path_text(match.evidence.path)}"
    if not match.direct:
        yield "outside the window: named, and callable by name, but no proxy of its own"


def evidence_text(evidence: Evidence) -> str:
    """Return one line with the scores and words that support a match."""
    scores = (
        ("vector cosine", evidence.vector),
        ("words", evidence.lexical),
        ("graph", evidence.graph),
    )
    parts = [f"{name} {score:.3f}" for name, score in scores if score is not None]
    if evidence.words:
        parts.append(f"met: {printable(', '.join(evidence.words))}")
    if evidence.exact_name:
        parts.append("named exactly")
    return "; ".join(parts) or "nothing but the graph's edges"


def path_text(path: Sequence[PathStep]) -> str:
    """Return a path of the graph as one line with the origins of its edges; "" for no path."""
    if not path:
        return ""
    node = path[0].subject
    parts = [_short_name(node)]
    for step in path:
        is_forward = step.subject == node
        node = step.object if is_forward else step.subject
        parts.append(f"-{step.predicate}->" if is_forward else f"<-{step.predicate}-")
        parts.append(_short_name(node))
    origins = (step.source or ("declared" if step.declared else "derived") for step in path)
    return printable(f"{' '.join(parts)} ({', '.join(dict.fromkeys(origins))})")


def _short_name(iri: str) -> str:
    return iri.removeprefix(_IRI).partition(":")[2] if iri.startswith(_IRI) else iri


def stage_times(stages: Mapping[str, float]) -> RenderableType:
    """Return the seconds of each stage as milliseconds."""
    parts = [f"{name} {seconds * 1000:.1f} ms" for name, seconds in stages.items()]
    return Text(f"Time: {', '.join(parts) or 'none was needed'}.")


def diagnostic_table(diagnostics: Sequence[Diagnostic]) -> RenderableType:
    """Return diagnostics with the meaning of their codes."""
    if not diagnostics:
        return Text("No diagnostics.")
    rows = ((item.code, CODES.get(item.code, ""), item.detail) for item in diagnostics)
    return plain_table("diagnostic", "meaning", "detail", rows=rows)
