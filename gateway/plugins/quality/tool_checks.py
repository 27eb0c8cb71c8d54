"""Whether tools can be called, told without asking their servers. For agents that run on schedule.

Pure, but for `preflight`, which reads what a gateway has in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, get_args

from gateway.index.snapshot import Snapshot
from gateway.runtime.text import digest
from gateway.types import ANYONE, Caller, Entity
from gateway.types.caller import filters_for

Verdict = Literal["ready", "retry_later", "needs_person", "unknown"]
"""From best to worst."""
Reason = Literal["not_listed", "changed", "signed_out", "server_down", "filtered", "schema_differs"]
"""*not_listed*: its server does not list it, or never was listed; *changed*: it, or what would run,
is not as it was approved; *signed_out*: its server wants a sign-in; *server_down*: its server could
not be reached or listed; *filtered*: this caller may not use it; *schema_differs*: its schemas are
not those that the agent was built with."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """What is known of the server behind a tool."""

    name: str
    listed: bool = True
    """Whether its tool list is known."""
    unusable: str = ""
    """Why it cannot be used at all, such as an entry at fault; empty if it can."""
    changed: bool = False
    """Whether what would run, or be asked, is not as it was approved."""
    signed_out: bool = False
    failure: str = ""
    """Why it could not be reached or listed lately; empty if it could, as far as is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCheck:
    """Whether one tool can be called."""

    tool: str
    """Its id."""
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    """Empty for what is ready."""
    digest: str = ""
    """Of its schemas as they are now, 16 hexadecimal digits; empty if it is not listed."""
    detail: str = ""
    """What to do about each reason."""


class Checked(Protocol):
    """What a `Gateway` knows of its servers."""

    async def snapshot(self) -> Snapshot:
        """Return the index as calls read it."""

    def server_states(self) -> Mapping[str, str]:
        """Return the state of each connection by server."""


async def preflight(
    gateway: Checked, wanted: Mapping[str, str], *, caller: Caller = ANYONE
) -> tuple[ToolCheck, ...]:
    """Check tools by what *gateway* knows now; see `check_tools`.

    A server that was not listed yet is listed, as by a search.
    """
    snapshot, connections = await gateway.snapshot(), gateway.server_states()
    states = {}
    for tool in wanted:
        name = tool.partition("/")[0]
        failure = "cannot be reached" if connections.get(name) == "failed" else ""
        states[tool] = ServerState(name=name, failure=failure)
    return check_tools(wanted, snapshot, states, caller=caller)


def check_tools(
    wanted: Mapping[str, str],
    snapshot: Snapshot,
    servers: Mapping[str, ServerState],
    *,
    caller: Caller = ANYONE,
) -> tuple[ToolCheck, ...]:
    """Check tools, in the order of *wanted*.

    Args:
        wanted: The digest of the schemas that the agent was built with, by the id of each tool;
            empty if any will do.
        snapshot: With what changed since it was approved in it (`on_change="warn"`): what is left
            out counts as not listed.
        servers: The state of the server behind each of these tools, by the tool's id.
        caller: The party that will call them.
    """
    listed = {entity.id: entity for entity in snapshot.visible(filters_for(None))}
    allowed = {entity.id for entity in snapshot.visible(caller.filters())}
    checks = []
    for tool, built_with in wanted.items():
        entity = listed.get(tool)
        faults = [*_server_faults(servers[tool], is_listed=tool in listed)]
        if entity is not None:
            faults += _tool_faults(entity, built_with, is_allowed=tool in allowed)
        elif not faults:
            faults.append(_Fault("not_listed", "its server does not list it, or a policy hides it"))
        checks.append(
            ToolCheck(
                tool=tool,
                verdict=worst(fault.verdict for fault in faults),
                reasons=tuple(dict.fromkeys(fault.reason for fault in faults)),
                digest=schema_digest(entity) if entity else "",
                detail="; ".join(fault.detail for fault in faults),
            )
        )
    return tuple(checks)


def schema_digest(tool: Entity) -> str:
    """Return the digest of the schemas of a tool as it is shown, 16 hexadecimal digits.

    Names and descriptions do not matter: a call that was right stays right.
    """
    schemas = tool.definition.input_schema, tool.definition.output_schema
    return digest(json.dumps(schemas, sort_keys=True))[:_DIGITS]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict: unknown, then needs_person, retry_later, ready."""
    return max(verdicts, key=VERDICTS.index, default="ready")


class _Fault(NamedTuple):
    reason: Reason
    detail: str
    verdict: Verdict = "needs_person"


def _server_faults(server: ServerState, *, is_listed: bool) -> Iterator[_Fault]:
    name = server.name
    if server.unusable:
        yield _Fault("not_listed", server.unusable)
        return
    if server.changed:
        yield _Fault("changed", f"what would run is not as approved: gateway approve {name}")
    if server.signed_out:
        yield _Fault("signed_out", f"gateway login {name}")
    elif server.failure:
        yield _Fault("server_down", f"{name!r}: {server.failure}", "retry_later")
    elif not server.listed and not is_listed:
        yield _Fault("not_listed", f"{name!r} was never listed: --live does it", "unknown")


def _tool_faults(entity: Entity, built_with: str, *, is_allowed: bool) -> Iterator[_Fault]:
    for note in entity.definition.diagnostics:
        if note.code == "tool_changed":
            yield _Fault("changed", note.detail)
    if not is_allowed:
        yield _Fault("filtered", "its status or scopes keep this caller from it")
    if built_with and built_with != schema_digest(entity):
        yield _Fault("schema_differs", f"the agent was built with {built_with}")
