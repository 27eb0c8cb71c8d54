"""Usage statistics: tools that searches never found or nobody called, and their tokens."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from gateway.index.snapshot import Snapshot
from gateway.plugins.usage.call_log import CallLog, SearchTally
from gateway.runtime.text import estimate_tokens
from gateway.types import Entity
from gateway.types.caller import filters_for


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSearches:
    """Searches of one tenant."""

    tenant: str = ""
    """Digest of the tenant's label; empty for searches without a tenant."""
    searches: int = 0
    no_match_share: float = 0.0
    """Share of searches without a match, 0 to 1."""
    low_confidence_share: float = 0.0
    """Share of searches with low confidence, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerUse:
    """Usage of one server's tools."""

    server: str
    tools: int
    never_found: tuple[str, ...]
    """Sorted ids of the tools that no search returned."""
    never_called: tuple[str, ...]
    schema_tokens: int
    """Estimated number of tokens of all definitions."""
    unused_tokens: int
    """Estimated number of tokens of the definitions that were never called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """Usage of the tools in the current catalog."""

    total: TenantSearches
    tenants: tuple[TenantSearches, ...]
    """Statistics by tenant digest. Searches without a tenant come first."""
    servers: tuple[ServerUse, ...]
    """Usage by server name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """Usage of one tool."""

    found: int = 0
    """Number of searches that returned the tool."""
    succeeded: int = 0
    failed: int = 0


def tool_use(call_log: CallLog, tool: str, tenant: str | None = None) -> ToolUse:
    """Return the usage of one tool.

    Args:
        call_log: Log of calls and searches.
        tool: Id of the tool.
        tenant: Tenant, as for `CallLog`.

    Raises:
        StoreError: If the call log cannot be read.
    """
    tallies = [tally for tally in call_log.tallies(tenant) if tally.tool == tool]
    return ToolUse(
        found=call_log.found(tenant).get(tool, 0),
        succeeded=sum(tally.succeeded for tally in tallies),
        failed=sum(tally.failed for tally in tallies),
    )


def usage_report(snapshot: Snapshot, call_log: CallLog, tenant: str | None = None) -> UsageReport:
    """Return the usage of all enabled tools of *snapshot*.

    Args:
        snapshot: Catalog.
        call_log: Log of calls and searches.
        tenant: Tenant, as for `CallLog`.

    Raises:
        StoreError: If the call log cannot be read.
    """
    tallies, found_tools = call_log.searches(tenant), call_log.found(tenant)
    called = {tally.tool for tally in call_log.tallies(tenant)}
    by_server: defaultdict[str, list[Entity]] = defaultdict(list)
    for tool in snapshot.visible(filters_for(None)):
        if tool.hints.enabled and not tool.described:
            by_server[tool.server].append(tool)
    sums = Counter[str]()
    for tally in tallies:
        sums.update(searches=tally.searches, none=tally.no_match, low=tally.low_confidence)
    total = SearchTally(
        searches=sums["searches"], no_match=sums["none"], low_confidence=sums["low"]
    )
    return UsageReport(
        total=_shares(total),
        tenants=tuple(map(_shares, tallies)),
        servers=tuple(
            _server_use(server, tools, found_tools.keys(), called)
            for server, tools in sorted(by_server.items())
        ),
    )


def _shares(tally: SearchTally) -> TenantSearches:
    searches = max(tally.searches, 1)
    return TenantSearches(
        tenant=tally.tenant,
        searches=tally.searches,
        no_match_share=round(tally.no_match / searches, 4),
        low_confidence_share=round(tally.low_confidence / searches, 4),
    )


def _server_use(
    server: str, tools: Sequence[Entity], found: AbstractSet[str], called: AbstractSet[str]
) -> ServerUse:
    tokens = {tool.id: schema_tokens(tool) for tool in tools}
    never_called = tuple(sorted(tokens.keys() - called))
    return ServerUse(
        server=server,
        tools=len(tools),
        never_found=tuple(sorted(tokens.keys() - found)),
        never_called=never_called,
        schema_tokens=sum(tokens.values()),
        unused_tokens=sum(tokens[key] for key in never_called),
    )


def schema_tokens(tool: Entity) -> int:
    """Return the estimated number of tokens of a tool's definition."""
    definition = [tool.exposed_name, tool.description, dict(tool.definition.input_schema)]
    return estimate_tokens(json.dumps(definition, ensure_ascii=False))
