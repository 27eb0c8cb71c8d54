"""`gateway demo`."""

from __future__ import annotations

from gateway.cli.demo import data, show, trace
from gateway.cli.demo.requests import REQUESTS
from gateway.cli.demo.run import Outcome, converse, totals
from gateway.cli.demo.scene import scene
from gateway.cli.exits import NOTHING, OK
from gateway.cli.screen import emit, out, warn


def demo(*, with_trace: bool, as_json: bool) -> int:
    """Hold the conversations and show them; give 0 only if each called the right tool."""
    console = out()
    console.quiet = as_json
    outcomes: list[Outcome] = []
    with scene() as place:
        warn(place.report.diagnostics)
        console.print(show.opening(place))
        for number, request in enumerate(REQUESTS, 1):
            outcomes.append(converse(place, request))
            console.print(show.conversation(number, outcomes[-1]))
        cost = totals(place, outcomes)
        spans = place.spans.tree() if with_trace else None
        if as_json:
            emit(data.document(place, outcomes, cost, spans))
    console.print(show.closing(cost))
    if spans is not None:
        console.print(trace.shown(spans))
    console.print(show.verdict(outcomes))
    return NOTHING if any(outcome.faults for outcome in outcomes) else OK
