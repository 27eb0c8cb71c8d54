from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from gateway.errors import StoreError
from gateway.runtime.cache import Clock
from gateway.sources.listing_store import StoredListing, StoredServer, decode, encode
from gateway.types import ToolDefinition
from gateway.types.listing import Listing

KEEP_S = 30 * 24 * 3600.0
"""Time after which an unused listing is deleted, in seconds."""
_USE_STEP_S = 24 * 3600.0
"""Interval for recording the use of a listing, in seconds, because writing slows down a start."""
Pin = tuple[str, str]
"""Digests (approved, last seen)."""


class Listings:
    """Base of a `ListingStore`, independent of the database. *wall* returns seconds since the
    epoch.
    """

    def __init__(self, wall: Clock = time.time) -> None:
        self._wall = wall
        self._used: dict[str, float] = {}
        """Time of uses that are not recorded yet, keyed by fingerprint."""

    @abstractmethod
    def read(self, owners: Mapping[str, str]) -> Mapping[str, StoredServer]:
        """See `ListingStore.read`."""

    @abstractmethod
    def bind(self, owner: str, holders: Mapping[str, str]) -> None:
        """Record the value of each name. The first value is approved."""

    def listing(self, fingerprint: str) -> StoredListing | None:
        """See `ListingStore.listing`."""
        return self.read({fingerprint: ""})[fingerprint].listing

    def pins(self, owner: str) -> Mapping[str, Pin]:
        """See `ListingStore.pins`."""
        return self.read({"": owner})[""].pins

    def changed(self, owner: str) -> frozenset[str]:
        """See `ListingStore.changed`."""
        pins = self.pins(owner).items()
        return frozenset(name for name, (approved, seen) in pins if approved != seen)

    def record_seen(self, owner: str, digests: Mapping[str, str]) -> frozenset[str]:
        """See `ListingStore.record_seen`."""
        pins = self.pins(owner)
        unknown = {
            name: digest
            for name, digest in digests.items()
            if pins.get(name, ("", ""))[1] != digest
        }
        changed = _unapproved(pins, digests)
        # Unchanged rows are not written, because writing is slower than reading.
        if not unknown:
            return changed
        try:
            self.bind(owner, unknown)
        except StoreError:
            # Report changes even if they cannot be recorded, for example on a full disk.
            if changed:
                return changed
            raise
        # Another process may have recorded other digests first.
        return _unapproved(self.pins(owner), digests)

    def _read_row(
        self, fingerprint: str, listed_at: float, text: str, used_at: float
    ) -> StoredListing | None:
        if (now := self._wall()) - used_at > _USE_STEP_S:
            self._used[fingerprint] = now
        with suppress(ValueError, KeyError, TypeError):
            return StoredListing(listing=decode(text), listed_at=listed_at)
        return None

    @staticmethod
    def _assemble(
        owners: Mapping[str, str],
        listings: Mapping[str, StoredListing | None],
        pins: Iterable[tuple[str, str, str, str]],
        failures: Iterable[tuple[str, float, str]],
    ) -> Mapping[str, StoredServer]:
        pins_of: dict[str, dict[str, Pin]] = {}
        for owner, name, approved, seen in pins:
            pins_of.setdefault(owner, {})[name] = approved, seen
        failure_of = {key: (failed_at, detail) for key, failed_at, detail in failures}
        return {
            key: StoredServer(
                listing=listings.get(key), pins=pins_of.get(owner, {}), failure=failure_of.get(key)
            )
            for key, owner in owners.items()
        }


def _unapproved(pins: Mapping[str, tuple[str, str]], digests: Mapping[str, str]) -> frozenset[str]:
    return frozenset(name for name, new in digests.items() if pins.get(name, (new, ""))[0] != new)


def former_definitions(text: str, new: Listing) -> Iterator[tuple[str, str]]:
    """Yield digest and JSON of each definition of the old listing *text* that *new* lacks."""
    with suppress(ValueError, KeyError, TypeError):
        old = decode(text)
        for digest in sorted({*old.digests.values()} - {*new.digests.values()}):
            if definition := old.pinned(digest):
                yield digest, encode(Listing(definitions=(definition,)))


def find_definition(
    digest: str, former_text: str | None, listings: Iterable[str]
) -> ToolDefinition | None:
    """Return the definition with *digest*; None if it is not stored any more.

    *former_text* is its JSON if it was removed from a listing. Otherwise search *listings*.
    """
    if former_text is not None:
        return next(iter(decode(former_text).definitions))
    return next(
        (definition for text in listings if (definition := decode(text).pinned(digest))), None
    )
