"""What was discovered, planned and asked -> what people read. Nothing here prints.

Commands are told whole, one a line, never folded into a table or cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.cli.screen import printable
from gateway.cli.show import about, plain_table
from gateway.provision.consent import Question, Stage
from gateway.provision.discover import Discovered
from gateway.provision.gates import Gate
from gateway.provision.plan import Plan, written
from gateway.provision.provisioner import Provisioned

ASKS: Mapping[Stage, str] = {
    "install": "Install it?",
    "run": "Run it?",
    "keep": "Keep it all the same?",
}
_STYLES = {"pass": "green", "ask": "yellow", "refuse": "red"}


def catalog(found: Discovered) -> RenderableType:
    """Show servers and tools."""
    servers = plain_table("server", "state", "tools", "confidence")
    for server in found.servers:
        name = Text(server.name, style="bold")
        servers.add_row(name, server.state, str(server.tools), _share(server.confidence))
    tools = plain_table("tool", "server", "confidence", "needs", "about")
    for tool in found.tools:
        required = tool.schema.get("required")
        needs = ", ".join(map(str, required)) if isinstance(required, list | tuple) else ""
        tools.add_row(
            Text(tool.name, style="bold"),
            tool.server,
            _share(tool.confidence),
            printable(needs),
            about(tool.description),
        )
    return Group(servers, Text(), tools) if found.tools else Text("Nothing was found.")


def provisioned(result: Provisioned) -> RenderableType:
    """Show what came of a provisioning."""
    parts: list[RenderableType] = [Text(f"{result.outcome}: {printable(result.reason)}")]
    if result.local:
        parts.append(_rows("tool", [(each.id, each.confidence) for each in result.local]))
    if result.candidates:
        found = [(each.entry.name, each.confidence) for each in result.candidates]
        parts.append(_rows("server", found))
    if result.tools:
        parts.append(Text(f"tools: {', '.join(each.exposed_name for each in result.tools)}"))
    elif result.plan is not None:
        parts += [_plan(result.plan), _gates(result.gates), *_commands(result.plan)]
    return Group(*parts)


def question(asked: Question) -> RenderableType:
    """Show what somebody is asked to agree to: all of it."""
    parts: list[RenderableType] = [_plan(asked.plan), _gates(asked.gates)]
    parts += [_line("will run now", each) for each in asked.commands]
    if asked.launch:
        parts.append(_line("will run as the server", asked.launch))
    parts += [Text(f"warning: {printable(each)}", style="yellow") for each in asked.warnings]
    return Group(*parts)


def _plan(plan: Plan) -> RenderableType:
    entry = plan.entry
    table = plain_table("plan", "")
    table.add_row("server", Text(f"{entry.name} {entry.version}".strip(), style="bold"))
    table.add_row("about", printable(entry.description))
    table.add_row("source", entry.source)
    table.add_row("name here", plan.server)
    if plan.url:
        table.add_row("address", printable(plan.url))
    for name, value in (*plan.env.items(), *plan.headers.items()):
        table.add_row("gives it", printable(f"{name} = {value}"))
    return table


def _commands(plan: Plan) -> Iterator[RenderableType]:
    for command in plan.install:
        yield _line("would run", command)
    if plan.launch:
        yield _line("would run as the server", plan.launch)
    elif plan.install:
        yield Text("what would run as the server is known after the install, and asked again")


def _line(what: str, command: Sequence[str]) -> Text:
    return Text.assemble(
        (f"{what}: ", "cyan"), printable(written(command)), no_wrap=True, overflow="ignore"
    )


def _gates(judged: Sequence[Gate]) -> Table:
    table = plain_table("gate", "", "why")
    for gate in judged:
        verdict = Text(gate.verdict, style=_STYLES[gate.verdict])
        table.add_row(gate.name, verdict, printable(gate.reason))
    return table


def _rows(what: str, found: Sequence[tuple[str, float]]) -> Table:
    table = plain_table(what, "confidence")
    for name, confidence in found:
        table.add_row(Text(name, style="bold"), _share(confidence))
    return table


def _share(confidence: float | None) -> str:
    return "" if confidence is None else f"{confidence:.0%}"
