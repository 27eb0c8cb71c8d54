"""What a cached source asks of the store: its listing, and what was approved of it.

* A listing is kept under the fingerprint of its server's configuration: another configuration is
  another server. A listing that was not used for a month is deleted.
* A pin is the digest of a definition as it was first seen or approved, beside that seen last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.types.listing import Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredListing:
    """A listing as it was stored."""

    listing: Listing
    listed_at: float
    """Seconds since the epoch."""


class ListingStore(Protocol):
    """Where listings and pins are kept. Every method may raise `StoreError`."""

    def listing(self, fingerprint: str) -> StoredListing | None:
        """Return the listing of a configuration; None if there is none that can be read."""

    def keep(self, fingerprint: str, server: str, listing: Listing) -> None:
        """Store a listing that was just read; if its configuration is new, sweep as well."""

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

    def approve(self, owner: str, names: Sequence[str]) -> None:
        """Approve *names* as they were seen last."""

    def close(self) -> None:
        """Release what is held; the next call opens it again."""
