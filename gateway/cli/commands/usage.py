"""`gateway usage`: what recorded calls show, and what learning from them would change."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

from typer import Option

import graphs
from gateway.cli import options
from gateway.cli.command import Output, command, command_group, document_output, note
from gateway.cli.session import audited, command_options, open_session, open_store, read_optional
from gateway.cli.tables import document
from gateway.errors import InvalidRequestError
from gateway.plugins.usage.analytics import usage_report
from gateway.plugins.usage.call_log import CallLog
from gateway.plugins.usage.history import CallHistory, sum_outcomes
from gateway.plugins.usage.step_evaluation import evaluate_usage, multiplier
from gateway.plugins.usage.tables import call_log_of
from gateway.plugins.usage.transitions import MIN_COUNT, count_transitions, is_predictive
from gateway.stores import resolve_store

_NO_CALLS = (
    'no calls are noted: "options": {"usage": true} in the configuration has them noted, or '
    "UsageOptions(record=True) in a program"
)
_MAY_BE_CHANCE = "these orders may be chance: the tasks do not predict each other yet"

_Tenant = Annotated[str, "--tenant", "With the calls of this tenant; else those without one."]

app = command_group("usage")


@command(app)
def show(
    tool: Annotated[str, "Its id, server/name; without one: all."] = "",
    *,
    tenant: Annotated[str, "What this tenant learns from; else all calls."] = "",
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Show how calls ended, what that does to scores, and what follows what."""
    with open_ledger(config) as ledger:
        tallies = [tally for tally in ledger.tallies(tenant or None) if tool in {"", tally.tool}]
        tasks = [task.tools for task in ledger.tasks(tenant or None)]
    transitions = [item for item in count_transitions(tasks) if tool in {"", item.before}]
    counts = sum_outcomes([replace(tally, age_s=0.0) for tally in tallies])
    rows = [
        {
            "tool": name,
            "calls": int(counts[name].calls),
            "succeeded": int(counts[name].succeeded),
            "multiplier": round(multiplier(outcomes), 3),
        }
        for name, outcomes in sorted(sum_outcomes(tallies).items())
    ]
    is_trusted = is_predictive(tasks)
    data = {"tools": rows, "followed": transitions, "tasks": len(tasks), "believed": is_trusted}
    if not rows:
        return Output(data, _NO_CALLS, found=False)
    return Output(data, notes=() if is_trusted or not transitions else (_MAY_BE_CHANCE,))


@command(app)
def export(
    *,
    out: options.Folder = None,
    min_count: Annotated[int, Option(min=1, help="Tasks a pair needs.")] = MIN_COUNT,
    tenant: _Tenant = "",
    force: options.Force = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Write next steps that use has shown as Markdown-LD, to read, edit and commit."""
    with open_ledger(config) as ledger:
        tasks = [task.tools for task in ledger.tasks(tenant)]
    transitions = count_transitions(tasks, min_count=min_count)
    if not transitions:
        note("nothing was called after something else often enough to be written down")
        return document_output((), None, force=force, more={"followed": ()})
    if not is_predictive(tasks):
        note(_MAY_BE_CHANCE)
    edges = tuple(
        graphs.Edge(subject=item.before, predicate="nextStep", object=item.after)
        for item in transitions
    )
    counts = "\n".join(
        f"- `{item.before}` then `{item.after}`: {item.count} of {item.of} tasks, "
        f"sure to {item.confidence:.2f}"
        for item in transitions
    )
    document = graphs.Document(
        id="urn:tool-gateway:shown-by-use",
        path="shown-by-use.md",
        title="Next steps that use has shown",
        edges=edges,
        sections=(graphs.Section(heading="Counts", level=2, text=counts),),
    )
    return document_output([document], out, force=force, more={"followed": transitions})


@command(app)
def report(
    *,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    strategy: options.Strategy = None,
    tenant: _Tenant = "",
) -> Output:
    """Show what is never found or called, and what the signals would have changed.

    Searches and calls of all tenants count, or those of --tenant and without one.
    """
    with (
        open_ledger(config) as ledger,
        open_session(config, strategy=strategy, documents=documents) as session,
    ):
        history, snapshot = CallHistory.read(ledger, tenant), session.gateway.snapshot()
        use = usage_report(snapshot, ledger, tenant or None)
        replayed = evaluate_usage(snapshot, history.tasks, history.outcomes)
    is_trusted, learn, rerank = history.is_predictive, replayed.learn, replayed.rerank
    data = {
        "tasks": len(history.tasks),
        "believed": is_trusted,
        "learn": {**asdict(learn), "on": learn.measured and is_trusted},
        "rerank": {**asdict(rerank), "on": rerank.measured},
        "searches": use.total,
        "tenants": use.tenants,
        "servers": use.servers,
    }
    lengths = [
        {key: len(value) if isinstance(value, tuple) else value for key, value in row.items()}
        for row in map(asdict, use.servers)
    ]
    return Output(
        data,
        document({**data, "servers": lengths}),
        found=learn.calls or use.total.searches,
        code=session.code,
        notes=["which tools were never found or called: --json"] if lengths else (),
    )


@command(app)
def forget(
    *,
    tool: Annotated[str, "The calls of one tool, server/name."] = "",
    tenant: Annotated[str, "The calls of one tenant."] = "",
    everything: Annotated[bool, "--all", "All calls."] = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Forget calls that were noted, and searches with them."""
    own_options = command_options(read_optional(config))
    if not (tool or tenant or everything):
        raise InvalidRequestError("say what to forget: --tool, --tenant, or --all")
    with (
        open_store(own_options) as store,
        audited(own_options, store, "usage.forget", f"{tool} {tenant}".strip() or "all"),
    ):
        count = call_log_of(store).forget(tool=tool, tenant=tenant)
    return Output({"forgotten": count})


def open_ledger(config: Path) -> closing[CallLog]:
    """Return the ledger of calls, to be closed with the block."""
    return closing(call_log_of(resolve_store(command_options(read_optional(config)))))
