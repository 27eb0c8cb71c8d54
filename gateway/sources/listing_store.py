"""What a cached source asks of the store: its listing, and what was approved of it.

* A listing is kept under the fingerprint of its server's configuration: another configuration is
  another server. A listing that was not used for a month is deleted.
* An exposed name is pinned too: to the id of the tool that holds it.
* A pin is the digest of a definition as it was first seen or approved, beside that seen last.
* As text a listing is one line about it, and one line of its definitions, which are parsed when
  they are first looked at: a start whose index is saved looks at none.
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

_FIELDS = "name", "title", "description", "input_schema", "output_schema", "kind", "details"
_HINTS = "read_only", "destructive", "idempotent", "open_world"
_fields_of, _hints_of = attrgetter(*_FIELDS), attrgetter(*_HINTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredListing:
    """A listing as it was stored."""

    listing: Listing
    listed_at: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredServer:
    """What is stored of one server."""

    listing: StoredListing | None = None
    """None if there is none that can be read."""
    pins: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The digest that was approved and the one that was seen last, by name."""
    failure: tuple[float, str] | None = None
    """When it could not be listed, in seconds since the epoch, and why; None once it was."""

    def recent_failure(self, now: float, ttl_s: float) -> str:
        """Return why it could not be listed, if that was less than *ttl_s* seconds ago."""
        at, why = self.failure or (-math.inf, "")
        # A stamp from the future is of a clock that was wrong.
        return f"{why} (tried {now - at:.0f} s ago)" if 0 <= now - at < ttl_s else ""


class ListingStore(Protocol):
    """Where listings and pins are kept. Every method may raise `StoreError`."""

    def listing(self, fingerprint: str) -> StoredListing | None:
        """Return the listing of a configuration; None if there is none that can be read."""

    def read(self, owners: Mapping[str, str]) -> Mapping[str, StoredServer]:
        """Return what is stored of many servers at once, by the fingerprint of the configuration.

        Args:
            owners: The owner of a server's pins, by fingerprint.
        """

    def keep(self, fingerprint: str, server: str, listing: Listing) -> None:
        """Store a listing that was just read; if its configuration is new, sweep as well."""

    def note_failure(self, fingerprint: str, detail: str) -> None:
        """Record that a configuration could not be listed, and why, until it is."""

    def forget(self, fingerprint: str) -> None:
        """Delete the listing of a configuration."""

    def sweep(self) -> None:
        """Delete the listings that were not used for a month."""

    def record_seen(self, owner: str, digests: Mapping[str, str]) -> frozenset[str]:
        """Record what was seen; return the names whose digest is not the approved one.

        A name that is seen for the first time is approved with that digest.
        """

    def changed(self, owner: str) -> frozenset[str]:
        """Return the names whose digest, when last seen, was not the approved one."""

    def pins(self, owner: str) -> Mapping[str, tuple[str, str]]:
        """Return what was approved and what was seen last, by name."""

    def first_seen(self, owner: str) -> Mapping[str, float]:
        """Return when each value was bound first, in seconds since the epoch."""

    def bind(self, owner: str, holders: Mapping[str, str]) -> None:
        """Record which tool has, or wants, each exposed name; the first one that did holds it."""

    def approve(self, owner: str, names: Sequence[str], *, seen: str = "") -> None:
        """Approve *names* as they were seen last.

        Args:
            owner: Whose names they are.
            names: What is approved.
            seen: What a person looked at: a name that was seen as something else since stays as it
                is. Empty approves any.
        """

    def definition(self, digest: str) -> ToolDefinition | None:
        """Return the definition that is pinned with *digest*; None if it is not known any more.

        What was approved is known for as long as it is; what a server says of itself is a
        definition of kind ``server``.
        """

    def close(self) -> None:
        """Release what is held; the next call opens it again."""


def attempt_store(
    work: Callable[[], V], fallback: V, *, prefix: str = "", attempts: int = 3
) -> tuple[V, tuple[Diagnostic, ...]]:
    """Return what *work* does with a store; *fallback* and a diagnostic if that fails.

    A store that begins anew is asked again (it has two files), and a diagnostic says what it lost.
    """
    try:
        return work(), ()
    except StoreError as error:
        if attempts == 1 or not error.rebuilt:
            return fallback, (store_note(error, prefix),)
        found, notes = attempt_store(work, fallback, prefix=prefix, attempts=attempts - 1)
        return found, notes or (store_note(error),)


def store_note(error: StoreError, prefix: str = "") -> Diagnostic:
    """Return the diagnostic of an error of the catalog's store."""
    code: Code = "store_rebuilt" if error.rebuilt else "catalog_unavailable"
    return Diagnostic(stage="store", code=code, detail=f"{prefix}{error}")


class LazyDefinitions(Collection[ToolDefinition]):
    """The definitions of a stored listing, parsed when one is first looked at.

    Args:
        text: Their line.
        count: How many there are.
        digest: Of *text*: equal digests mean equal definitions.
    """

    def __init__(self, text: str, *, count: int, digest: str) -> None:
        self.digest = digest
        self._text = text
        self._count = count

    @cached_property
    def _items(self) -> tuple[ToolDefinition, ...]:
        return tuple(map(_decode_definition, json.loads(self._text)))

    def __len__(self) -> int:
        """The number of definitions; parses none."""
        return self._count

    def __iter__(self) -> Iterator[ToolDefinition]:
        """Yield the definitions, always the same objects."""
        return iter(self._items)

    def __contains__(self, item: object) -> bool:
        """Whether an equal definition is there."""
        return item in self._items


def encode(listing: Listing) -> str:
    """Return a listing as text, for `decode` to read."""
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
    """Return the listing of a text that `encode` wrote.

    Raises:
        ValueError, KeyError, TypeError: It is not as it was written.
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
    """Return the digest of the definitions of a listing, whether they were parsed yet or not.

    Returns:
        Empty where it would not say all: if the listing was never stored, or a definition of it is
        doubted.
    """
    if isinstance(listing.definitions, LazyDefinitions):
        return listing.definitions.digest
    if not listing.digests or any(item.diagnostics for item in listing.definitions):
        return ""
    return digest(_encode_definitions(listing.definitions))


def fields_of(item: ToolDefinition) -> dict[str, object]:
    """Return what is stored of a definition, by the names of its fields."""
    values = (*_fields_of(item), *_hints_of(item.hints))
    return dict(zip((*_FIELDS, *_HINTS), values, strict=True))


def _encode_definitions(definitions: Iterable[ToolDefinition]) -> str:
    return json.dumps([(*_fields_of(item), *_hints_of(item.hints)) for item in definitions])


def _decode_definition(row: Sequence[Any]) -> ToolDefinition:
    values, hints = row[: len(_FIELDS)], row[len(_FIELDS) :]
    return ToolDefinition(
        **dict(zip(_FIELDS, values, strict=True)),
        # A listing of before lacks the last one.
        hints=Hints(**dict(zip(_HINTS, hints, strict=False))),
    )
