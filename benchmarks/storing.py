"""What a store is worth: writers that are killed, and readers beside a writer.

    python -m benchmarks.storing --kills 200 --json

* Two processes write into one store until SIGKILL ends them at a random moment; then everything
  is read back: what was acknowledged is there, what is there is right, batches are whole. Every
  tenth time the folder is new, or holds the files of an older version, so that making and
  bringing up files is cut short too.
* Threads read beside a thread that writes without a pause.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from multiprocessing.context import ForkServerContext
from pathlib import Path

import numpy as np

from benchmarks.storeload import MODEL, faults, load, store_at, vector
from gateway.runtime.vectors import Vector
from gateway.storage.migrations import CATALOG, USAGE, VECTORS
from gateway.storage.sqlite import SqliteVectorStore

_WRITERS = 2
_ANEW_EVERY = 10
_VERSIONS = 100_000
"""Between two rounds: more than a writer gets done."""
_EARLY = 0.25
"""How many are killed within 20 ms of their start, when they may not have opened a file."""
_SOON_S = 0.02
_LONGEST_S = 0.12
_PATIENCE_S = 120.0
_SCHEMAS = {"vectors.sqlite3": VECTORS, "catalog.sqlite3": CATALOG, "usage.sqlite3": USAGE}
_OLD = vector("old", 1)
_TOLD = (
    "kills", "ended_otherwise", "rounds", "from_older_files", "acknowledged", "vectors",
    "wrong_vectors", "torn_batches", "listings", "wrong_listings", "entries", "wrong_entries",
    "lost_writes", "calls_twice", "damaged_files", "set_aside",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.storing", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--readers", type=int, default=8, help="threads that read")
    parser.add_argument("--seconds", type=float, default=3, help="of reading; 0 is none")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    chance = random.Random(asked.seed)  # noqa: S311  (nothing secret: it must repeat)
    with tempfile.TemporaryDirectory() as place:
        figures = {
            **killed(Path(place), asked.kills, chance),
            **beside(Path(place) / "read", asked.readers, asked.seconds),
        }
    if asked.json:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name:24} {value}" for name, value in figures.items()))


def killed(place: Path, kills: int, chance: random.Random) -> Mapping[str, object]:
    """Kill writers, and give what was found behind them."""
    context = multiprocessing.get_context("forkserver")
    told: Counter[str] = Counter()
    began = time.perf_counter()
    folder = place
    while told["kills"] < kills:
        since = told["rounds"] % _ANEW_EVERY
        if not since:
            folder = place / str(told["rounds"])
            _older(folder, told)
        _round(context, folder, 1 + since * _VERSIONS, chance, told)
        print(f"\r{told['kills']} of {kills} kills", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {name: told[name] for name in _TOLD} | {"seconds": time.perf_counter() - began}


def _older(folder: Path, told: Counter[str]) -> None:
    """Make a folder; every second one with files of the first version."""
    folder.mkdir()
    for writer in range(_WRITERS):
        (folder / f"acks-{writer}").touch()
    told["folders"] += 1
    if told["folders"] % 2 == 0:
        return
    told["from_older_files"] += 1
    for name, schema in _SCHEMAS.items():
        with closing(sqlite3.connect(folder / name)) as connection:
            for statement in schema.steps[0]:
                connection.execute(statement)
            connection.execute("PRAGMA user_version = 1")
    with closing(sqlite3.connect(folder / "vectors.sqlite3")) as connection, connection:
        row = (MODEL, "old", _OLD.shape[0], _OLD.tobytes())
        connection.execute("INSERT INTO vectors VALUES (?, ?, ?, ?)", row)


def _round(
    context: ForkServerContext,
    folder: Path,
    version: int,
    chance: random.Random,
    told: Counter[str],
) -> None:
    acks = [folder / f"acks-{writer}" for writer in range(_WRITERS)]
    before = [each.stat().st_size for each in acks]
    writers = [
        context.Process(target=load, args=(folder, writer, version, chance.randrange(1 << 30)))
        for writer in range(_WRITERS)
    ]
    for each in writers:
        each.start()
    if chance.random() < _EARLY:
        time.sleep(chance.random() * _SOON_S)
    else:
        _begun(acks, before)
        time.sleep(chance.random() * _LONGEST_S)
    for each in chance.sample(writers, _WRITERS):
        each.kill()
        each.join()
        told["kills"] += each.exitcode == -signal.SIGKILL
        told["ended_otherwise"] += each.exitcode != -signal.SIGKILL
    told["rounds"] += 1
    for writer in range(_WRITERS):
        told.update(faults(folder, writer))
    _look_at_files(folder, told)


def _begun(acks: Sequence[Path], before: Sequence[int]) -> None:
    """Wait until every writer has opened its files."""
    ends = time.monotonic() + _PATIENCE_S
    while time.monotonic() < ends:
        if all(each.stat().st_size > size for each, size in zip(acks, before, strict=True)):
            return
        time.sleep(0.001)


def _look_at_files(folder: Path, told: Counter[str]) -> None:
    for name in _SCHEMAS:
        with closing(sqlite3.connect(folder / name)) as connection:
            whole = connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            told["damaged_files"] += not whole
    told["set_aside"] += len([*folder.glob("*.corrupt-*")])
    if told["folders"] % 2:
        with closing(store_at(folder)) as store:
            found = store.vectors.get(MODEL, ["old"]).get("old")
            told["wrong_vectors"] += found is None or not np.array_equal(found, _OLD)


def beside(folder: Path, readers: int, seconds: float) -> Mapping[str, object]:
    """Read with many threads, alone and beside a writer; milliseconds a read of 20 vectors."""
    if not seconds:
        return {}
    store = SqliteVectorStore(folder / "vectors.sqlite3")
    rows = {f"{at}": row for at, row in enumerate(np.ones((5000, _OLD.shape[0]), np.float32))}
    store.put(MODEL, rows)
    figures: dict[str, object] = {}
    for name in ("alone", "beside"):
        stop = threading.Event()
        took: list[list[float]] = [[] for _ in range(readers)]
        threads = [
            threading.Thread(target=_read, args=(store, mine, at, stop))
            for at, mine in enumerate(took)
        ]
        if name == "beside":
            threads.append(threading.Thread(target=_write, args=(store, rows, stop)))
        for each in threads:
            each.start()
        time.sleep(seconds)
        stop.set()
        for each in threads:
            each.join()
        every = 1000 * np.concatenate([np.array(each) for each in took])
        figures[f"reads_{name}_per_s"] = round(len(every) / seconds)
        for share in (50, 95):
            figures[f"read_{name}_p{share}_ms"] = round(float(np.percentile(every, share)), 3)
    store.close()
    return figures


def _read(store: SqliteVectorStore, took: list[float], seed: int, stop: threading.Event) -> None:
    chance = random.Random(seed)  # noqa: S311  (as above)
    while not stop.is_set():
        first = chance.randrange(4980)
        wanted = [f"{number}" for number in range(first, first + 20)]
        began = time.perf_counter()
        store.get(MODEL, wanted)
        took.append(time.perf_counter() - began)


def _write(store: SqliteVectorStore, rows: Mapping[str, Vector], stop: threading.Event) -> None:
    many = {key: row for key, row in rows.items() if int(key) < 2000}
    while not stop.is_set():
        store.put("another", many)


if __name__ == "__main__":
    main()
