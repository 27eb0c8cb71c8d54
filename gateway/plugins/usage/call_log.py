"""The ledger of calls: which tool, how it ended, in which task. Never the value of an argument.

* There is one line for each call. Results and listings leave nothing here.
* Searches are counted by day and tenant, and how often each tool was found. Their texts are kept
  only where the host has them recorded.
* Tasks and tenants are opaque labels of the host's, kept as digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from gateway.runtime.json_schema import as_object
from gateway.types import Entity, JsonObject

Outcome = Literal["ok", "tool_error", "failed"]
"""*ok*: it answered; *tool_error*: it said that it failed; *failed*: it could not be asked, or did
not answer."""
DAY_S = 24 * 3600.0
MOST_CALLS = 200_000
"""How many calls are kept; of more, the oldest are deleted."""
KEEP_COUNTS_DAYS = 400
"""How long counts of searches are kept."""
KEEP_QUERIES_S = 30 * DAY_S
"""How long texts of searches are kept, where they are."""
MOST_QUERIES = 5_000
"""How many of them are kept; of more, the oldest are deleted."""
MAX_QUERY_CHARS = 500
"""What is kept of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNote:
    """One call of a tool."""

    tool: str
    """Canonical id, ``server/name``."""
    outcome: Outcome
    seconds: float = 0.0
    shape: Mapping[str, str] = field(default_factory=dict)
    """See `shape_of`."""
    task: str = ""
    """What the call belongs to, such as one request of a user; empty if unknown."""
    tenant: str = ""
    """For whom; what is noted without one teaches all tenants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What was called in one task."""

    tools: tuple[str, ...]
    """Those that succeeded, in order."""
    age_s: float = 0.0
    """How long ago the last of them was called, >= 0, in whole days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How the calls of one tool ended on one day."""

    tool: str
    age_s: float
    """How long ago, >= 0, in whole days."""
    succeeded: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchNote:
    """One search that ended."""

    found: tuple[str, ...] = ()
    """The ids of its matches."""
    low_confidence: bool = False
    """Whether it said that nothing found is likely to be what was wanted."""
    query: str = ""
    """Its text without secrets; empty unless the host has texts recorded."""
    task: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTally:
    """How the searches of one tenant ended."""

    tenant: str = ""
    """The digest of its label; empty for those without a tenant."""
    searches: int = 0
    no_match: int = 0
    """How many of them found nothing."""
    low_confidence: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedQuery:
    """A search after which some of its matches were called in the same task."""

    query: str
    tools: tuple[str, ...]
    """Those that succeeded, in order."""


class CallLog(Protocol):
    """Where calls are noted. Every method may raise `StoreError`."""

    def note(self, call: CallNote) -> None:
        """Record one call."""

    def note_searches(self, searches: Sequence[SearchNote]) -> None:
        """Count searches, all or none; keep their texts if they have some."""

    def searches(self, tenant: str | None = None) -> Sequence[SearchTally]:
        """Count searches by tenant: of one tenant and without a tenant, or of all."""

    def found(self, tenant: str | None = None) -> Mapping[str, int]:
        """Count how often each tool was found, by the same tenants."""

    def served_queries(self, tenant: str | None = None) -> Sequence[ServedQuery]:
        """Return the texts that are kept of searches that led to calls, by the same tenants.

        A call belongs to the last search before it that found its tool.
        """

    def tallies(self, tenant: str | None = None) -> Sequence[Tally]:
        """Count calls by tool and day: of one tenant and without a tenant, or of all."""

    def tasks(self, tenant: str | None = None) -> Sequence[Task]:
        """Return the tasks of one tenant and those without a tenant, or all; calls without a task
        are none.
        """

    def lines(self) -> Iterator[JsonObject]:
        """Return all that is kept of calls, oldest first."""

    def forget(self, *, tool: str = "", tenant: str = "") -> int:
        """Forget the calls of a tool, of a tenant, or both; all calls without either.

        What is kept of searches is forgotten with them: how often the tool was found, texts of
        searches that found it, and all searches of the tenant.

        Returns:
            How many calls were forgotten.
        """

    def close(self) -> None:
        """Let go of what is held; the next call takes it up again."""


def shape_of(entity: Entity, arguments: JsonObject) -> Mapping[str, str]:
    """Return the JSON type of each argument that the tool's schema names, by name.

    Names that the schema does not have may be data themselves: they are counted, as ``+n``.
    """
    properties = as_object(entity.definition.input_schema.get("properties"))
    shape = {name: _type(value) for name, value in sorted(arguments.items()) if name in properties}
    others = len(arguments) - len(shape)
    return shape | ({f"+{others}": "unknown"} if others else {})


def _type(value: object) -> str:
    kinds: Sequence[tuple[type | tuple[type, ...], str]] = (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (Mapping, "object"),
        ((list, tuple), "array"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def label(text: str) -> str:
    """Return the digest of a host's label, since labels may be people's names; "" for ""."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32] if text else ""
