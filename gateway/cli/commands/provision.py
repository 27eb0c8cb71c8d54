"""`gateway discover` and `gateway provision`."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text
from typer import Option

from gateway.cli import options
from gateway.cli.command import Output, command, command_group, note, parse_pairs, stderr, warn
from gateway.cli.exit_codes import OK, UNAVAILABLE
from gateway.cli.options import CHOSEN
from gateway.cli.session import open_gateway, open_session, provision_options, read_config
from gateway.cli.tables import pairs, printable, table, to_jsonable
from gateway.config.manifest import Manifest
from gateway.plugins.provision.discover import discover as discover_catalog
from gateway.plugins.provision.plan import Plan
from gateway.plugins.provision.policy import Question, Stage, by_policy
from gateway.plugins.provision.provisioner import Provisioner
from gateway.plugins.provision.steps import ProvisionResult
from gateway.types import ANYONE, Caller

_QUESTIONS: Mapping[Stage, str] = {
    "install": "Install it?",
    "run": "Run it?",
    "keep": "Keep it despite the warnings?",
}
_CHECK = ("check=name", "verdict", "reason")

app = command_group()


@command(app)
def discover(
    intent: Annotated[str, "Task in any language; by default everything is listed."] = "",
    *,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    strategy: options.Strategy = None,
    normalize: options.Normalize = "",
    limit: Annotated[
        int, Option("--limit", "-n", min=1, help="Maximum number of tools, up to 50.")
    ] = 20,
    caller: Caller | None = None,
) -> Output:
    """List the servers, tools and schemas of the configuration. No registry is asked."""
    with open_session(
        config, strategy=strategy, documents=documents, normalize=normalize
    ) as session:
        gateway = session.gateway.gateway
        overview = gateway.bridge.call(
            lambda: discover_catalog(gateway, intent, limit=limit, caller=caller)
        )
    printed_codes = {item.code for item in session.report.diagnostics}
    warn(item for item in overview.diagnostics if item.code not in printed_codes)
    columns = ("server", "confidence", "required arguments=schema.required", "description")
    view = Group(
        table(overview.servers, "server=name", "state", "tools", "confidence"),
        Text(),
        table(overview.tools, "tool=name", *columns),
    )
    return Output(
        {"intent": intent, **to_jsonable(overview)},
        view if overview.tools else "Nothing was found.",
        found=overview.tools,
        code=OK if overview.tools else session.code,
    )


@command(app, has_set=False)
def provision(
    intent: Annotated[str, "Task that needs a new server."],
    *,
    apply: Annotated[
        bool, "Carry out the plan after your consent; by default it is only shown."
    ] = False,
    yes: Annotated[
        bool, "--yes", "-y", "Agree if all checks pass without a warning, else refuse; do not ask."
    ] = False,
    registry: options.Registry = "",
    trust: options.Trust = None,
    pick: Annotated[str, "Full name of the server to add."] = "",
    values: Annotated[
        options.Texts,
        "--set",
        "Input of the server: NAME=VALUE, or NAME=env:NAME for secrets. Options have a dot.",
    ] = None,
    into: Annotated[Path | None, "Folder for all installed packages."] = None,
    bundled: Annotated[
        bool | None, "--known/--no-known", "Search the bundled list of servers; on by default."
    ] = None,
    config: options.Config = options.DEFAULT_CONFIG,
    strategy: options.Strategy = None,
    normalize: options.Normalize = "",
    caller: Caller | None = None,
) -> Output:
    """Find and add a server for tasks that the configured servers cannot do.

    The configured tools are searched first, then a bundled list of servers, then a registry if you
    name one.
    """
    pairs = parse_pairs(values or (), "=", "--set requires NAME=VALUE, such as KEY=env:KEY")
    # Only options have a dot in their name.
    inputs = {name: value for name, value in pairs.items() if "." not in name}
    CHOSEN.set(tuple(f"{name}={value}" for name, value in pairs.items() if "." in name))
    manifest = read_config(config) if config.is_file() else Manifest(servers={})
    options = provision_options(manifest, registry=registry, trust=trust, known=bundled)
    options = replace(options, folder=into or options.folder)
    warn(manifest.warnings)
    with open_gateway(manifest, strategy=strategy, normalize=normalize) as gateway:
        provisioner = Provisioner(
            gateway,
            options=options,
            config=config,
            consent=by_policy if yes else ask_person,
            progress=lambda *step: note(" ".join(filter(None, step))),
        )
        result = asyncio.run(
            provisioner.provision(
                intent, apply=apply, pick=pick, inputs=inputs, caller=caller or ANYONE
            )
        )
    warn(result.diagnostics)
    return Output(
        {"intent": intent, **to_jsonable(result)},
        Group(*_result_parts(result)),
        found=result.outcome in {"local", "planned", "installed"},
        code=UNAVAILABLE if result.outcome == "failed" else OK,
    )


async def ask_person(question: Question) -> bool:
    """Print a question on standard error and read the answer. No input means no."""
    console = stderr()
    console.print(_plan_table(question.plan), table(question.gates, *_CHECK))
    for words in question.commands:
        console.print(_command_line("will run now", words))
    if question.launch:
        console.print(_command_line("will run as the server", question.launch))
    for warning in question.warnings:
        console.print(Text(f"warning: {printable(warning)}", style="yellow"))
    try:
        return typer.confirm(_QUESTIONS[question.stage], err=True)
    except typer.Abort:
        return False


def _result_parts(result: ProvisionResult) -> Iterator[RenderableType]:
    yield Text(f"{result.outcome}: {printable(result.reason)}")
    if result.local:
        yield table(result.local, "tool=id", "confidence")
    if result.candidates:
        yield table(result.candidates, "server=entry.name", "confidence")
    if result.tools:
        yield Text(f"tools: {', '.join(tool.exposed_name for tool in result.tools)}")
    elif result.plan is not None:
        yield _plan_table(result.plan)
        yield table(result.gates, *_CHECK)
        for words in result.plan.install:
            yield _command_line("would run", words)
        if result.plan.launch:
            yield _command_line("would run as the server", result.plan.launch)
        elif result.plan.install:
            yield Text(
                "the server command is known after the installation; you are asked before it runs"
            )


def _plan_table(plan: Plan) -> RenderableType:
    values = {**plan.env, **plan.headers}
    entry = plan.entry
    return pairs(
        {
            "server": f"{entry.name} {entry.version}",
            "description": entry.description,
            "source": entry.source,
            "name in mcp.json": plan.server,
            "address": plan.url,
            "folder": str(plan.folder or ""),
            "variables and headers": "\n".join(
                f"{name} = {value}" for name, value in values.items()
            ),
        }
    )


def _command_line(label: str, words: Sequence[str]) -> RenderableType:
    """Return a command on one line that is never folded or cut."""
    return Text.assemble(
        (f"{label}: ", "cyan"), printable(shlex.join(words)), no_wrap=True, overflow="ignore"
    )
