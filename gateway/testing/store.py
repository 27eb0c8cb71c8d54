"""A store that forgets at the end of the process, and touches no disk."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from gateway.catalog.entries import Entry, decode_entries, encode_entry
from gateway.embed.cache import MemoryVectorStore
from gateway.runtime.cache import Clock
from gateway.sources.listing_store import StoredListing
from gateway.storage.listing_store import KEEP_S
from gateway.types import JsonObject
from gateway.types.listing import Listing
from gateway.usage.call_log import DAY_S, MOST_CALLS, Call, Seen, Tally, Task, label


class MemoryEntries:
    """`Entries` in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, str] = {}

    def rows(self) -> Mapping[str, str]:
        """See `Entries.rows`."""
        with self._lock:
            return dict(self._rows)

    def ids(self) -> Collection[str]:
        """See `Entries.ids`."""
        return self.rows().keys()

    def entries(self) -> Sequence[Entry]:
        """See `Entries.entries`."""
        return decode_entries(self.rows())

    def put(self, entries: Sequence[Entry]) -> None:
        """See `Entries.put`."""
        rows = {entry.id: encode_entry(entry) for entry in entries}
        with self._lock:
            self._rows |= rows

    def remove(self, key: str) -> bool:
        """See `Entries.remove`."""
        with self._lock:
            return self._rows.pop(key, None) is not None

    def close(self) -> None:
        """Nothing to let go of."""


class MemoryListingStore:
    """`ListingStore` in memory.

    Args:
        wall: Seconds since the epoch.
    """

    def __init__(self, *, wall: Clock = time.time) -> None:
        self._wall = wall
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[StoredListing, float]] = {}
        self._pins: dict[str, dict[str, tuple[str, str]]] = {}

    def listing(self, fingerprint: str) -> StoredListing | None:
        """See `ListingStore.listing`."""
        with self._lock:
            if fingerprint not in self._kept:
                return None
            recorded, _ = self._kept[fingerprint]
            self._kept[fingerprint] = recorded, self._wall()
            return recorded

    def keep(self, fingerprint: str, server: str, listing: Listing) -> None:  # noqa: ARG002  (for who reads a file)
        """See `ListingStore.keep`."""
        now = self._wall()
        with self._lock:
            if fingerprint not in self._kept:
                self._sweep(now)
            self._kept[fingerprint] = StoredListing(listing=listing, listed_at=now), now

    def forget(self, fingerprint: str) -> None:
        """See `ListingStore.forget`."""
        with self._lock:
            self._kept.pop(fingerprint, None)

    def sweep(self) -> None:
        """See `ListingStore.sweep`."""
        with self._lock:
            self._sweep(self._wall())

    def _sweep(self, now: float) -> None:
        least = now - KEEP_S
        self._kept = {key: each for key, each in self._kept.items() if each[1] >= least}

    def record_seen(self, owner: str, digests: Mapping[str, str]) -> frozenset[str]:
        """See `ListingStore.see`."""
        with self._lock:
            pins = self._pins.setdefault(owner, {})
            for name, digest in digests.items():
                pins[name] = pins.get(name, (digest, ""))[0], digest
            return frozenset(name for name in digests if pins[name][0] != pins[name][1])

    def changed(self, owner: str) -> frozenset[str]:
        """See `ListingStore.changed`."""
        with self._lock:
            pins = self._pins.get(owner, {})
            return frozenset(name for name, (approved, seen) in pins.items() if approved != seen)

    def approve(self, owner: str, names: Sequence[str]) -> None:
        """See `ListingStore.approve`."""
        with self._lock:
            pins = self._pins.get(owner, {})
            pins.update({name: (pins[name][1],) * 2 for name in names if name in pins})

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    at: float
    call: Call


class MemoryCallLog:
    """A `CallLog` in memory.

    Args:
        wall: Seconds since the epoch.
        most: How many calls are kept.
    """

    def __init__(self, *, wall: Clock = time.time, most: int = MOST_CALLS) -> None:
        self._wall = wall
        self._lock = threading.Lock()
        self._calls: deque[_Line] = deque(maxlen=most)
        self._accesses: dict[tuple[str, int], Seen] = {}
        self._pairs: dict[frozenset[str], Seen] = {}

    def note(self, call: Call) -> None:
        """See `CallLog.note`."""
        with self._lock:
            self._calls.append(_Line(self._wall(), call))

    def tallies(self, tenant: str | None = None) -> Sequence[Tally]:
        """See `CallLog.tallies`."""
        now = self._wall()
        ended: defaultdict[tuple[str, int], Counter[bool]] = defaultdict(Counter)
        for line in self._of(tenant):
            days = max(int((now - line.at) / DAY_S), 0)
            ended[line.call.tool, days][line.call.outcome == "ok"] += 1
        return [
            Tally(tool=tool, age_s=days * DAY_S, succeeded=count[True], failed=count[False])
            for (tool, days), count in sorted(ended.items())
        ]

    def tasks(self, tenant: str | None = None) -> Sequence[Task]:
        """See `CallLog.tasks`."""
        now = self._wall()
        found: defaultdict[tuple[str, str], list[_Line]] = defaultdict(list)
        for line in self._of(tenant):
            if line.call.task and line.call.outcome == "ok":
                found[line.call.tenant, line.call.task].append(line)
        return [
            Task(
                tools=tuple(line.call.tool for line in lines),
                age_s=max((now - lines[-1].at) // DAY_S, 0.0) * DAY_S,
            )
            for lines in found.values()
        ]

    def show(self, *lists: Sequence[str]) -> None:
        """See `CallLog.show`."""
        now = self._wall()
        day = int(now // DAY_S)
        with self._lock:
            for every in (sorted(set(ids)) for ids in lists):
                for each in every:
                    self._accesses[each, day] = _once_more(self._accesses.get((each, day)), now)
                for pair in map(frozenset, combinations(every, 2)):
                    self._pairs[pair] = _once_more(self._pairs.get(pair), now)

    def shown(self) -> Mapping[str, Seen]:
        """See `CallLog.shown`."""
        found: defaultdict[str, list[Seen]] = defaultdict(list)
        with self._lock:
            for (each, _), seen in self._accesses.items():
                found[each].append(seen)
        return {
            each: Seen(
                count=sum(seen.count for seen in days),
                days=len(days),
                last_s=max(seen.last_s for seen in days),
            )
            for each, days in found.items()
        }

    def pairs(self) -> Mapping[frozenset[str], Seen]:
        """See `CallLog.pairs`."""
        with self._lock:
            return dict(self._pairs)

    def lines(self) -> Iterator[JsonObject]:
        """See `CallLog.lines`."""
        for line in self._of(None):
            yield {
                "at": line.at,
                "tenant": label(line.call.tenant),
                "task": label(line.call.task),
                "tool": line.call.tool,
                "shape": dict(line.call.shape),
                "seconds": line.call.seconds,
                "outcome": line.call.outcome,
            }

    def forget(self, *, tool: str = "", tenant: str = "") -> int:
        """See `CallLog.forget`."""
        with self._lock:
            gone = [
                line
                for line in self._calls
                if tool in {"", line.call.tool} and tenant in {"", line.call.tenant}
            ]
            for line in gone:
                self._calls.remove(line)
            if not tenant:
                self._accesses = {
                    key: seen for key, seen in self._accesses.items() if tool not in {"", key[0]}
                }
                self._pairs = {
                    pair: seen for pair, seen in self._pairs.items() if tool and tool not in pair
                }
            return len(gone)

    def close(self) -> None:
        """Nothing to let go of."""

    def _of(self, tenant: str | None) -> list[_Line]:
        with self._lock:
            return [line for line in self._calls if tenant in {None, line.call.tenant}]


def _once_more(seen: Seen | None, now: float) -> Seen:
    count, last = (seen.count, seen.last_s) if seen is not None else (0, now)
    return Seen(count=count + 1, days=1, last_s=max(last, now))


class MemoryStore:
    """A `Store` in memory: `Gateway(store=MemoryStore())` leaves nothing behind.

    Args:
        wall: Seconds since the epoch.
    """

    def __init__(self, *, wall: Clock = time.time) -> None:
        self.vectors = MemoryVectorStore()
        self.entries = MemoryEntries()
        self.records = MemoryListingStore(wall=wall)
        self.ledger = MemoryCallLog(wall=wall)

    def close(self) -> None:
        """Nothing to let go of."""
