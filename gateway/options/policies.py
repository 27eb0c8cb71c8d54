"""Policies: which caller may find and call what, what is asked first, hidden or limited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from gateway.options.validation import Count, Meta, OptionObject, PositiveCount

PolicyAction = Literal["allow", "deny", "ask", "redact", "limit"]
PolicyHint = Literal["destructive", "read_only", "not_read_only", "open_world"]
Period = Literal["minute", "hour", "day"]
LimitedBy = Literal["user", "tenant", "server", "tool"]
Amount = Annotated[float, Meta(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPolicy(OptionObject):
    """One rule. It applies where everything matches that it names; what is empty matches all.

    Patterns are those of a shell, case counts, and ``*`` goes over slashes.
    """

    action: PolicyAction
    """The first matching ``allow``, ``deny`` or ``ask`` decides. Every matching ``redact`` and
    ``limit`` applies besides."""
    name: str = ""
    """How the audit log and errors call it; empty is its place, as ``policy 3``."""
    tools: tuple[str, ...] = ()
    """Patterns of ids: ``server/name`` of tools, ``kind:server/name`` of all else."""
    servers: tuple[str, ...] = ()
    """Patterns of names."""
    tags: tuple[str, ...] = ()
    """One of these, compared without case."""
    kinds: tuple[str, ...] = ()
    hints: tuple[PolicyHint, ...] = ()
    """One of these: it says that it destroys, or reaches the open world; or it only reads, as the
    host or a trusted server says, or not."""
    users: tuple[str, ...] = ()
    """Patterns of the caller's user; an empty one is a caller without any."""
    tenants: tuple[str, ...] = ()
    """The same of its tenant."""
    scopes: tuple[str, ...] = ()
    """It holds one of these."""
    paths: tuple[str, ...] = ()
    """What ``redact`` hides: members of JSON objects, as ``customer.email``; ``*`` is any name, and
    lists are looked into."""
    secrets: bool = False
    """Whether ``redact`` hides what looks like a secret."""
    calls: Count | None = None
    """How many calls ``limit`` allows in each period."""
    cost: Amount | None = None
    """What they may cost together, in any unit."""
    call_cost: Amount = 1.0
    """What one call costs. Limits of one name count together, each at its own cost."""
    per: Period = "minute"
    """The period, which slides."""
    by: tuple[LimitedBy, ...] = ("user",)
    """What is counted apart; without any all calls together."""

    def _fault(self) -> str:
        if self.action == "redact" and not (self.paths or self.secrets):
            return "redact needs paths or secrets"
        if self.action == "limit" and self.calls is None and self.cost is None:
            return "limit needs calls or cost"
        if self.action != "redact" and (self.paths or self.secrets):
            return f"{self.action} hides nothing: paths and secrets belong to redact"
        if self.action != "limit" and (self.calls is not None or self.cost is not None):
            return f"{self.action} counts nothing: calls and cost belong to limit"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions(OptionObject):
    """The log of decisions and changes."""

    record: Literal["auto", "on", "off"] = "auto"
    """Whether they are recorded; ``auto``: by ``gateway serve --http`` and by commands that change
    something, and not in a program."""
    on_failure: Literal["refuse", "continue"] = "refuse"
    """What happens to a call, or a change, that cannot be recorded first."""
    keep_days: PositiveCount = 400
    """Older rows are deleted."""
