"""Access policies and the options of the audit log."""

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
    """A rule for calls and searches. All its conditions must match; empty ones match everything.

    Patterns use shell wildcards, are case-sensitive, and their ``*`` also matches slashes.

    Example:
        >>> from gateway import Options
        >>> from gateway.options import AccessPolicy
        >>> rule = AccessPolicy(action="deny", tools=("github/delete_*",), users=("guest",))
        >>> options = Options(policies=(rule,))
    """

    action: PolicyAction
    """Effect of the rule. The first matching ``allow``, ``deny`` or ``ask`` decides. All matching
    ``redact`` and ``limit`` rules apply too."""
    name: str = ""
    """Name in the audit log and in errors. Empty uses the position, such as ``policy 3``."""
    tools: tuple[str, ...] = ()
    """Patterns of entity ids: ``server/name`` for tools, ``kind:server/name`` for other kinds."""
    servers: tuple[str, ...] = ()
    """Patterns of server names."""
    tags: tuple[str, ...] = ()
    """Tags, of which an entity needs one; case is ignored."""
    kinds: tuple[str, ...] = ()
    hints: tuple[PolicyHint, ...] = ()
    """Behaviours, of which a tool needs one. ``destructive`` and ``open_world``: declared by the
    tool. ``read_only``: declared by the host or a trusted server; all other tools are
    ``not_read_only``."""
    users: tuple[str, ...] = ()
    """Patterns of users; an empty pattern matches a caller without a user."""
    tenants: tuple[str, ...] = ()
    """Patterns of tenants; an empty pattern matches a caller without a tenant."""
    scopes: tuple[str, ...] = ()
    """Scopes, of which a caller needs one."""
    paths: tuple[str, ...] = ()
    """JSON members of results that ``redact`` hides, as dot paths such as ``customer.email``. ``*``
    matches any name. The items of lists are searched too."""
    secrets: bool = False
    """True lets ``redact`` also hide texts in results that look like secrets."""
    calls: Count | None = None
    """Maximum number of calls in each period, for ``limit``."""
    cost: Amount | None = None
    """Maximum total cost of the calls in each period, for ``limit``, in any unit."""
    call_cost: Amount = 1.0
    """Cost of one call. Policies with the same name share one total."""
    per: Period = "minute"
    """Length of the sliding window of ``limit``."""
    by: tuple[LimitedBy, ...] = ("user",)
    """Properties that ``limit`` counts separately, such as each user; empty counts all calls
    together."""

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
    """Options of the audit log of decisions about calls and changes of the catalog."""

    record: Literal["auto", "on", "off"] = "auto"
    """Use of the audit log. ``auto`` writes it in ``gateway serve --http`` and in commands that
    change something, but not in other programs."""
    on_failure: Literal["refuse", "continue"] = "refuse"
    """Handling of a call or change whose row cannot be written to the audit log. The row is written
    first, so ``refuse`` prevents the call or change."""
    keep_days: PositiveCount = 400
    """Number of days after which rows of the audit log are deleted."""
