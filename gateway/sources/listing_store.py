"""What a cached source asks of the store: tool lists, and what was approved of them.

* A tool list is kept under the fingerprint of its server's configuration: another configuration
  is another server. A list that nobody used for a month is forgotten.
* A pin is the digest of a definition as it was first seen or approved, beside that seen last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.types.listing import Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A tool list as it was kept."""

    listing: Listing
    listed_at: float
    """Seconds since the epoch."""


class Records(Protocol):
    """Where listings and pins are kept. Every method may raise `StoreError`."""

    def listing(self, fingerprint: str) -> Recorded | None:
        """Give the tool list of a configuration; None if there is none that can be read."""

    def keep(self, fingerprint: str, server: str, listing: Listing) -> None:
        """Keep a tool list that was just read; if its configuration is new, sweep as well."""

    def forget(self, fingerprint: str) -> None:
        """Forget the tool list of a configuration."""

    def sweep(self) -> None:
        """Forget the lists that nobody used for a month."""

    def see(self, owner: str, digests: Mapping[str, str]) -> frozenset[str]:
        """Note what was seen; give the names whose digest is not the approved one.

        A name that is seen for the first time is approved with that.
        """

    def changed(self, owner: str) -> frozenset[str]:
        """Give the names whose digest, when last seen, was not the approved one."""

    def approve(self, owner: str, names: Sequence[str]) -> None:
        """Approve *names* as they were seen last."""

    def close(self) -> None:
        """Let go of what is held; the next call takes it up again."""
