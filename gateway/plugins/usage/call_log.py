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
"""Number of days for which search counts are stored before they are deleted."""
KEEP_QUERIES_S = 30 * DAY_S
"""Number of seconds for which query texts are stored before they are deleted."""
MOST_QUERIES = 5_000
"""Maximum number of stored query texts. The oldest are deleted first."""
MAX_QUERY_CHARS = 500
"""Maximum length of a stored query text, in characters. Longer texts are cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNote:
    """Record of one call of a tool."""

    tool: str
    """Canonical id of the tool, ``server/name``."""
    outcome: Outcome
    seconds: float = 0.0
    shape: Mapping[str, str] = field(default_factory=dict)
    """JSON type of each argument, keyed by argument name, as `shape_of` returns it."""
    task: str = ""
    """Label of the task that the call belongs to, such as one request of a user. Empty if
    unknown."""
    tenant: str = ""
    """Label of the tenant. Calls without a tenant are used for all tenants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Calls of one task."""

    tools: tuple[str, ...]
    """Ids of the tools called successfully, in order."""
    age_s: float = 0.0
    """Age of the task's last call in seconds, >= 0, rounded down to whole days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Numbers of successful and failed calls of one tool on one day."""

    tool: str
    age_s: float
    """Age of the calls in seconds, >= 0, rounded down to whole days."""
    succeeded: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchNote:
    """Record of one finished search."""

    found: tuple[str, ...] = ()
    """Ids of the entities that the search found."""
    low_confidence: bool = False
    """True if the search reported low confidence in its matches."""
    query: str = ""
    """Query text without secrets. Empty unless the host stores query texts."""
    task: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTally:
    """Numbers of searches of one tenant: all, without a match, and with low confidence."""

    tenant: str = ""
    """Digest of the tenant's label. Empty for the searches without a tenant."""
    searches: int = 0
    no_match: int = 0
    """Number of searches without a match."""
    low_confidence: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedQuery:
    """Query of a search that found tools which were called later in the same task."""

    query: str
    tools: tuple[str, ...]
    """Ids of the found tools that were called successfully, in order."""


class CallLog(Protocol):
    """Storage of calls and searches. Every method may raise `StoreError`.

    A *tenant* argument selects the rows of that tenant and the rows without a tenant. None selects
    the rows of all tenants.
    """

    def note(self, call: CallNote) -> None:
        """Store one call."""

    def note_searches(self, searches: Sequence[SearchNote]) -> None:
        """Count *searches* and store their query texts, if they have any, in one transaction."""

    def searches(self, tenant: str | None = None) -> Sequence[SearchTally]:
        """Return the search counts of each tenant."""

    def found(self, tenant: str | None = None) -> Mapping[str, int]:
        """Return the number of searches that found each tool, keyed by tool id."""

    def served_queries(self, tenant: str | None = None) -> Sequence[ServedQuery]:
        """Return the stored queries of searches whose matches were called, each with the called
        tools.

        A call belongs to the latest earlier search of its task that found the tool.
        """

    def tallies(self, tenant: str | None = None) -> Sequence[Tally]:
        """Return the numbers of calls of each tool on each day."""

    def tasks(self, tenant: str | None = None) -> Sequence[Task]:
        """Return the tasks with their calls. Calls without a task are left out."""

    def lines(self) -> Iterator[JsonObject]:
        """Yield all stored calls as JSON objects, oldest first."""

    def forget(self, *, tool: str = "", tenant: str = "") -> int:
        """Delete the calls of a tool or of a tenant. With both, delete only the tenant's calls of
        the tool. With neither, delete all calls.

        Related data is deleted too: search counts of the tool, queries that found the tool, and all
        searches of the tenant.

        Returns:
            Number of deleted calls.
        """

    def close(self) -> None:
        """Release all resources. The next use of the log acquires them again."""


def shape_of(entity: Entity, arguments: JsonObject) -> Mapping[str, str]:
    """Return the JSON type of each argument that the tool's schema names, keyed by argument name.

    Names of other arguments may be data themselves. So only their number n is returned, as the key
    ``+n``.
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
    """Return the digest of the label *text*, because labels may contain people's names. Return ""
    for an empty label.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32] if text else ""
