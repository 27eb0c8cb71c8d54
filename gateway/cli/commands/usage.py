"""`gateway usage`: outcomes of recorded calls."""

from __future__ import annotations

from collections.abc import Mapping
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
    'no calls are recorded: turn recording on by "options": {"usage": true} in the configuration, '
    "or by UsageOptions(record=True) in a program"
)
_MAY_BE_ACCIDENTAL = (
    "the order of these calls may be accidental, because some tasks do not predict the others yet"
)

_Tenant = Annotated[
    str, "--tenant", "Include the calls of this tenant; by default only calls without a tenant."
]

app = command_group("usage")


@command(app)
def show(
    tool: Annotated[str, "Id of a tool (server/name); by default all tools."] = "",
    *,
    tenant: Annotated[
        str, "Only calls of this tenant, and calls without a tenant; by default all."
    ] = "",
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Show outcomes of calls, their effect on scores, and the order of calls."""
    with open_call_log(config) as call_log:
        tallies = [tally for tally in call_log.tallies(tenant or None) if tool in {"", tally.tool}]
        tasks = [task.tools for task in call_log.tasks(tenant or None)]
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
    notes = () if is_trusted or not transitions else (_MAY_BE_ACCIDENTAL,)
    return Output(data, document(_renamed(data)), notes=notes)


@command(app)
def export(
    *,
    out: options.Folder = None,
    min_count: Annotated[
        int, Option(min=1, help="Minimum number of tasks per pair of tools.")
    ] = MIN_COUNT,
    tenant: _Tenant = "",
    force: options.Force = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Write next steps learned from calls as Markdown-LD, for you to read, edit and commit."""
    with open_call_log(config) as call_log:
        tasks = [task.tools for task in call_log.tasks(tenant)]
    transitions = count_transitions(tasks, min_count=min_count)
    if not transitions:
        note("no tool was called after another one often enough to be exported")
        return document_output((), None, force=force, more={"followed": ()})
    if not is_predictive(tasks):
        note(_MAY_BE_ACCIDENTAL)
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
    """Report tools that are never found or called, and the effect of the usage signals.

    Searches and calls of all tenants count. With --tenant, those of this tenant and without a
    tenant count.
    """
    with (
        open_call_log(config) as call_log,
        open_session(config, strategy=strategy, documents=documents) as session,
    ):
        history, snapshot = CallHistory.read(call_log, tenant), session.gateway.snapshot()
        use = usage_report(snapshot, call_log, tenant or None)
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
        document(_renamed({**data, "servers": lengths})),
        found=learn.calls or use.total.searches,
        code=session.code,
        notes=["--json lists the tools that were never found or called"] if lengths else (),
    )


@command(app)
def forget(
    *,
    tool: Annotated[str, "Delete the calls of this tool (server/name)."] = "",
    tenant: Annotated[str, "Delete the calls of this tenant."] = "",
    everything: Annotated[bool, "--all", "Delete all calls."] = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Delete recorded calls, together with their searches."""
    own_options = command_options(read_optional(config))
    if not (tool or tenant or everything):
        raise InvalidRequestError("name the calls to delete: --tool, --tenant, or --all")
    with (
        open_store(own_options) as store,
        audited(own_options, store, "usage.forget", f"{tool} {tenant}".strip() or "all"),
    ):
        count = call_log_of(store).forget(tool=tool, tenant=tenant)
    return Output({"forgotten": count})


def _renamed(data: Mapping[str, object]) -> dict[str, object]:
    return {{"believed": "trusted"}.get(name, name): value for name, value in data.items()}


def open_call_log(config: Path) -> closing[CallLog]:
    """Return the log of calls for a ``with`` block."""
    return closing(call_log_of(resolve_store(command_options(read_optional(config)))))
