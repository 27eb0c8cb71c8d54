"""Call log: called tools, outcomes and tasks, without argument values and results.

* Searches are counted by day and tenant, and found tools by day, tenant and tool. Query texts are
  stored only if the host turns that on.
* Tasks and tenants are labels of the host, stored as digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from gateway.runtime.json_schema import as_object
from gateway.types import Entity, JsonObject

Outcome = Literal["ok", "tool_error", "failed"]
"""``tool_error``: the tool reported an error. ``failed``: the call was not sent or not answered."""
DAY_S = 24 * 3600.0
MOST_CALLS = 200_000
"""Maximum number of stored calls. The oldest are deleted."""
KEEP_COUNTS_DAYS = 400
"""Number of days after which search counts are deleted."""
KEEP_QUERIES_S = 30 * DAY_S
"""Number of seconds after which query texts are deleted."""
MOST_QUERIES = 5_000
"""Maximum number of stored query texts. The oldest are deleted."""
MAX_QUERY_CHARS = 500
"""Number of characters after which query texts are cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNote:
    """Record of a call."""

    tool: str
    """Canonical id, ``server/name``."""
    outcome: Outcome
    seconds: float = 0.0
    shape: Mapping[str, str] = field(default_factory=dict)
    """JSON types of the arguments, as `shape_of` returns them."""
    task: str = ""
    """Label of the task, such as one request of a user; empty if unknown."""
    tenant: str = ""
    """Label of the tenant. Calls without a tenant count for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Calls of one task."""

    tools: tuple[str, ...]
    """Ids of the successfully called tools, in order."""
    age_s: float = 0.0
    """Age of the last call in seconds, >= 0, rounded down to days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Calls of one tool on one day."""

    tool: str
    age_s: float
    """Age in seconds, >= 0, rounded down to days."""
    succeeded: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchNote:
    """Record of a finished search."""

    found: tuple[str, ...] = ()
    """Ids of the found entities."""
    low_confidence: bool = False
    """True if the search reported low confidence."""
    query: str = ""
    """Query text without secrets; empty unless the host stores query texts."""
    task: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTally:
    """Searches of one tenant."""

    tenant: str = ""
    """Digest of the tenant's label; empty for searches without a tenant."""
    searches: int = 0
    no_match: int = 0
    """Number of searches without a match."""
    low_confidence: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedQuery:
    """Query of a search that found tools which its task called later."""

    query: str
    tools: tuple[str, ...]
    """Ids of the found and successfully called tools, in order."""


class CallLog(Protocol):
    """Storage of calls and searches. Every method may raise `StoreError`.

    A *tenant* selects its rows and the rows without a tenant. None selects all rows.
    """

    def note(self, call: CallNote) -> None:
        """Store one call."""

    def note_searches(self, searches: Sequence[SearchNote]) -> None:
        """Count *searches* and store their query texts, in one transaction."""

    def searches(self, tenant: str | None = None) -> Sequence[SearchTally]:
        """Return the search counts of each tenant."""

    def found(self, tenant: str | None = None) -> Mapping[str, int]:
        """Return the number of searches that found each tool, keyed by tool id."""

    def served_queries(self, tenant: str | None = None) -> Sequence[ServedQuery]:
        """Return stored queries whose matches were called, with the called tools.

        A call belongs to the latest search of its task that found the tool.
        """

    def tallies(self, tenant: str | None = None) -> Sequence[Tally]:
        """Return the numbers of calls of each tool on each day."""

    def tasks(self, tenant: str | None = None) -> Sequence[Task]:
        """Return the tasks with their calls."""

    def lines(self) -> Iterator[JsonObject]:
        """Yield all stored calls as JSON objects, oldest first."""

    def forget(self, *, tool: str = "", tenant: str = "") -> int:
        """Delete the calls of a tool and tenant, and return their number. Empty is every one.

        Related data is deleted too: search counts of the tool, queries that found the tool, and all
        searches of the tenant.
        """

    def close(self) -> None:
        """Release all resources until the next use."""


def shape_of(entity: Entity, arguments: JsonObject) -> Mapping[str, str]:
    """Return the JSON type of each argument in the tool's schema, keyed by name.

    Names of other arguments may be data, so only their number n is returned, as the key ``+n``.
    """
    properties = as_object(entity.definition.input_schema.get("properties"))
    shape = {name: _type(value) for name, value in sorted(arguments.items()) if name in properties}
    unknown = len(arguments) - len(shape)
    return shape | ({f"+{unknown}": "unknown"} if unknown else {})


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
    """Return the digest of a label, which may contain people's names; "" if it is empty."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32] if text else ""
