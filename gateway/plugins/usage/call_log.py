"""Call log: called tools, outcomes and tasks, without argument values.

* Each call is one row. Results and listings are not logged.
* Searches are counted by day and tenant, and found tools by day, tenant and tool. Query texts are
  stored only if the host turns that on.
* Tasks and tenants are labels chosen by the host and stored as digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from gateway.runtime.json_schema import as_object
from gateway.types import Entity, JsonObject

Outcome = Literal["ok", "tool_error", "failed"]
"""Outcome of a call. *tool_error*: the tool reported an error. *failed*: the call could not be sent
or was not answered."""
DAY_S = 24 * 3600.0
MOST_CALLS = 200_000
"""Maximum number of stored calls. The oldest are deleted first."""
KEEP_COUNTS_DAYS = 400
"""Number of days for which search counts are stored."""
KEEP_QUERIES_S = 30 * DAY_S
"""Number of seconds for which query texts are stored."""
MOST_QUERIES = 5_000
"""Maximum number of stored query texts. The oldest are deleted first."""
MAX_QUERY_CHARS = 500
"""Maximum length of a stored query text. Longer ones are cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNote:
    """One call of a tool."""

    tool: str
    """Canonical id, ``server/name``."""
    outcome: Outcome
    seconds: float = 0.0
    shape: Mapping[str, str] = field(default_factory=dict)
    """JSON type of each argument, keyed by name. Returned by `shape_of`."""
    task: str = ""
    """Label of the task, such as one request of a user. Empty if unknown."""
    tenant: str = ""
    """Label of the tenant. Calls without a tenant count for all tenants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Calls of one task."""

    tools: tuple[str, ...]
    """Ids of the tools called successfully, in order."""
    age_s: float = 0.0
    """Age of the last call in seconds, >= 0, rounded down to whole days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Number of calls of one tool on one day, by outcome."""

    tool: str
    age_s: float
    """Age of the calls in seconds, >= 0, rounded down to whole days."""
    succeeded: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchNote:
    """One finished search."""

    found: tuple[str, ...] = ()
    """Ids of the matches."""
    low_confidence: bool = False
    """True if the search reported low confidence in its matches."""
    query: str = ""
    """Query text without secrets. Empty unless the host stores query texts."""
    task: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTally:
    """Number of searches of one tenant, by outcome."""

    tenant: str = ""
    """Digest of the tenant's label. Empty for searches without a tenant."""
    searches: int = 0
    no_match: int = 0
    """Number of searches without a match."""
    low_confidence: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedQuery:
    """Query of a search whose matches were later called in the same task."""

    query: str
    tools: tuple[str, ...]
    """Ids of the matches called successfully, in order."""


class CallLog(Protocol):
    """Storage of calls and searches. Every method may raise `StoreError`.

    A *tenant* argument selects the rows of that tenant and the rows without a tenant. None selects
    the rows of all tenants.
    """

    def note(self, call: CallNote) -> None:
        """Store one call."""

    def note_searches(self, searches: Sequence[SearchNote]) -> None:
        """Count *searches* in one transaction and store their query texts, if they have any."""

    def searches(self, tenant: str | None = None) -> Sequence[SearchTally]:
        """Return the search counts of each tenant."""

    def found(self, tenant: str | None = None) -> Mapping[str, int]:
        """Return the number of searches that found each tool, keyed by tool id."""

    def served_queries(self, tenant: str | None = None) -> Sequence[ServedQuery]:
        """Return stored queries of searches that led to calls.

        A call belongs to the latest earlier search of its task that found the tool.
        """

    def tallies(self, tenant: str | None = None) -> Sequence[Tally]:
        """Return the number of calls by tool and day."""

    def tasks(self, tenant: str | None = None) -> Sequence[Task]:
        """Return the tasks. Calls without a task are left out."""

    def lines(self) -> Iterator[JsonObject]:
        """Yield all stored calls as JSON objects, oldest first."""

    def forget(self, *, tool: str = "", tenant: str = "") -> int:
        """Delete the calls of a tool, of a tenant, or both. Without either, delete all calls.

        Search counts of the tool, queries that found the tool, and all searches of the tenant are
        deleted too.

        Returns:
            Number of deleted calls.
        """

    def close(self) -> None:
        """Release all resources. The next method call acquires them again."""


def shape_of(entity: Entity, arguments: JsonObject) -> Mapping[str, str]:
    """Return the JSON type of each argument in the tool's schema, keyed by name.

    Names that are missing from the schema may be data themselves, so only their number is included,
    as the key ``+n``.
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
    """Return the digest of a label, because labels may contain people's names. "" for ""."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32] if text else ""
