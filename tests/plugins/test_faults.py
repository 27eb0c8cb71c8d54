"""Faults of disk, clock and processes during operations of stores, searches and calls.

A matrix combines each fault with each operation. Acknowledged data must survive, failed writes must
be reported, and every search must succeed.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from gateway.plugins.usage import call_log_of
from gateway.runtime.vectors import Vector
from gateway.storage import FileTokens, SqliteStore

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it limits as POSIX does")

ROOT = Path(__file__).parents[2]
ROUNDS = 4
KILLED_AFTER = 60
"""Number of output lines after which a process is killed."""
WRITES = ("vectors", "entries", "listings", "approvals", "calls", "tokens", "audit")
OPERATIONS = (*WRITES, "search", "call")
KILLS_AT_RANDOM = 200
STORE = """
import json, os, random, resource, signal, sys, time, zlib
from pathlib import Path
import numpy as np
from gateway import Gateway, Options, SyncGateway
from gateway.catalog.entries import Entry
from gateway.errors import StoreError
from gateway.options import IndexOptions, UsageOptions
from gateway.plugins.provision.steps import Audit
from gateway.storage.oauth_tokens import FileTokens
from gateway.storage.protocol import SqliteStore
from gateway.testing import HashingEmbedder
from gateway.types.listing import Listing
from gateway.plugins.usage.call_log import CallNote
from gateway.plugins.usage.tables import call_log_of

folder = Path(sys.argv[1])
clock_s = 0.0
store = SqliteStore(
    vectors=folder / "vectors.db",
    catalog=folder / "catalog.db",
    usage=folder / "usage.db",
    wall=lambda: time.time() + clock_s,
)

def row(name):
    return np.full(64, zlib.crc32(name.encode()) % 1000 + 1, np.float32)
"""
MATRIX = f"""
def look() -> str:
    return "seen"

def ask(name, call):
    options = Options(
        index_path=folder / "index",
        index=IndexOptions(min_tools=1),
        usage=UsageOptions(record=True),
    )
    gateway = Gateway(strategy="auto", embedder=HashingEmbedder(64), options=options, store=store)
    for number in range(9):
        about = f"{{name}} looks at {{number}}."
        gateway.add_tool(look, name=f"look_{{number}}", description=about)
    with SyncGateway(gateway) as blocking:
        assert len(blocking.search(f"{{name}} looks at 7").matches) == 5
        if call:
            assert blocking.invoke("local/look_7").text == "seen"
        notes = {{note.code for note in blocking.report().diagnostics}}
    return "told" if "store_unavailable" in notes else "ok"

OPERATIONS = {{
    "vectors": lambda name: store.vectors.put("m", {{name: row(name)}}),
    "entries": lambda name: store.entries.put([Entry(kind="agent", name=name)]),
    "listings": lambda name: store.listings.keep(name, name, Listing()),
    "approvals": lambda name: store.listings.record_seen(name, {{name: name}}),
    "calls": lambda name: call_log_of(store).note(CallNote(tool=name, outcome="ok")),
    "tokens": lambda name: FileTokens(folder / "tokens" / name).write(name),
    "audit": lambda name: Audit(path=folder / "audit.jsonl").record("asked", name=name),
    "search": lambda name: ask(f"search {{name}}", False),
    "call": lambda name: ask(f"call {{name}}", True),
}}

def run(who, rounds={ROUNDS}, operations=tuple(OPERATIONS), out=1):
    for at in range(rounds):
        for operation in operations:
            name = f"{{who}}-{{at}}"
            try:
                outcome = OPERATIONS[operation](name) or "ok"
            except (StoreError, OSError):
                outcome = "told"
            # One write a line: two processes may share the pipe.
            os.write(out, (json.dumps([who, operation, name, outcome]) + "\\n").encode())
"""
KILLS = f"""
dice = random.Random(7)
for number in range({KILLS_AT_RANDOM}):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        run(f"kill-{{number}}", 1000, {WRITES}, writing)
    os.close(writing)
    said = b""
    for _ in range(dice.randrange(900)):
        said += os.read(reading, 1)
    # The moment is random: so many steps after so many bytes.
    for _ in range(dice.randrange(100_000)):
        pass
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    while more := os.read(reading, 65_536):
        said += more
    os.close(reading)
    os.write(1, said[: said.rfind(b"\\n") + 1])
"""
UNWRITABLE = """
for each in (folder, *folder.rglob("*")):
    each.chmod(0o555)
# Nobody may write here; root would not be asked.
if os.geteuid() == 0:
    os.seteuid(65534)
"""


FAULTS = {
    "none": "",
    "full": "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
    "unwritable": UNWRITABLE,
    "clock ahead": "clock_s = 10 * 365 * 86_400.0",
    "clock behind": "clock_s = -10 * 365 * 86_400.0",
    "forked": "child = os.fork()\nif child == 0: run('child'); os._exit(0)",
    "two processes": "print(flush=True); sys.stdin.readline()",
    "killed": f"run('under', {KILLED_AFTER})",
}
FORGOTTEN = {"clock ahead": {"listings"}}
"""Listings expire after a month without use by the shifted clock. They are requested again."""
AFTER = """
run("under")
if "child" in globals():
    assert os.waitpid(child, 0)[1] == 0
"""
Line = tuple[str, str, str, str]
"""Phase, operation, name and outcome."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Folder that other users can enter."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def start_process(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", STORE + script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def lines_under(fault: str, folder: Path) -> list[Line]:
    """Run each operation before and during *fault* and return the output of all processes."""
    count = 2 if fault == "two processes" else 1
    script = f'{MATRIX}run("before", 1)\n{FAULTS[fault]}{AFTER}'
    # With equal names in two processes, a loss would be hidden.
    scripts = [script.replace('"before"', f'"before {number}"') for number in range(count)]
    scripts = [
        script.replace('"under"', f'"under {number}"') for number, script in enumerate(scripts)
    ]
    processes = [start_process(script, str(folder)) for script in scripts]
    lines: list[str] = []
    for process in processes:
        assert process.stdout is not None
        if fault == "two processes":
            lines += iter(process.stdout.readline, "\n")
        if fault == "killed":
            lines += [process.stdout.readline() for _ in range(KILLED_AFTER)]
            process.kill()
            assert -signal.SIGKILL == process.wait()
    for process in processes:
        if process.stdin is not None and fault == "two processes":
            process.stdin.write("go\n")
            process.stdin.flush()
    for process in processes:
        out, errors = process.communicate()
        assert "" == errors
        # A killed process may have written half a line.
        lines += [line for line in out.splitlines() if line.endswith("]")]
    return [
        (who, operation, name, outcome) for who, operation, name, outcome in map(json.loads, lines)
    ]


def row_of(name: str) -> Vector:
    """Return the vector that the processes store for *name*."""
    return np.full(64, zlib.crc32(name.encode()) % 1000 + 1, np.float32)


def stored_data(folder: Path, names: set[str]) -> set[tuple[str, str]]:
    """Return the stored data of *names* as a new process finds it, as pairs of operation and name.

    Stored vectors must be correct.
    """
    store = SqliteStore(
        vectors=folder / "vectors.db", catalog=folder / "catalog.db", usage=folder / "usage.db"
    )
    vectors = store.vectors.get("m", sorted(names))
    assert [] == [name for name, row in vectors.items() if not np.array_equal(row, row_of(name))]
    audit = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    stored = {
        "vectors": vectors.keys(),
        "entries": {key.removeprefix("agent:catalog/") for key in store.entries.rows()},
        "listings": {name for name in names if store.listings.listing(name)},
        "approvals": {name for name in names if store.listings.read({name: name})[name].pins},
        "calls": {str(line["tool"]) for line in call_log_of(store).lines()},
        "tokens": {name for name in names if FileTokens(folder / "tokens" / name).read() == name},
        "audit": {line["name"] for line in audit},
    }
    store.close()
    return {(operation, name) for operation, values in stored.items() for name in values}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_loses_no_acknowledged_data_and_fails_no_search(folder: Path, fault: str) -> None:
    """Only a clock set ahead may lose data (`FORGOTTEN`).

    If nothing can be written, writes must be reported as failed.
    """
    lines = lines_under(fault, folder)
    folder.chmod(0o755)

    acknowledged = {line[1:3] for line in lines if line[3] == "ok" and line[1] in WRITES}
    lost = acknowledged - stored_data(folder, {line[2] for line in lines})
    assert {operation for operation, _ in lost} == FORGOTTEN.get(fault, set()), lost
    under = [line for line in lines if not line[0].startswith("before")]
    outcome = "told" if fault in {"full", "unwritable"} else "ok"
    outcomes = {(name, outcome) for name in OPERATIONS}
    counts = Counter((operation, outcome) for _, operation, _, outcome in under)
    assert outcomes == counts.keys()
    writers = 2 if fault in {"forked", "two processes"} else 1
    if fault == "killed":
        assert len(lines) >= KILLED_AFTER
    else:
        assert {writers * ROUNDS} == set(counts.values())


def test_data_of_a_forked_child_survives_when_its_parent_closes(folder: Path) -> None:
    """SQLite deletes a journal that no process seems to have open."""
    done = start_process(
        """
def put(*names):
    store.vectors.put("m", {name: np.ones(4, np.float32) for name in names})

put("before")
has_written, has_closed = os.pipe(), os.pipe()
child = os.fork()
if not child:
    put("child")
    os.write(has_written[1], b".")
    os.read(has_closed[0], 1)
    put("child later")
    sys.exit(0)
os.read(has_written[0], 1)
put("parent")
store.close()
os.write(has_closed[1], b".")
assert os.waitpid(child, 0)[1] == 0
print(*sorted(store.vectors.get("m", ["before", "child", "parent", "child later"])), sep=";")
""",
        str(folder),
    )
    out, errors = done.communicate()

    assert ("", "before;child;child later;parent\n") == (errors, out)


def test_random_kills_lose_no_acknowledged_data(folder: Path) -> None:
    """Each process opens the files of the previous one."""
    out, errors = start_process(MATRIX + KILLS, str(folder)).communicate()
    lines = [json.loads(line) for line in out.splitlines()]
    # Writes in progress during the kill may be stored too.
    rounds = {who: int(name.rpartition("-")[2]) + 1 for who, _, name, _ in lines}
    names = {f"{who}-{number}" for who, last in rounds.items() for number in range(last + 1)}

    assert "" == errors
    assert {"ok"} == {outcome for *_, outcome in lines}
    assert len(rounds) > KILLS_AT_RANDOM / 2
    assert set() == {(operation, name) for _, operation, name, _ in lines} - stored_data(
        folder, names
    )


def test_data_stored_before_the_disk_was_full_can_be_read(folder: Path) -> None:
    """A failed batch must leave no partial data."""
    done = start_process(
        """
import resource
from gateway.errors import StoreError
store.vectors.put("m", {"a": np.ones(64, np.float32)})
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
many = {str(at): np.ones(512, np.float32) for at in range(500)}
try:
    store.vectors.put("m", many)
except StoreError as error:
    print(error)
print(store.vectors.count(), *store.vectors.get("m", ["a", *many]))
""",
        str(folder),
    )
    out, errors = done.communicate()

    assert "" == errors
    assert out.startswith("vector store 'vectors.db': ")
    assert out.endswith("\n1 a\n")


def test_files_without_a_wal_are_readable_in_a_read_only_folder(folder: Path) -> None:
    """For example in a container image."""
    script = f"""
import os, sqlite3
from gateway.errors import StoreError
store.vectors.put("m", {{"a": np.ones(64, np.float32)}})
store.close()
file = sqlite3.connect(folder / "vectors.db")
file.execute("PRAGMA journal_mode = DELETE")
file.close()
{UNWRITABLE}
try:
    store.vectors.put("m", {{"b": np.ones(64, np.float32)}})
except StoreError as error:
    print(error)
print(*store.vectors.get("m", ["a", "b"]))
"""
    out, errors = start_process(script, str(folder)).communicate()

    assert "" == errors
    assert out.startswith("vector store 'vectors.db': ")
    assert out.endswith("\na\n")
