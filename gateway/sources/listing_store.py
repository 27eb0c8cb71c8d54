"""Protocol and text format of stored listings and approvals.

* A listing is stored under the fingerprint of its server's configuration.
* An approval contains two digests of a definition: approved and last seen. Bindings of exposed
  names are stored like approvals, with tool ids in place of digests.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from gateway.errors import StoreError
from gateway.runtime.text import digest
from gateway.types import Code, Diagnostic, Hints, ToolDefinition
from gateway.types.listing import Listing

V = TypeVar("V")

_FIELD_NAMES = "name", "title", "description", "input_schema", "output_schema", "kind", "details"
_HINT_NAMES = "read_only", "destructive", "idempotent", "open_world"
_fields_of, _hints_of = attrgetter(*_FIELD_NAMES), attrgetter(*_HINT_NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredListing:
    """A listing, and when it was read from its server."""

    listing: Listing
    listed_at: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredServer:
    """State of one server in the store: listing, approvals and last failure."""

    listing: StoredListing | None = None
    """Stored listing; None if missing or unreadable."""
    pins: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Pairs (approved digest, last seen digest), keyed by name of the definition."""
    failure: tuple[float, str] | None = None
    """Time (seconds since the epoch) and reason of the last failed listing; None after a
    success.
    """

    def recent_failure(self, now: float, ttl_s: float) -> str:
        """Return the reason of a failure in the *ttl_s* seconds before *now*, or ""."""
        failed_at, why = self.failure or (-math.inf, "")
        # A timestamp in the future comes from a wrong clock.
        return f"{why} (tried {now - failed_at:.0f} s ago)" if 0 <= now - failed_at < ttl_s else ""


class ListingStore(Protocol):
    """Store of listings and approvals. Every method may raise `StoreError`."""

    def listing(self, fingerprint: str) -> StoredListing | None:
        """Return the listing stored under *fingerprint*; None if missing or unreadable."""

    def read(self, owners: Mapping[str, str]) -> Mapping[str, StoredServer]:
        """Return the stored state of servers, keyed by fingerprint.

        *owners* are the owners of their approvals, keyed by fingerprint.
        """

    def keep(self, fingerprint: str, server: str, listing: Listing) -> None:
        """Store a new *listing*. If *fingerprint* is new, also call `sweep`."""

    def note_failure(self, fingerprint: str, detail: str) -> None:
        """Store the reason of a failed listing, until a listing succeeds."""

    def forget(self, fingerprint: str) -> None:
        """Delete the listing stored under *fingerprint*."""

    def sweep(self) -> None:
        """Delete the listings that no process has used for a month."""

    def record_seen(self, owner: str, digests: Mapping[str, str]) -> frozenset[str]:
        """Record the current *digests*, keyed by definition name; return the names that are not
        approved.

        The first digest of a name is approved automatically.
        """

    def changed(self, owner: str) -> frozenset[str]:
        """Return the names whose last seen digest is not approved."""

    def pins(self, owner: str) -> Mapping[str, tuple[str, str]]:
        """Return pairs (approved digest, last seen digest), keyed by definition name."""

    def first_seen(self, owner: str) -> Mapping[str, float]:
        """Return when each tool was first bound to a name, in seconds since the epoch, by id."""

    def bind(self, owner: str, holders: Mapping[str, str]) -> None:
        """Record the tool that claims each exposed name. The first tool keeps the name.

        Args:
            owner: Key under which the names are stored.
            holders: Ids of the tools that now claim the names, keyed by exposed name.
        """

    def approve(self, owner: str, names: Sequence[str], *, seen: str = "") -> None:
        """Approve the last seen digests of *names*.

        If *seen*, the digest that a person reviewed, is not empty, approve only this digest.
        """

    def definition(self, digest: str) -> ToolDefinition | None:
        """Return the definition with this digest; None if unknown.

        Approved definitions stay known. A server's instructions are a definition of kind
        ``server``.
        """

    def close(self) -> None:
        """Close the store. The next call opens it again."""


def attempt_store(
    work: Callable[[], V], fallback: V, *, prefix: str = "", attempts: int = 3
) -> tuple[V, tuple[Diagnostic, ...]]:
    """Run *work*, which uses a store; return its result.

    If the store fails, return *fallback* and a diagnostic, whose text begins with *prefix*. If a
    damaged store was rebuilt, repeat *work*, and report the lost data. A store has two files.
    """
    try:
        return work(), ()
    except StoreError as error:
        if attempts == 1 or not error.rebuilt:
            return fallback, (store_note(error, prefix),)
        result, notes = attempt_store(work, fallback, prefix=prefix, attempts=attempts - 1)
        return result, notes or (store_note(error),)


def store_note(error: StoreError, prefix: str = "") -> Diagnostic:
    """Return the diagnostic for *error* of the catalog's store. *prefix* begins its text."""
    code: Code = "store_rebuilt" if error.rebuilt else "catalog_unavailable"
    return Diagnostic(stage="store", code=code, detail=f"{prefix}{error}")


class LazyDefinitions(Collection[ToolDefinition]):
    """Definitions of a stored listing, parsed at the first access.

    Args:
        text: Line with the definitions, as JSON.
        count: Number of definitions.
        digest: Digest of *text*.
    """

    def __init__(self, text: str, *, count: int, digest: str) -> None:
        self.digest = digest
        self._text = text
        self._count = count

    @cached_property
    def _items(self) -> tuple[ToolDefinition, ...]:
        return tuple(map(_decode_definition, json.loads(self._text)))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ToolDefinition]:
        return iter(self._items)

    def __contains__(self, item: object) -> bool:
        return item in self._items


def encode(listing: Listing) -> str:
    """Return *listing* as text for a store; see `decode`."""
    definitions = _encode_definitions(listing.definitions)
    header = {
        "definitions": len(listing.definitions),
        "digest": digest(definitions),
        "instructions": listing.instructions,
        "notes": [(note.code, note.detail) for note in listing.diagnostics],
        "digests": dict(listing.digests),
        "suspicions": dict(listing.suspicions),
    }
    return f"{json.dumps(header)}\n{definitions}"


def decode(text: str) -> Listing:
    """Return the listing from a *text* of `encode`.

    Raises:
        ValueError, KeyError, TypeError: If the text was changed or is damaged.
    """
    first, definitions = text.split("\n", 1)
    header = json.loads(first)
    count, written = header["definitions"], header["digest"]
    if digest(definitions) != written:
        raise ValueError("the definitions are not as they were written")
    return Listing(
        definitions=LazyDefinitions(definitions, count=count, digest=written),
        instructions=header["instructions"],
        diagnostics=tuple(
            Diagnostic(stage="catalog", code=code, detail=detail)
            for code, detail in header["notes"]
        ),
        digests=header["digests"],
        suspicions={name: tuple(reasons) for name, reasons in header["suspicions"].items()},
    )


def digest_of(listing: Listing) -> str:
    """Return a digest of the definitions of *listing*, without parsing stored definitions.

    It would be incomplete, and is therefore empty, if the listing has no digests or a definition
    has diagnostics.
    """
    if isinstance(listing.definitions, LazyDefinitions):
        return listing.definitions.digest
    if not listing.digests or any(item.diagnostics for item in listing.definitions):
        return ""
    return digest(_encode_definitions(listing.definitions))


def fields_of(item: ToolDefinition) -> dict[str, object]:
    """Return the stored fields of a definition, keyed by field name."""
    values = (*_fields_of(item), *_hints_of(item.hints))
    return dict(zip((*_FIELD_NAMES, *_HINT_NAMES), values, strict=True))


def _encode_definitions(definitions: Iterable[ToolDefinition]) -> str:
    return json.dumps([(*_fields_of(item), *_hints_of(item.hints)) for item in definitions])


def _decode_definition(row: Sequence[Any]) -> ToolDefinition:
    values, hints = row[: len(_FIELD_NAMES)], row[len(_FIELD_NAMES) :]
    return ToolDefinition(
        **dict(zip(_FIELD_NAMES, values, strict=True)),
        # A listing stored by an earlier version lacks the last hint.
        hints=Hints(**dict(zip(_HINT_NAMES, hints, strict=False))),
    )
