"""`gateway demo`: three conversations with real servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from rich.console import Group, RenderableType
from rich.text import Text
from typer import Option

from gateway.chat.accounting import Accounting
from gateway.cli.command import Output, command, command_group, note, warn
from gateway.cli.commands.search import search_table
from gateway.cli.demo.conversations import (
    REQUESTS,
    SpanNode,
    converse,
    open_stage,
    span_tree,
    total_cost,
)
from gateway.cli.tables import document, pairs, table

_SCRIPTED = (
    "The model is SCRIPTED: neither OPENAI_API_KEY nor OPENAI_BASE_URL is set, so a small policy "
    "answers on the loopback interface, in OpenAI's wire format. It does not know the catalog."
)

app = command_group()


@command(app)
def demo(
    *, trace: Annotated[bool, Option("--trace", help="Print the tree of spans.")] = False
) -> Output:
    """See it work: real servers, three conversations. Needs no key and no network.

    With OPENAI_API_KEY or OPENAI_BASE_URL set it talks to that model (GATEWAY_MODEL names it).
    """
    conversations, cost = [], Accounting(calls=0)
    with open_stage() as stage:
        warn(stage.report.diagnostics)
        note(_SCRIPTED if stage.is_scripted else f"The model is {stage.model}.")
        for request in REQUESTS:
            note(f"{request.title}: {request.text}")
            conversation, own_cost = converse(stage, request)
            conversations.append(conversation)
            cost += own_cost
        searches = [search for item in conversations for search in item["searches"]]
        totals = total_cost(stage, searches, cost)
        spans = span_tree(stage.spans.get_finished_spans()) if trace else ()
    good = sum(item["ok"] for item in conversations)
    data = {
        "ok": good == len(conversations),
        "scripted": stage.is_scripted,
        "model": stage.model,
        "index": stage.report,
        "conversations": conversations,
        "totals": totals,
        **({"trace": spans} if trace else {}),
    }
    view = Group(
        *map(_conversation_view, conversations),
        document({"what it cost": totals}),
        Text("\n".join(_span_lines(spans))),
        Text(f"{good} of {len(conversations)} conversations called the right tool."),
    )
    return Output(data, view, found=data["ok"])


def _conversation_view(data: dict[str, Any]) -> RenderableType:
    outcome = {name: data[name] for name in ("answer", "ok", "faults", "duration_s")}
    return Group(
        document({data["title"]: {"request": data["request"]}}),
        *(search_table(search["result"]) for search in data["searches"]),
        table(data["turns"], "turn", "visible_tools", "tokens=definition_tokens_estimated"),
        table(data["calls"], "called=tool", "arguments", "result=text", "error"),
        pairs(outcome),
    )


def _span_lines(spans: Sequence[SpanNode], indent: str = "") -> Iterator[str]:
    for span in spans:
        yield f"{indent}{span.name}  {span.duration_ms:.1f} ms  {dict(span.attributes)}"
        yield from _span_lines(span.children, f"{indent}  ")
