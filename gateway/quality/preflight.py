"""Whether tools can be called, told without asking their servers. For agents that run on schedule.

Pure, but for `preflight`, which reads what a gateway has in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from gateway.index.snapshot import Snapshot
from gateway.runtime.text import digest
from gateway.types import ANYONE, Caller, Entity

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
    snapshot, states = await gateway.snapshot(), gateway.server_states()
    servers = {tool: tool.partition("/")[0] for tool in wanted}
    known = {
        tool: ServerState(
            name=name, failure="cannot be reached" if states.get(name) == "failed" else ""
        )
        for tool, name in servers.items()
    }
    return check_tools(wanted, snapshot, known, caller=caller)


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
    mask = snapshot.mask(caller.filters())
    checks = []
    for tool, built_with in wanted.items():
        position = snapshot.eligibility.by_id.get(tool, -1)
        entity = None if position < 0 else snapshot.entities[position]
        entity = None if entity is None or entity.described else entity
        found = dict(_server_faults(servers[tool], is_listed=entity is not None))
        if entity is not None:
            is_allowed = bool(mask[position])
            found |= _tool_faults(entity, built_with, servers[tool].name, is_allowed=is_allowed)
        elif not found:
            found["not_listed"] = "its server does not list it any more, or a policy leaves it out"
        checks.append(
            ToolCheck(
                tool=tool,
                verdict=_verdict(found, servers[tool], is_listed=entity is not None),
                reasons=tuple(found),
                digest="" if entity is None else schema_digest(entity),
                detail="; ".join(found.values()),
            )
        )
    return tuple(checks)


def schema_digest(tool: Entity) -> str:
    """Return the digest of the schemas of a tool as it is shown, 16 hexadecimal digits.

    Names and descriptions do not matter: a call that was right stays right.
    """
    schemas = tool.definition.input_schema, tool.definition.output_schema
    return digest(json.dumps(schemas, sort_keys=True))[:_DIGITS]


def worst(checks: tuple[ToolCheck, ...]) -> Verdict:
    """Return the worst verdict: unknown, then needs_person, retry_later, ready."""
    return max((each.verdict for each in checks), key=VERDICTS.index, default="ready")


def _server_faults(server: ServerState, *, is_listed: bool) -> Iterator[tuple[Reason, str]]:
    name = server.name
    if server.unusable:
        yield "not_listed", server.unusable
        return
    if server.changed:
        yield "changed", f"what would run is not as approved: gateway approve {name}"
    if server.signed_out:
        yield "signed_out", f"gateway login {name}"
    elif server.failure:
        yield "server_down", f"{name!r}: {server.failure}"
    elif not server.listed and not is_listed:
        yield "not_listed", f"{name!r} was never listed: --live does it"


def _tool_faults(
    entity: Entity, built_with: str, server: str, *, is_allowed: bool
) -> Iterator[tuple[Reason, str]]:
    if any(note.code == "tool_changed" for note in entity.definition.diagnostics):
        yield "changed", f"it is not as approved: gateway approve {entity.id} (or {server})"
    if not is_allowed:
        yield "filtered", "its status, or the scopes of this caller, keep it from being called"
    if built_with and built_with != schema_digest(entity):
        yield "schema_differs", f"the agent was built with {built_with}"


def _verdict(found: Mapping[Reason, str], server: ServerState, *, is_listed: bool) -> Verdict:
    if not found:
        return "ready"
    if found.keys() == {"server_down"}:
        return "retry_later"
    is_guess = not (server.listed or is_listed or server.unusable)
    return "unknown" if found.keys() == {"not_listed"} and is_guess else "needs_person"
