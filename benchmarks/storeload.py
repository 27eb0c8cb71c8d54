"""What `benchmarks.storing` writes, and how it knows what it reads back.

All that is written says what it is: a vector its key and version, a list its fingerprint. So a
wrong one shows, whoever wrote it and however the writer ended.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gateway.catalog.entries import Entry
from gateway.catalog.entry_json import parsed
from gateway.runtime.vectors import Vector
from gateway.storage.protocol import SqliteStore
from gateway.types import ToolDefinition
from gateway.types.listing import Listing
from gateway.usage.call_log import Call

MODEL = "m"
BATCHES = 24
"""Of each writer; written again and again."""
TOGETHER = 8
"""Vectors of a batch: all of a version, or none."""
_DIMENSIONS = 512


def store_at(folder: Path) -> SqliteStore:
    """Give the store that all processes share."""
    return SqliteStore(
        vectors=folder / "vectors.sqlite3",
        catalog=folder / "catalog.sqlite3",
        usage=folder / "usage.sqlite3",
    )


def load(folder: Path, writer: int, first: int, seed: int) -> None:
    """Write until somebody kills us; what is done is noted in a file that outlives that.

    Args:
        folder: Where the store is.
        writer: Who writes; each has keys of its own.
        first: The first version to write; they grow.
        seed: Of what comes when.
    """
    chance = random.Random(seed)  # noqa: S311  (nothing secret: it must repeat)
    told = os.open(folder / f"acks-{writer}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    store = store_at(folder)
    os.write(told, b"begun 0 0\n")
    version = first
    while True:
        what, at = chance.choice("vvlec"), chance.randrange(BATCHES)
        _write(store, what, writer, at, version)
        os.write(told, f"{what} {at} {version}\n".encode())
        version += 1


def _write(store: SqliteStore, what: str, writer: int, at: int, version: int) -> None:
    if what == "v":
        store.vectors.put(MODEL, batch(writer, at, version))
    elif what == "l":
        store.records.keep(f"{writer}-{at}", "srv", listing(writer, at, version))
    elif what == "e":
        store.entries.put([entry(writer, at, version), entry(writer, at + BATCHES, version)])
    else:
        store.ledger.note(Call(tool=f"{writer}/{version}", outcome="ok"))


def batch(writer: int, at: int, version: int) -> Mapping[str, Vector]:
    """Make the vectors of a batch."""
    return {key: vector(key, version) for key in keys(writer, at)}


def keys(writer: int, at: int) -> list[str]:
    """Give the keys of a batch."""
    return [f"{writer}-{at}-{number}" for number in range(TOGETHER)]


def vector(key: str, version: int) -> Vector:
    """Make a vector that nobody takes for another: the version, and what follows from both."""
    chance = np.random.default_rng([version, *key.encode()])
    row = chance.standard_normal(_DIMENSIONS, dtype=np.float32)
    row[0] = version
    return row


def listing(writer: int, at: int, version: int) -> Listing:
    """Make a tool list that says what it is."""
    name = f"{writer}-{at}-{version}"
    tools = [ToolDefinition(name=f"{name}-{each}", description=name * 20) for each in range(5)]
    return Listing(tools=tuple(tools), digests={"version": str(version)})


def entry(writer: int, at: int, version: int) -> Entry:
    """Make an entry that says what it is."""
    return Entry(
        kind="agent",
        name=f"{writer}-{at}",
        description=f"{writer}-{at}-{version} " * 20,
        metadata={"version": version},
    )


def faults(folder: Path, writer: int) -> Counter[str]:
    """Read everything of a writer that was killed, and count what is not as it must be."""
    acked = _acked(folder, writer)
    told: Counter[str] = Counter(acknowledged=sum(len(each) for each in acked.values()))
    store = store_at(folder)
    entries = store.entries.rows()
    for at in range(BATCHES):
        _look_at_entries(entries, writer, at, max(acked.get(("e", at), {0})), told)
        _look_at_vectors(store, writer, at, max(acked.get(("v", at), {0})), told)
        _look_at_listing(store, writer, at, max(acked.get(("l", at), {0})), told)
    found = Counter(str(line["tool"]) for line in store.ledger.lines())
    calls = {f"{writer}/{n}" for (what, _), ns in acked.items() if what == "c" for n in ns}
    told["lost_writes"] += len(calls - found.keys())
    told["calls_twice"] += sum(count > 1 for count in found.values())
    store.close()
    return told


def _acked(folder: Path, writer: int) -> Mapping[tuple[str, int], set[int]]:
    found: dict[tuple[str, int], set[int]] = {}
    for line in (folder / f"acks-{writer}").read_text("utf-8").splitlines():
        what, at, version = line.split()
        if what != "begun":
            found.setdefault((what, int(at)), set()).add(int(version))
    return found


def _look_at_vectors(
    store: SqliteStore, writer: int, at: int, acked: int, told: Counter[str]
) -> None:
    wanted = keys(writer, at)
    found = store.vectors.get(MODEL, wanted)
    versions = {int(row[0]) for row in found.values()}
    told["vectors"] += len(found)
    told["torn_batches"] += len(versions) > 1 or len(found) not in {0, TOGETHER}
    told["lost_writes"] += max(versions, default=0) < acked
    told["wrong_vectors"] += sum(
        row.shape != (_DIMENSIONS,) or not np.array_equal(row, vector(key, int(row[0])))
        for key, row in found.items()
    )


def _look_at_listing(
    store: SqliteStore, writer: int, at: int, acked: int, told: Counter[str]
) -> None:
    found = store.records.listing(f"{writer}-{at}")
    if found is None:
        told["lost_writes"] += acked > 0
        return
    version = int(found.listing.digests["version"])
    told["listings"] += 1
    told["lost_writes"] += version < acked
    told["wrong_listings"] += found.listing != listing(writer, at, version)


def _look_at_entries(
    rows: Mapping[str, str], writer: int, at: int, acked: int, told: Counter[str]
) -> None:
    ids = [entry(writer, each, 0).id for each in (at, at + BATCHES)]
    found = [parsed(json.loads(rows[each])) for each in ids if each in rows]
    versions = {int(str(each.metadata["version"])) for each in found}
    version = max(versions, default=0)
    told["entries"] += len(found)
    told["torn_batches"] += len(versions) > 1 or len(found) == 1
    told["lost_writes"] += version < acked
    told["wrong_entries"] += len(found) == 2 and found != [
        entry(writer, each, version) for each in (at, at + BATCHES)
    ]
