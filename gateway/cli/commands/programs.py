"""`gateway programs`: decisions about waiting programs of models."""

from __future__ import annotations

import json
from typing import Annotated

from gateway.cli import options
from gateway.cli.command import Output, command, command_group
from gateway.cli.session import audited, command_options, open_store, read_config
from gateway.cli.tables import table
from gateway.plugins.programs.store import decide, program_store, waiting_programs, waiting_tools

app = command_group("programs")

Key = Annotated[str, "Key of a program, as shown by list."]


@command(app, "list")
def list_programs(*, config: options.Config = options.DEFAULT_CONFIG) -> Output:
    """List the waiting programs, with the calls that need an approval."""
    with open_store(command_options(read_config(config))) as store:
        programs = waiting_programs(program_store(store))
    rows = [
        {
            "key": key,
            "user": program.caller["user"],
            "tenant": program.caller["tenant"],
            "tool": call.tool,
            "arguments": json.dumps(call.arguments, ensure_ascii=False),
        }
        for key, program in programs.items()
        for call in program.calls
    ]
    view = table(rows, "key", "user", "tenant", "tool", "arguments")
    return Output({"programs": rows}, view if rows else "no program waits for an approval")


@command(app)
def approve(key: Key, *, config: options.Config = options.DEFAULT_CONFIG) -> Output:
    """Allow all waiting calls of a program. The program continues when its model resumes it."""
    return _decide(key, config, is_approved=True)


@command(app)
def refuse(key: Key, *, config: options.Config = options.DEFAULT_CONFIG) -> Output:
    """Refuse all waiting calls of a program. The program continues without them."""
    return _decide(key, config, is_approved=False)


def _decide(key: str, config: options.Config, *, is_approved: bool) -> Output:
    own_options = command_options(read_config(config))
    action = "program.approve" if is_approved else "program.refuse"
    with open_store(own_options) as store:
        programs = program_store(store)
        tools = waiting_tools(programs, key)
        with audited(own_options, store, action, ", ".join(tools)):
            decide(programs, key, is_approved=is_approved)
    decision = "approved" if is_approved else "refused"
    return Output({"key": key, decision: tools}, f"{decision}: {', '.join(tools)}")
