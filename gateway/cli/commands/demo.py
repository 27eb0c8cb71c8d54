"""`gateway demo`: three conversations with real servers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Annotated

from rich.console import Group, RenderableType
from rich.text import Text
from typer import Option

from gateway.chat.events import Called, Event, Requested, Searched
from gateway.cli.command import Output, command, command_group, note, warn
from gateway.cli.commands.search import search_table, stage_times
from gateway.cli.demo.conversations import REQUESTS, Outcome, converse, total_cost
from gateway.cli.demo.stage import SpanNode, open_stage, span_tree
from gateway.cli.exit_codes import NOTHING, OK
from gateway.cli.tables import document, pairs, printable

_SCRIPTED = (
    "The model is SCRIPTED: neither OPENAI_API_KEY nor OPENAI_BASE_URL is set, so a small policy "
    "answers on the loopback interface, in OpenAI's wire format. It does not know the catalog."
)
_RESULT_CHARS = 400

app = command_group()


@command(app)
def demo(
    *, trace: Annotated[bool, Option("--trace", help="Print the tree of spans.")] = False
) -> Output:
    """See it work: real servers, three conversations. Needs no key and no network.

    With OPENAI_API_KEY or OPENAI_BASE_URL set it talks to that model (GATEWAY_MODEL names it).
    """
    outcomes = []
    with open_stage() as stage:
        warn(stage.report.diagnostics)
        note(_SCRIPTED if stage.is_scripted else f"The model is {stage.model}.")
        for request in REQUESTS:
            note(f"{request.title}: {request.text}")
            outcomes.append(converse(stage, request))
        totals = total_cost(stage, outcomes)
        spans = span_tree(stage.spans.get_finished_spans()) if trace else ()
    good = sum(not outcome.faults for outcome in outcomes)
    data = {
        "ok": good == len(outcomes),
        "scripted": stage.is_scripted,
        "model": stage.model,
        "index": stage.report,
        "conversations": [_conversation_data(outcome) for outcome in outcomes],
        "totals": totals,
        **({"trace": spans} if trace else {}),
    }
    view = Group(
        *map(conversation_view, outcomes),
        document({"what it cost": totals}),
        Text("\n".join(_span_lines(spans))),
        Text(f"{good} of {len(outcomes)} conversations called the right tool."),
    )
    return Output(data, view, OK if good == len(outcomes) else NOTHING)


def conversation_view(outcome: Outcome) -> RenderableType:
    """Return one conversation, event by event."""
    request = outcome.request
    parts = [Text(f"\n{request.title}", style="bold underline"), _line("User", request.text)]
    return Group(
        *parts,
        *(part for event in outcome.events for part in _event_parts(event)),
        *(Text(f"FAILED: {printable(fault)}.", style="bold red") for fault in outcome.faults),
        Text(f"{outcome.duration_s:.2f} s", style="dim"),
    )


def _event_parts(event: Event) -> Iterator[RenderableType]:
    if isinstance(event, Requested):
        tools = f"{', '.join(event.tools)} (about {event.definition_tokens} tokens)"
        yield _line(f"Turn {event.turn}, tools the model sees", tools)
    elif isinstance(event, Searched):
        yield _line("Model searches", " | ".join(event.queries))
        yield search_table(event.result)
        yield pairs(stage_times(event.result))
    elif isinstance(event, Called):
        arguments = json.dumps(dict(event.arguments), ensure_ascii=False, default=str)
        yield _line("Model calls", f"{event.tool} {arguments}")
        origin = event.result.tool_id if event.result else "nothing was sent"
        text = event.result.text if event.result else event.error
        yield _line(f"Real result of {origin}", " ".join(text.split())[:_RESULT_CHARS])
    else:
        yield _line("Answer", event.text)


def _line(label: str, text: str) -> Text:
    return Text.assemble((f"{label}: ", "bold cyan"), printable(text))


def _span_lines(spans: Sequence[SpanNode], indent: str = "") -> Iterator[str]:
    for span in spans:
        yield f"{indent}{span.name}  {span.duration_ms:.1f} ms  {dict(span.attributes)}"
        yield from _span_lines(span.children, f"{indent}  ")


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
        "calls": [
            {
                "tool": event.tool,
                "tool_id": event.result.tool_id if event.result else None,
                "arguments": event.arguments,
                "is_error": event.result.is_error if event.result else True,
                "text": event.result.text if event.result else "",
                "error": event.error,
            }
            for event in outcome.events_of(Called)
        ],
        "answer": outcome.answer,
        "expected_tool": request.expected_tool,
        "expected_file": request.expected_file or None,
        "duration_s": outcome.duration_s,
        "ok": not outcome.faults,
        "faults": outcome.faults,
    }
