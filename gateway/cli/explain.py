"""Why a search found what it found, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from gateway.cli.screen import printable
from gateway.cli.show import about, nothing, plain_table
from gateway.types import CODES, Diagnostic, Evidence, Match, PathStep, SearchResult

_IRI = "urn:tool-gateway:"


def explained(result: SearchResult, *, with_notes: Sequence[Diagnostic]) -> RenderableType:
    """Show each match with its evidence, then the work, the time and the diagnostics."""
    lists = (
        ("Matches", result.matches),
        ("Call before", result.prerequisites),
        ("Related", result.related),
        ("Next steps", result.next_steps),
    )
    parts = [_list(name, given) for name, given in lists if given] or [nothing(result)]
    return Group(*parts, _work(result), times(result.stages), notes(with_notes))


def _list(name: str, given: Sequence[Match]) -> RenderableType:
    lines = [Text(name, style="bold underline")]
    for place, match in enumerate(given, 1):
        head = Text.assemble(f"{place}. ", (match.name, "bold"), f"  {match.id}  ")
        head.append(f"confidence {match.confidence:.2f}, score {match.score:.3f}", style="cyan")
        lines.append(head)
        lines.extend(Text(f"   {line}") for line in _reasons(match))
    return Group(*lines, Text(""))


def _reasons(match: Match) -> Iterator[str]:
    yield about(match.description)
    yield evidence(match.evidence)
    if match.evidence.path:
        yield f"graph path: {way(match.evidence.path)}"
    if not match.direct:
        yield "outside the window: named, and callable by name, but no proxy of its own"


def evidence(given: Evidence) -> str:
    """Say in one line what spoke for an entity."""
    parts = [
        f"{name} {number:.3f}"
        for name, number in (
            ("vector cosine", given.vector),
            ("words", given.lexical),
            ("graph", given.graph),
        )
        if number is not None
    ]
    if given.words:
        parts.append(f"met: {printable(', '.join(given.words))}")
    if given.exact_name:
        parts.append("named exactly")
    return "; ".join(parts) or "nothing but the graph's edges"


def way(path: Sequence[PathStep]) -> str:
    """Write a path of the graph as one line, with where its edges come from; "" for none."""
    if not path:
        return ""
    here = path[0].subject
    parts = [short(here)]
    for step in path:
        onward = step.subject == here
        here = step.object if onward else step.subject
        parts.append(f"-{step.predicate}->" if onward else f"<-{step.predicate}-")
        parts.append(short(here))
    return printable(f"{' '.join(parts)} ({', '.join(dict.fromkeys(map(_origin, path)))})")


def _origin(step: PathStep) -> str:
    return step.source or ("declared" if step.declared else "derived")


def short(iri: str) -> str:
    """Drop what every name in our graphs begins with."""
    return iri.removeprefix(_IRI).partition(":")[2] if iri.startswith(_IRI) else iri


def _work(result: SearchResult) -> RenderableType:
    counts = result.counts
    return Text(
        f"Ranked by {result.mode}: {counts.eligible} eligible, {counts.candidates} candidates, "
        f"{counts.window} in the window, {counts.graph_nodes} graph nodes visited, "
        f"{counts.embedded_texts} texts embedded.{' From the cache.' if result.cached else ''}"
    )


def times(stages: Mapping[str, float]) -> RenderableType:
    """Show the seconds of each stage, as milliseconds."""
    parts = [f"{name} {seconds * 1000:.1f} ms" for name, seconds in stages.items()]
    return Text(f"Time: {', '.join(parts) or 'none was needed'}.")


def notes(given: Sequence[Diagnostic]) -> RenderableType:
    """Show diagnostics with the meaning of their codes."""
    if not given:
        return Text("No diagnostics.")
    table = plain_table("diagnostic", "meaning", "detail")
    for each in given:
        table.add_row(each.code, CODES.get(each.code, ""), printable(each.detail))
    return table
