"""Checks whether tools can be called, without contacting their servers, for scheduled agents."""

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
"""Result of a check, from best to worst."""
Reason = Literal["not_listed", "changed", "signed_out", "server_down", "filtered", "schema_differs"]
"""Reason why a tool should not be called:

* *not_listed*: The server does not list the tool, or was never listed.
* *changed*: The tool, or the command or URL of its server, differs from the approved one.
* *signed_out*: The server requires a sign-in.
* *server_down*: The server could not be reached or listed.
* *filtered*: The caller may not use the tool.
* *schema_differs*: The schemas differ from those that the agent was built with."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """Known state of a tool's server."""

    name: str
    listed: bool = True
    """True if the tool list is known."""
    unusable: str = ""
    """Reason why the server cannot be used, such as an invalid entry, or empty."""
    changed: bool = False
    """True if the command or URL changed since approval."""
    signed_out: bool = False
    failure: str = ""
    """Reason why the server recently could not be reached or listed, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCheck:
    """Result of the check of a tool."""

    tool: str
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    """Reasons against a call."""
    digest: str = ""
    """Digest of the tool's schemas, 16 hexadecimal digits; empty if it is not listed."""
    detail: str = ""
    """Reasons and remedies in words."""


class CheckedGateway(Protocol):
    """Parts of a `Gateway` that the checks use."""

    async def snapshot(self) -> Snapshot:
        """Return the index for calls."""

    def server_states(self) -> Mapping[str, str]:
        """Return the states of the connections, keyed by server name."""


async def preflight(
    gateway: CheckedGateway, wanted: Mapping[str, str], *, caller: Caller = ANYONE
) -> tuple[ToolCheck, ...]:
    """Check tools in the current state of *gateway*, as `check_tools` does.

    Servers that were not listed yet are listed first.
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
        wanted: Digests of the schemas that the agent was built with, keyed by tool id. An empty
            digest accepts all schemas.
        snapshot: Catalog with changed tools (`on_change="warn"`). Tools outside it are not listed.
        servers: State of each tool's server, keyed by tool id.
        caller: Caller of the tools.
    """
    entities = {entity.id: entity for entity in snapshot.visible(filters_for(None))}
    allowed = {entity.id for entity in snapshot.visible(caller.filters())}
    checks = []
    for tool, built_with in wanted.items():
        entity = entities.get(tool)
        faults = [*_server_faults(servers[tool], is_listed=tool in entities)]
        if entity is not None:
            faults += _tool_faults(entity, built_with, is_allowed=tool in allowed)
        elif not faults:
            faults.append(
                _Fault("not_listed", "its server does not list the tool, or a policy hides it")
            )
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
    """Return the digest of a tool's schemas, 16 hexadecimal digits.

    Name and description are left out, because they do not affect valid calls.
    """
    schemas = tool.definition.input_schema, tool.definition.output_schema
    return digest(json.dumps(schemas, sort_keys=True))[:_DIGITS]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict, or ``ready`` without verdicts."""
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
        yield _Fault(
            "changed", f"the command or URL differs from the approved one: gateway approve {name}"
        )
    if server.signed_out:
        yield _Fault("signed_out", f"sign in first: gateway login {name}")
    elif server.failure:
        yield _Fault("server_down", f"{name!r}: {server.failure}", "retry_later")
    elif not server.listed and not is_listed:
        yield _Fault("not_listed", f"{name!r} was never listed: --live does it", "unknown")


def _tool_faults(entity: Entity, built_with: str, *, is_allowed: bool) -> Iterator[_Fault]:
    for note in entity.definition.diagnostics:
        if note.code == "tool_changed":
            yield _Fault("changed", note.detail)
    if not is_allowed:
        yield _Fault("filtered", "its status or scopes hide it from this caller")
    if built_with and built_with != schema_digest(entity):
        yield _Fault("schema_differs", f"the agent was built with {built_with}")
