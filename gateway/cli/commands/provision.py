"""`gateway discover` and `gateway provision`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from gateway.cli import options
from gateway.cli.command import command, command_group
from gateway.cli.exit_codes import NOTHING, OK, UNAVAILABLE
from gateway.cli.output import Output, note, printable, stderr, to_jsonable, warn
from gateway.cli.session import (
    DEFAULT_CONFIG,
    ONE_COMMAND,
    choose_strategy,
    open_gateway,
    open_session,
    warn_of_index,
)
from gateway.cli.tables import bold, plain_table, summary
from gateway.errors import InvalidRequestError
from gateway.manifests.manifest import Manifest
from gateway.manifests.mcp_json import read_manifest
from gateway.provision.consent import Question, Stage, by_policy
from gateway.provision.discover import CatalogOverview
from gateway.provision.discover import discover as discover_catalog
from gateway.provision.options import ProvisionOptions
from gateway.provision.plan import Plan, format_command
from gateway.provision.policy_checks import PolicyCheck
from gateway.provision.provisioner import Provisioner, ProvisionResult

_QUESTIONS: Mapping[Stage, str] = {
    "install": "Install it?",
    "run": "Run it?",
    "keep": "Keep it all the same?",
}
_STYLES = {"pass": "green", "ask": "yellow", "refuse": "red"}
_CODES = {
    "local": OK,
    "planned": OK,
    "installed": OK,
    "none": NOTHING,
    "refused": NOTHING,
    "declined": NOTHING,
    "failed": UNAVAILABLE,
}

app = command_group()


@command(app)
def discover(
    intent: Annotated[
        str, Argument(help="What is wanted, in any language; none shows everything.")
    ] = "",
    *,
    config: options.Config = None,
    documents: options.Graph = None,
    strategy: options.Strategy = None,
    limit: Annotated[int, Option("--limit", "-n", min=1, help="Tools, up to 50.")] = 20,
) -> Output:
    """Show what the configured servers can do: servers, tools, schemas. Asks no registry."""
    with open_session(config, strategy=choose_strategy(strategy), documents=documents) as session:
        gateway = session.gateway.gateway
        overview = gateway.bridge.call(lambda: discover_catalog(gateway, intent, limit=limit))
    warn_of_index(overview.diagnostics, {item.code for item in session.report.diagnostics})
    return Output(
        {"intent": intent, **to_jsonable(overview)},
        _overview_tables(overview),
        session.code_for(overview.tools),
    )


@command(app)
def provision(  # noqa: PLR0913  (one for each option)
    intent: Annotated[str, Argument(help="What tools are wanted for.")],
    *,
    apply: Annotated[
        bool, Option("--apply", help="Do it, after consent; without it, only plan.")
    ] = False,
    yes: Annotated[
        bool, Option("--yes", "-y", help="Agree where no gate has a doubt; else agree to nothing.")
    ] = False,
    registry: options.Registry = "",
    trust: options.Trust = None,
    pick: Annotated[str, Option(help="The server that is wanted, by its whole name.")] = "",
    values: Annotated[
        list[str] | None,
        Option("--set", help="NAME=VALUE that the server needs; secrets as NAME=env:NAME."),
    ] = None,
    into: Annotated[
        Path | None, Option(help="The folder of all packages; default: in your data folder.")
    ] = None,
    bundled: Annotated[
        bool, Option("--known/--no-known", help="Look at the bundled list as well.")
    ] = True,
    config: options.Config = None,
    strategy: options.Strategy = None,
) -> Output:
    """Find a server for what the configured ones cannot do, and bring it in.

    The configured tools come first, then well-known servers, then a registry if you name one.
    """
    inputs, path = _parse_values(values or ()), config or DEFAULT_CONFIG
    options = ProvisionOptions(
        registry=registry, known=bundled, namespaces=tuple(trust or ()), folder=into
    )
    manifest = read_manifest(path) if path.is_file() else Manifest(servers={})
    warn(manifest.warnings)
    with open_gateway(manifest, strategy=choose_strategy(strategy), options=ONE_COMMAND) as gateway:
        provisioner = Provisioner(
            gateway,
            options=options,
            config=path,
            consent=by_policy if yes else ask_person,
            progress=lambda step, outcome, about: note(
                f"{step} {outcome}" + (f": {about}" if about else "")
            ),
        )
        with closing(provisioner):
            result = asyncio.run(
                provisioner.provision(intent, apply=apply, pick=pick, inputs=inputs)
            )
    warn(result.diagnostics)
    return Output(
        {"intent": intent, **to_jsonable(result)},
        Group(*_result_parts(result)),
        _CODES[result.outcome],
        notes=tuple(_advice(result, is_applied=apply, is_agreed=yes)),
        is_wrapped=False,
    )


def _parse_values(values: Sequence[str]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    if not all(name and sign for name, sign, _ in pairs):
        raise InvalidRequestError("--set takes NAME=VALUE, such as --set API_KEY=env:API_KEY")
    return {name: value for name, _, value in pairs}


async def ask_person(question: Question) -> bool:
    """Show a question whole on standard error and read the answer; no input means no."""
    parts = [_plan_table(question.plan), _check_table(question.gates)]
    parts += [_command_line("will run now", item) for item in question.commands]
    if question.launch:
        parts.append(_command_line("will run as the server", question.launch))
    parts += [Text(f"warning: {printable(item)}", style="yellow") for item in question.warnings]
    stderr().print(Group(*parts))
    try:
        return typer.confirm(_QUESTIONS[question.stage], err=True)
    except typer.Abort:
        return False


def _advice(result: ProvisionResult, *, is_applied: bool, is_agreed: bool) -> Iterator[str]:
    if result.outcome == "planned" and not is_applied:
        yield "this was a dry run; --apply does it"
    if result.plan is not None and result.plan.needs.missing:
        values = " ".join(f"--set {name}=VALUE" for name in result.plan.needs.missing)
        yield f"give what it needs, secrets by reference such as env:NAME: {values}"
    if result.outcome == "declined" and is_agreed:
        yield "--yes agrees only where every gate passes: without it you are asked"


def _overview_tables(overview: CatalogOverview) -> RenderableType:
    if not overview.tools:
        return Text("Nothing was found.")
    servers = (
        (bold(server.name), server.state, str(server.tools), _percent(server.confidence))
        for server in overview.servers
    )
    tools = (
        (
            bold(tool.name),
            tool.server,
            _percent(tool.confidence),
            ", ".join(map(str, required)) if isinstance(required, list | tuple) else "",
            summary(tool.description),
        )
        for tool in overview.tools
        for required in (tool.schema.get("required"),)
    )
    return Group(
        plain_table("server", "state", "tools", "confidence", rows=servers),
        Text(),
        plain_table("tool", "server", "confidence", "needs", "about", rows=tools),
    )


def _result_parts(result: ProvisionResult) -> Iterator[RenderableType]:
    yield Text(f"{result.outcome}: {printable(result.reason)}")
    if result.local:
        yield _confidence_table("tool", [(match.id, match.confidence) for match in result.local])
    if result.candidates:
        names = [(item.entry.name, item.confidence) for item in result.candidates]
        yield _confidence_table("server", names)
    if result.tools:
        yield Text(f"tools: {', '.join(tool.exposed_name for tool in result.tools)}")
    elif result.plan is not None:
        yield _plan_table(result.plan)
        yield _check_table(result.gates)
        for item in result.plan.install:
            yield _command_line("would run", item)
        if result.plan.launch:
            yield _command_line("would run as the server", result.plan.launch)
        elif result.plan.install:
            yield Text("what would run as the server is known after the install, and asked again")


def _plan_table(plan: Plan) -> RenderableType:
    rows: list[tuple[str, RenderableType]] = [
        ("server", bold(f"{plan.entry.name} {plan.entry.version}".strip())),
        ("about", plan.entry.description),
        ("source", plan.entry.source),
        ("name here", plan.server),
    ]
    if plan.url:
        rows.append(("address", plan.url))
    values = (*plan.env.items(), *plan.headers.items())
    rows += [("gives it", f"{name} = {value}") for name, value in values]
    return plain_table("plan", "", rows=rows)


def _command_line(label: str, words: Sequence[str]) -> RenderableType:
    """Return a command whole: one line, never folded or cut."""
    return Text.assemble(
        (f"{label}: ", "cyan"), printable(format_command(words)), no_wrap=True, overflow="ignore"
    )


def _check_table(checks: Sequence[PolicyCheck]) -> Table:
    rows = (
        (check.name, Text(check.verdict, style=_STYLES[check.verdict]), check.reason)
        for check in checks
    )
    return plain_table("gate", "", "why", rows=rows)


def _confidence_table(heading: str, items: Sequence[tuple[str, float]]) -> Table:
    rows = ((bold(name), _percent(confidence)) for name, confidence in items)
    return plain_table(heading, "confidence", rows=rows)


def _percent(confidence: float | None) -> str:
    return "" if confidence is None else f"{confidence:.0%}"
