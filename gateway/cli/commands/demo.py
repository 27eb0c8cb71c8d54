"""`gateway demo`: three conversations with real servers."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from gateway.cli import options
from gateway.cli.command import command, command_group
from gateway.cli.demo import view
from gateway.cli.demo.conversations import REQUESTS, Outcome, converse, total_cost
from gateway.cli.demo.stage import open_stage
from gateway.cli.exit_codes import NOTHING, OK
from gateway.cli.output import Output, stdout, warn

app = command_group()


@command(app)
def demo(
    *,
    trace: Annotated[bool, Option("--trace", help="Print the tree of spans.")] = False,
    as_json: options.Json = False,
) -> Output:
    """See it work: real servers, three conversations. Needs no key and no network.

    With OPENAI_API_KEY or OPENAI_BASE_URL set it talks to that model (GATEWAY_MODEL names it).
    """
    console = stdout()
    console.quiet = as_json
    outcomes: list[Outcome] = []
    with open_stage() as stage:
        warn(stage.report.diagnostics)
        console.print(view.opening(stage))
        for number, request in enumerate(REQUESTS, 1):
            outcomes.append(converse(stage, request))
            console.print(view.conversation(number, outcomes[-1]))
        totals = total_cost(stage, outcomes)
        spans = stage.telemetry.span_tree() if trace else None
    console.print(view.closing(totals))
    if spans is not None:
        console.print(view.span_tree(spans))
    console.print(view.verdict(outcomes))
    data = view.document(stage, outcomes, totals, spans)
    return Output(data, "", NOTHING if any(item.faults for item in outcomes) else OK)
