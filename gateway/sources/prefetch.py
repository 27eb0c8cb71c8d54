"""Records that are read ahead: everything that a start will ask for, at once.

A start asks for the list and the pins of every server. Read together they cost what a few
transactions cost, one by one hundreds. What was read ahead is given once, to whoever asks first;
later questions, and whatever is written, go to the store itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from threading import Lock
from typing import Protocol

from gateway.catalog.approvals import LAUNCH
from gateway.sources.listing_codec import LateDigests, seen_of
from gateway.sources.listing_store import Recorded, Records
from gateway.types.listing import Listing


class ManyRecords(Records, Protocol):
    """Records that can be read many at a time."""

    def listings(self, fingerprints: Collection[str]) -> dict[str, Recorded]:
        """Give the tool lists of those configurations that have one."""

    def pins(self, owners: Collection[str]) -> dict[tuple[str, bool], str]:
        """Give what was seen last, as `seen_of` writes it, where all of it is approved.

        Returns:
            By owner, and whether it is the pin of a command line.
        """


class Ahead:
    """`Records`, read ahead. May be used from any thread.

    Args:
        records: The store.
    """

    def __init__(self, records: ManyRecords) -> None:
        self._records = records
        self._lock = Lock()
        self._expected: dict[str, str] = {}
        self._owners: set[str] = set()
        self._listings: dict[str, Recorded | None] = {}
        self._pins: dict[tuple[str, bool], str] = {}

    def expect(self, fingerprint: str, owner: str) -> None:
        """Announce that the list of *fingerprint* and the pins of *owner* will be asked for."""
        with self._lock:
            self._listings.pop(fingerprint, None)
            self._unpin(owner)
            self._expected[fingerprint] = owner
            self._owners.add(owner)

    def listing(self, fingerprint: str) -> Recorded | None:
        """See `Records.listing`."""
        with self._lock:
            if fingerprint in self._expected:
                self._read()
            if fingerprint in self._listings:
                return self._listings.pop(fingerprint)
        return self._records.listing(fingerprint)

    def see(self, owner: str, digests: Mapping[str, str]) -> frozenset[str]:
        """See `Records.see`; what is pinned as it is seen needs no look at the store."""
        with self._lock:
            if owner in self._owners:
                self._read()
            launch = not isinstance(digests, LateDigests) and LAUNCH in digests
            known = self._pins.pop((owner, launch), None)
        if known is not None and known == seen_of(digests):
            return frozenset()
        return self._records.see(owner, digests)

    def changed(self, owner: str) -> frozenset[str]:
        """See `Records.changed`."""
        return self._records.changed(owner)

    def keep(self, fingerprint: str, server: str, listing: Listing) -> None:
        """See `Records.keep`."""
        self._drop(fingerprint)
        self._records.keep(fingerprint, server, listing)

    def forget(self, fingerprint: str) -> None:
        """See `Records.forget`."""
        self._drop(fingerprint)
        self._records.forget(fingerprint)

    def sweep(self) -> None:
        """See `Records.sweep`."""
        self._records.sweep()

    def approve(self, owner: str, names: Sequence[str]) -> None:
        """See `Records.approve`."""
        with self._lock:
            self._unpin(owner)
        self._records.approve(owner, names)

    def close(self) -> None:
        """See `Records.close`."""
        self._records.close()

    def _read(self) -> None:
        expected, self._expected = self._expected, {}
        owners, self._owners = self._owners, set()
        listings, pins = self._records.listings(expected), self._records.pins(owners)
        self._listings |= {each: listings.get(each) for each in expected}
        self._pins |= pins

    def _unpin(self, owner: str) -> None:
        for launch in (False, True):
            self._pins.pop((owner, launch), None)

    def _drop(self, fingerprint: str) -> None:
        with self._lock:
            self._expected.pop(fingerprint, None)
            self._listings.pop(fingerprint, None)
