"""What is left of acknowledged writes when writers are killed.

    python -m benchmarks.storing --kills 200 --json

Two processes write into one store until SIGKILL ends them at a random moment; then everything is
read back: what was acknowledged is there, what is there is right, batches are whole. Every written
value names its key and version, so a wrong one shows. Every tenth round begins with a new folder,
every second of which holds files of the oldest version, so creation and migration are cut short
too.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.tables import print_figures
from gateway.catalog.entries import Entry
from gateway.plugins.usage.call_log import CallNote
from gateway.plugins.usage.tables import USAGE, call_log_of
from gateway.runtime.vectors import Vector
from gateway.storage.catalog import CATALOG
from gateway.storage.protocol import SqliteStore
from gateway.storage.vectors import VECTORS

WRITERS = 2
SLOTS = 24
"""Batches of each writer, written again and again."""
BATCH = 8
"""Vectors of a batch: all of one version, or none."""
ROUNDS_PER_FOLDER = 10
VERSIONS_PER_ROUND = 100_000
"""More than a writer gets done."""
LONGEST_S = 0.12
"""After its first write a writer lives at most this long."""
TIMEOUT_S = 120.0
MODEL = "m"
DIMENSIONS = 512
SCHEMAS = {"vectors.sqlite3": VECTORS, "catalog.sqlite3": CATALOG, "usage.sqlite3": USAGE}
FIGURES = (
    "kills", "ended_otherwise", "rounds", "from_older_files", "acknowledged", "vectors",
    "wrong_vectors", "torn_batches", "entries", "wrong_entries", "lost_writes", "calls_twice",
    "damaged_files", "set_aside",
)  # fmt: skip


def main(
    *,
    kills: Annotated[int, typer.Option(help="How many writers are killed.")] = 200,
    seed: Annotated[int, typer.Option(help="Another seed kills at other moments.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure, and print the figures."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        print_figures(kill_writers(Path(folder), kills, chance), as_json=as_json)


def kill_writers(root: Path, kills: int, chance: random.Random) -> Mapping[str, int]:
    """Kill writers, and count what they left behind."""
    context = multiprocessing.get_context("forkserver")
    counts: Counter[str] = Counter()
    folder = root
    while counts["kills"] < kills:
        number = counts["rounds"] % ROUNDS_PER_FOLDER
        if not number:
            folder = root / str(counts["rounds"])
            _create_folder(folder, counts)
        _run_round(context, folder, 1 + number * VERSIONS_PER_ROUND, chance, counts)
        print(f"\r{counts['kills']} of {kills} kills", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {name: counts[name] for name in FIGURES}


def open_store(folder: Path) -> SqliteStore:
    """Open the store that all processes share."""
    return SqliteStore(
        vectors=folder / "vectors.sqlite3",
        catalog=folder / "catalog.sqlite3",
        usage=folder / "usage.sqlite3",
    )


def _create_folder(folder: Path, counts: Counter[str]) -> None:
    folder.mkdir()
    for writer in range(WRITERS):
        (folder / f"acks-{writer}").touch()
    counts["folders"] += 1
    if counts["folders"] % 2 == 0:
        return
    counts["from_older_files"] += 1
    for name, schema in SCHEMAS.items():
        with closing(sqlite3.connect(folder / name)) as connection:
            for statement in schema.steps[0]:
                connection.execute(statement)
            connection.execute("PRAGMA user_version = 1")


def _run_round(
    context: ForkServerContext,
    folder: Path,
    version: int,
    chance: random.Random,
    counts: Counter[str],
) -> None:
    acks = [folder / f"acks-{writer}" for writer in range(WRITERS)]
    sizes = [path.stat().st_size for path in acks]
    writers = [
        context.Process(target=_write, args=(folder, writer, version, chance.randrange(1 << 30)))
        for writer in range(WRITERS)
    ]
    for process in writers:
        process.start()
    ends = time.monotonic() + TIMEOUT_S
    while any(path.stat().st_size <= size for path, size in zip(acks, sizes, strict=True)):
        if time.monotonic() > ends:
            raise TimeoutError("a writer did not begin")
        time.sleep(0.001)
    time.sleep(chance.random() * LONGEST_S)
    for process in chance.sample(writers, WRITERS):
        process.kill()
        process.join()
        counts["kills"] += process.exitcode == -signal.SIGKILL
        counts["ended_otherwise"] += process.exitcode != -signal.SIGKILL
    counts["rounds"] += 1
    for writer in range(WRITERS):
        _check_writer(folder, writer, counts)
    for name in SCHEMAS:
        with closing(sqlite3.connect(folder / name)) as connection:
            is_whole = connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            counts["damaged_files"] += not is_whole
    counts["set_aside"] += len([*folder.glob("*.corrupt-*")])


def _write(folder: Path, writer: int, version: int, seed: int) -> None:
    """Write until killed; acknowledge each write in a file that outlives the process."""
    chance = random.Random(seed)
    acks = os.open(folder / f"acks-{writer}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(acks, b"begin 0 0\n")
    store = open_store(folder)
    while True:
        kind, slot = chance.choice("vec"), chance.randrange(SLOTS)
        if kind == "v":
            store.vectors.put(MODEL, {key: _vector(key, version) for key in _keys(writer, slot)})
        elif kind == "e":
            store.entries.put([_entry(writer, number, version) for number in (slot, slot + SLOTS)])
        else:
            call_log_of(store).note(CallNote(tool=f"{writer}/{version}", outcome="ok"))
        os.write(acks, f"{kind} {slot} {version}\n".encode())
        version += 1


def _keys(writer: int, slot: int) -> list[str]:
    return [f"{writer}-{slot}-{number}" for number in range(BATCH)]


def _vector(key: str, version: int) -> Vector:
    """Return the vector of one key and version; its first number is the version."""
    generator = np.random.default_rng([version, *key.encode()])
    row = generator.standard_normal(DIMENSIONS, dtype=np.float32)
    row[0] = version
    return row


def _entry(writer: int, slot: int, version: int) -> Entry:
    return Entry(
        kind="agent",
        name=f"{writer}-{slot}",
        description=f"{writer}-{slot}-{version} " * 20,
        metadata={"version": version},
    )


def _check_writer(folder: Path, writer: int, counts: Counter[str]) -> None:
    """Read everything of a killed writer, and count what is not as it must be."""
    acknowledged: dict[tuple[str, int], set[int]] = {}
    for line in (folder / f"acks-{writer}").read_text("utf-8").splitlines():
        kind, number, version = line.split()
        acknowledged.setdefault((kind, int(number)), set()).add(int(version))
    counts["acknowledged"] += sum(len(versions) for versions in acknowledged.values())
    with closing(open_store(folder)) as store:
        entries = store.entries.rows()
        for slot in range(SLOTS):
            _check_vectors(store, writer, slot, max(acknowledged.get(("v", slot), {0})), counts)
            _check_entries(entries, writer, slot, max(acknowledged.get(("e", slot), {0})), counts)
        logged = Counter(str(line["tool"]) for line in call_log_of(store).lines())
    calls = {
        f"{writer}/{version}"
        for (kind, _), versions in acknowledged.items()
        if kind == "c"
        for version in versions
    }
    counts["lost_writes"] += len(calls - logged.keys())
    counts["calls_twice"] += sum(count > 1 for count in logged.values())


def _check_vectors(
    store: SqliteStore, writer: int, slot: int, acknowledged: int, counts: Counter[str]
) -> None:
    rows = store.vectors.get(MODEL, _keys(writer, slot))
    versions = {int(row[0]) for row in rows.values()}
    counts["vectors"] += len(rows)
    counts["torn_batches"] += len(versions) > 1 or len(rows) not in {0, BATCH}
    counts["lost_writes"] += max(versions, default=0) < acknowledged
    counts["wrong_vectors"] += sum(
        not np.array_equal(row, _vector(key, int(row[0]))) for key, row in rows.items()
    )


def _check_entries(
    rows: Mapping[str, str], writer: int, slot: int, acknowledged: int, counts: Counter[str]
) -> None:
    numbers = (slot, slot + SLOTS)
    documents = [json.loads(rows[key]) for n in numbers if (key := _entry(writer, n, 0).id) in rows]
    versions = {int(document["metadata"]["version"]) for document in documents}
    counts["entries"] += len(documents)
    counts["torn_batches"] += len(versions) > 1 or len(documents) == 1
    counts["lost_writes"] += max(versions, default=0) < acknowledged
    counts["wrong_entries"] += sum(
        document["description"] != _entry(writer, n, document["metadata"]["version"]).description
        for n, document in zip(numbers, documents, strict=False)
    )


if __name__ == "__main__":
    typer.run(main)
