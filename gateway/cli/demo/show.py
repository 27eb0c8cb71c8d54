"""The demo on a screen. Nothing here prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from gateway.chat.events import Called, Event, Requested, Searched
from gateway.cli import explain
from gateway.cli.demo.run import Outcome, Totals
from gateway.cli.demo.scene import Scene
from gateway.cli.screen import printable
from gateway.cli.show import plain_table, vectors
from gateway.types import Match

_MOST_SHOWN = 5
_MOST_ADDED = 3
_RESULT_CHARS = 400


def opening(scene: Scene) -> RenderableType:
    """Say who plays: servers, tools, the model."""
    report = scene.report
    servers = sorted({entity.server for entity in scene.entities})
    if scene.scripted:
        model = Text(
            "The model is SCRIPTED: neither OPENAI_API_KEY nor OPENAI_BASE_URL is set, so a "
            "small policy answers on the loopback interface, in OpenAI's wire format. It does "
            "not know the catalog.",
            style="yellow",
        )
    else:
        model = Text(f"The model is {scene.model}, as configured in the environment.")
    return Group(
        Text(
            f"{report.tools} tools from {', '.join(servers)}; "
            f"vectors: {vectors(report.vectors, embedded=report.embedded_texts)}; "
            f"{report.graph_nodes} graph nodes; ready in {report.duration_s:.1f} s."
        ),
        model,
    )


def conversation(number: int, outcome: Outcome) -> RenderableType:
    """Show one conversation, event by event."""
    lines: list[RenderableType] = [
        Text(""),
        Rule(f"{number}. {outcome.request.title}", align="left"),
        _said("User", outcome.request.text),
    ]
    for event in outcome.events:
        lines.extend(_event(event))
    return Group(*lines, *_verdict(outcome))


def _event(event: Event) -> Iterator[RenderableType]:
    if isinstance(event, Requested):
        names = ", ".join(event.tools)
        yield _said(
            f"Turn {event.turn}, tools the model sees",
            f"{names} (about {event.definition_tokens} tokens)",
        )
    elif isinstance(event, Searched):
        yield _said("Model searches", " | ".join(event.queries))
        yield Padding(_found(event), (0, 0, 0, 2))
    elif isinstance(event, Called):
        arguments = json.dumps(dict(event.arguments), ensure_ascii=False, default=str)
        yield _said("Model calls", f"{event.tool} {arguments}")
        real = event.result.text if event.result else event.error
        origin = event.result.tool_id if event.result else "nothing was sent"
        yield _said(f"Real result of {origin}", _clipped(real))
    else:
        yield _said("Answer", event.text)


def _said(who: str, text: str) -> RenderableType:
    return Text.assemble((f"{who}: ", "bold cyan"), printable(text))


def _clipped(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _RESULT_CHARS else f"{flat[:_RESULT_CHARS]}…"


def _found(event: Searched) -> RenderableType:
    result = event.result
    table = plain_table("found", "confidence", "cosine", "words that met", "graph path")
    for match in result.matches[:_MOST_SHOWN]:
        _row(table, match, Text(match.name, style="bold"))
    for kind, given in (
        ("call before", result.prerequisites),
        ("related", result.related),
        ("next step", result.next_steps),
    ):
        for match in given[:_MOST_ADDED]:
            _row(table, match, Text(f"{match.name} ({kind})", style="dim"))
    said = [explain.notes(result.diagnostics)] if result.diagnostics else []
    return Group(table, explain.times(result.stages), *said)


def _row(table: Table, match: Match, name: Text) -> None:
    evidence = match.evidence
    cosine = "" if evidence.vector is None else f"{evidence.vector:.3f}"
    words = printable(", ".join(evidence.words))
    table.add_row(name, f"{match.confidence:.2f}", cosine, words, explain.way(evidence.path))


def _verdict(outcome: Outcome) -> Iterator[RenderableType]:
    if not outcome.faults:
        file = outcome.request.expected_file
        also = f", and {file} exists" if file else ""
        done = f"OK: {outcome.request.expected_tool} was really called{also}"
        yield Text(f"{done} ({outcome.duration_s:.2f} s).", style="green")
    for fault in outcome.faults:
        yield Text(f"FAILED: {printable(fault)}.", style="bold red")


def closing(totals: Totals) -> RenderableType:
    """Show the table of costs."""
    table = plain_table("In total", "")
    table.add_row("tools in the catalog", f"{totals.tools} of {totals.servers} servers")
    table.add_row("requests to the model", str(totals.model_requests))
    table.add_row("tokens if every schema were sent (estimate)", f"{totals.all_schema_tokens:,}")
    saved = 1 - totals.sent_schema_tokens / max(totals.all_schema_tokens, 1)
    sent = f"{totals.sent_schema_tokens:,} ({saved:.0%} less)"
    table.add_row("schema tokens really sent (estimate)", sent)
    counted = (
        f"{totals.prompt_tokens:,} in ({totals.cached_tokens:,} cached), "
        f"{totals.completion_tokens:,} out"
    )
    table.add_row("tokens as the model's server counted them", counted)
    table.add_row("prompt prefix that stayed the same", f"{totals.prefix_stability:.0%}")
    for stage, seconds in totals.seconds.items():
        table.add_row(f"time, {stage}", _time(seconds))
    table.add_row("time, the same searches again", _time(totals.repeated_s))
    hits = f"{totals.cache_hits} of {totals.cache_lookups} look-ups"
    table.add_row("cache hits, queries and results", hits)
    table.add_row("vectors of the index", vectors(totals.vectors, embedded=totals.embedded_texts))
    return Group(Text(""), Rule("What it cost", align="left"), table)


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def verdict(outcomes: Sequence[Outcome]) -> RenderableType:
    """Say how it ended."""
    good = sum(not outcome.faults for outcome in outcomes)
    style = "green" if good == len(outcomes) else "bold red"
    return Text(f"{good} of {len(outcomes)} conversations called the right tool.", style=style)
