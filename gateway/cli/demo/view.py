"""The demo as text for people, and as data for ``--json``. Nothing here prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text
from rich.tree import Tree

from gateway.chat.events import Called, Event, Requested, Searched
from gateway.cli.demo.conversations import Outcome, Totals
from gateway.cli.demo.stage import Stage
from gateway.cli.demo.telemetry import SpanNode
from gateway.cli.output import printable
from gateway.cli.tables import (
    bold,
    diagnostic_table,
    path_text,
    plain_table,
    stage_times,
    vector_count,
)
from gateway.types import Match

_MAX_MATCHES = 5
_MAX_SUPPLEMENTS = 3
_RESULT_CHARS = 400


def opening(stage: Stage) -> RenderableType:
    """Return the introduction: servers, tools, the model."""
    report = stage.report
    servers = sorted({entity.server for entity in stage.entities})
    model = Text(f"The model is {stage.model}, as configured in the environment.")
    if stage.is_scripted:
        model = Text(
            "The model is SCRIPTED: neither OPENAI_API_KEY nor OPENAI_BASE_URL is set, so a "
            "small policy answers on the loopback interface, in OpenAI's wire format. It does "
            "not know the catalog.",
            style="yellow",
        )
    return Group(
        Text(
            f"{report.tools} tools from {', '.join(servers)}; "
            f"vectors: {vector_count(report.vectors, embedded=report.embedded_texts)}; "
            f"{report.graph_nodes} graph nodes; ready in {report.duration_s:.1f} s."
        ),
        model,
    )


def conversation(number: int, outcome: Outcome) -> RenderableType:
    """Return one conversation, event by event."""
    request = outcome.request
    lines: list[RenderableType] = [
        Text(""),
        Rule(f"{number}. {request.title}", align="left"),
        _labelled("User", request.text),
    ]
    for event in outcome.events:
        lines.extend(_event_lines(event))
    if not outcome.faults:
        file = f", and {request.expected_file} exists" if request.expected_file else ""
        done = f"OK: {request.expected_tool} was really called{file}"
        lines.append(Text(f"{done} ({outcome.duration_s:.2f} s).", style="green"))
    lines += [Text(f"FAILED: {printable(fault)}.", style="bold red") for fault in outcome.faults]
    return Group(*lines)


def _event_lines(event: Event) -> Iterator[RenderableType]:
    if isinstance(event, Requested):
        tools = f"{', '.join(event.tools)} (about {event.definition_tokens} tokens)"
        yield _labelled(f"Turn {event.turn}, tools the model sees", tools)
    elif isinstance(event, Searched):
        yield _labelled("Model searches", " | ".join(event.queries))
        yield Padding(_search_table(event), (0, 0, 0, 2))
    elif isinstance(event, Called):
        arguments = json.dumps(dict(event.arguments), ensure_ascii=False, default=str)
        yield _labelled("Model calls", f"{event.tool} {arguments}")
        origin = event.result.tool_id if event.result else "nothing was sent"
        text = " ".join((event.result.text if event.result else event.error).split())
        clipped = text if len(text) <= _RESULT_CHARS else f"{text[:_RESULT_CHARS]}…"
        yield _labelled(f"Real result of {origin}", clipped)
    else:
        yield _labelled("Answer", event.text)


def _labelled(label: str, text: str) -> RenderableType:
    return Text.assemble((f"{label}: ", "bold cyan"), printable(text))


def _search_table(event: Searched) -> RenderableType:
    result = event.result
    supplements = (
        ("call before", result.prerequisites),
        ("related", result.related),
        ("next step", result.next_steps),
    )
    rows = [_match_row(match, bold(match.name)) for match in result.matches[:_MAX_MATCHES]]
    rows += [
        _match_row(match, Text(f"{match.name} ({kind})", style="dim"))
        for kind, matches in supplements
        for match in matches[:_MAX_SUPPLEMENTS]
    ]
    headings = ("found", "confidence", "cosine", "words that met", "graph path")
    table = plain_table(*headings, rows=rows)
    notes = [diagnostic_table(result.diagnostics)] if result.diagnostics else []
    return Group(table, stage_times(result.stages), *notes)


def _match_row(match: Match, name: Text) -> tuple[RenderableType, ...]:
    evidence = match.evidence
    cosine = "" if evidence.vector is None else f"{evidence.vector:.3f}"
    words = ", ".join(evidence.words)
    return name, f"{match.confidence:.2f}", cosine, words, path_text(evidence.path)


def closing(totals: Totals) -> RenderableType:
    """Return the table of costs."""
    saved = 1 - totals.sent_schema_tokens / max(totals.all_schema_tokens, 1)
    counted = f"{totals.prompt_tokens:,} in ({totals.cached_tokens:,} cached)"
    counted += f", {totals.completion_tokens:,} out"
    rows = [
        ("tools in the catalog", f"{totals.tools} of {totals.servers} servers"),
        ("requests to the model", str(totals.model_requests)),
        ("tokens if every schema were sent (estimate)", f"{totals.all_schema_tokens:,}"),
        (
            "schema tokens really sent (estimate)",
            f"{totals.sent_schema_tokens:,} ({saved:.0%} less)",
        ),
        ("tokens as the model's server counted them", counted),
        ("prompt prefix that stayed the same", f"{totals.prefix_stability:.0%}"),
        *((f"time, {stage}", _duration(seconds)) for stage, seconds in totals.seconds.items()),
        ("time, the same searches again", _duration(totals.repeated_s)),
        (
            "cache hits, queries and results",
            f"{totals.cache_hits} of {totals.cache_lookups} look-ups",
        ),
        ("vectors of the index", vector_count(totals.vectors, embedded=totals.embedded_texts)),
    ]
    table = plain_table("In total", "", rows=rows)
    return Group(Text(""), Rule("What it cost", align="left"), table)


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def verdict(outcomes: Sequence[Outcome]) -> RenderableType:
    """Return the last line: how many conversations went well."""
    good = sum(not outcome.faults for outcome in outcomes)
    style = "green" if good == len(outcomes) else "bold red"
    return Text(f"{good} of {len(outcomes)} conversations called the right tool.", style=style)


def span_tree(nodes: Sequence[SpanNode]) -> RenderableType:
    """Return the spans as a tree."""
    return Group(Text("Spans", style="bold"), *(_branch(node) for node in nodes))


def _branch(node: SpanNode) -> Tree:
    label = Text.assemble((node.name, "bold"), f"  {node.duration_ms:.1f} ms")
    attributes = ", ".join(f"{key}={value}" for key, value in node.attributes.items())
    label.append(f"  {attributes}", style="dim")
    tree = Tree(label)
    tree.children.extend(_branch(child) for child in node.children)
    return tree


def document(
    stage: Stage, outcomes: Sequence[Outcome], totals: Totals, spans: Sequence[SpanNode] | None
) -> dict[str, object]:
    """Return everything that the demo shows as data; ``trace`` only if *spans* are given."""
    data: dict[str, object] = {
        "ok": not any(outcome.faults for outcome in outcomes),
        "scripted": stage.is_scripted,
        "model": stage.model,
        "index": stage.report,
        "conversations": [_conversation_data(outcome) for outcome in outcomes],
        "totals": asdict(totals),
    }
    return data if spans is None else {**data, "trace": spans}


def _conversation_data(outcome: Outcome) -> dict[str, object]:
    request = outcome.request
    return {
        "title": request.title,
        "language": request.language,
        "request": request.text,
        "searches": [
            {"queries": event.queries, "result": event.result}
            for event in outcome.events_of(Searched)
        ],
        "turns": [
            {
                "turn": event.turn,
                "visible_tools": event.tools,
                "found_tools": event.proxies,
                "definition_tokens_estimated": event.definition_tokens,
            }
            for event in outcome.events_of(Requested)
        ],
        "calls": [_call_data(event) for event in outcome.events_of(Called)],
        "answer": outcome.answer,
        "expected_tool": request.expected_tool,
        "expected_file": request.expected_file or None,
        "duration_s": outcome.duration_s,
        "ok": not outcome.faults,
        "faults": outcome.faults,
    }


def _call_data(event: Called) -> dict[str, object]:
    result = event.result
    return {
        "tool": event.tool,
        "tool_id": result.tool_id if result else None,
        "arguments": event.arguments,
        "is_error": result.is_error if result else True,
        "text": result.text if result else "",
        "error": event.error,
    }
