"""What every store of listings decides alike: what changed, and whether its text can be read."""

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
"""How long a listing that is not used is kept."""
_USE_STEP_S = 24 * 3600.0
"""The use of a listing is recorded once a day: a start that writes costs more than one that
reads."""
Pin = tuple[str, str]
"""The digest that was approved, and the one seen last."""


class Listings:
    """The part of a `ListingStore` that is the same wherever the rows are.

    Args:
        wall: Seconds since the epoch.
    """

    def __init__(self, wall: Clock = time.time) -> None:
        self._wall = wall
        self._used: dict[str, float] = {}
        """When listings were read whose use is still to be recorded, by fingerprint."""

    @abstractmethod
    def read(self, owners: Mapping[str, str]) -> Mapping[str, StoredServer]:
        """See `ListingStore.read`."""

    @abstractmethod
    def bind(self, owner: str, holders: Mapping[str, str]) -> None:
        """See `ListingStore.bind`."""

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
        # Writing what is there already would cost every start more than reading it.
        if not unknown:
            return changed
        try:
            self.bind(owner, unknown)
        except StoreError:
            # A full disk must not hide what is not as it was approved.
            if changed:
                return changed
            raise
        # Another process may have seen them first, and seen something else.
        return _unapproved(self.pins(owner), digests)

    def _stored(
        self, fingerprint: str, listed_at: float, text: str, used_at: float
    ) -> StoredListing | None:
        """Return a listing of its row, whose use is noted; None if it cannot be read."""
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
        """Return what `read` does, of the rows that it found."""
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
    """Yield the digest and the text of each definition of an old listing that *new* lacks."""
    with suppress(ValueError, KeyError, TypeError):
        old = decode(text)
        for digest in sorted({*old.digests.values()} - {*new.digests.values()}):
            if definition := old.pinned(digest):
                yield digest, encode(Listing(definitions=(definition,)))


def find_definition(
    digest: str, former_text: str | None, listings: Iterable[str]
) -> ToolDefinition | None:
    """Return the definition that is pinned with *digest*; None if it is not known any more.

    Args:
        digest: The pinned one.
        former_text: What is kept of a definition that no listing has any more.
        listings: The texts of those that may have it.
    """
    if former_text is not None:
        return next(iter(decode(former_text).definitions))
    return next((found for text in listings if (found := decode(text).pinned(digest))), None)
