"""Several processes on one store, and disks that refuse."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gateway.storage.protocol import SqliteStore

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it limits as POSIX does")

ROOT = Path(__file__).parents[2]
WRITES = 60
STORE = """
import sys
from pathlib import Path
import numpy as np
from gateway.catalog.entries import Entry
from gateway.usage.call_log import Call
from gateway.storage.protocol import SqliteStore
from gateway.types.listing import Listing

folder = Path(sys.argv[1])
store = SqliteStore(
    vectors=folder / "vectors.db", catalog=folder / "catalog.db", usage=folder / "usage.db"
)
"""
BUSY = f"""
me, other = sys.argv[2:]
print("ready", flush=True)
sys.stdin.readline()
for at in range({WRITES}):
    name = f"{{me}}-{{at}}"
    store.vectors.put("m", {{name: np.full(64, at, np.float32)}})
    store.entries.put([Entry(kind="agent", name=name)])
    store.listings.keep(name, me, Listing())
    store.listings.record_seen(me, {{name: name}})
    store.call_log.note(Call(tool=name, outcome="ok"))
    found = store.vectors.get("m", [f"{{other}}-{{at}}", name])
    assert name in found and all(row.tolist() == [at] * 64 for row in found.values())
    assert store.listings.listing(name) is not None
    assert f"agent:catalog/{{name}}" in store.entries.rows()
store.close()
"""
SEARCH = """
import os, resource
from gateway import Gateway, Options, SyncGateway
from gateway.options import UsageOptions
from gateway.testing import HashingEmbedder

def look() -> str:
    return "seen"

def ask(name):
    options = Options(
        vector_store_path=folder / name / "vectors.db",
        catalog_store_path=folder / name / "catalog.db",
        index_path=folder / name / "index",
        usage=UsageOptions(record=True),
    )
    gateway = Gateway(strategy="auto", embedder=HashingEmbedder(64), options=options)
    for number in range(9):
        gateway.add_tool(look, name=f"look_{{number}}", description=f"Look at {{number}}.")
    with SyncGateway(gateway) as blocking:
        found = blocking.search("look at 7")
        reply = blocking.invoke("local/look_7")
        notes = blocking.report().diagnostics
    print(len(found.matches), reply.text, *sorted({{note.code for note in notes}}))

ask("first")
{then}
ask("first")
ask(".")
"""
FULL = "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
UNWRITABLE = """
for each in (folder, *folder.rglob("*")):
    each.chmod(0o555)
# Nobody may write here; root would not be asked.
if os.geteuid() == 0:
    os.seteuid(65534)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can reach."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def started(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", STORE + script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def test_two_processes_write_and_read_one_store_at_once(folder: Path) -> None:
    """Both make the files; nobody is told that they are locked, and nothing is lost."""
    both = [started(BUSY, str(folder), *names) for names in (("a", "b"), ("b", "a"))]
    for each in both:
        assert each.stdout is not None
        assert "ready\n" == each.stdout.readline()
    for each in both:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()

    assert [("", "")] * 2 == [each.communicate() for each in both]
    store = SqliteStore(
        vectors=folder / "vectors.db", catalog=folder / "catalog.db", usage=folder / "usage.db"
    )
    names = [f"{who}-{at}" for who in "ab" for at in range(WRITES)]
    assert set(names) == store.vectors.get("m", names).keys()
    assert {f"agent:catalog/{name}" for name in names} == store.entries.rows().keys()
    assert all(store.listings.listing(name) for name in names)
    assert sorted(names) == sorted(str(line["tool"]) for line in store.call_log.lines())
    store.close()


@pytest.mark.parametrize("then", [FULL, UNWRITABLE], ids=["full", "unwritable"])
def test_a_disk_that_refuses_costs_diagnostics_only(folder: Path, then: str) -> None:
    """A search finds, a call is answered; what could not be kept is told."""
    done = started(SEARCH.format(then=then), str(folder))
    out, errors = done.communicate()

    assert ("", ["5 seen", *["5 seen store_unavailable"] * 2]) == (errors, out.splitlines())


def test_what_was_kept_before_the_disk_was_full_can_be_read(folder: Path) -> None:
    """And half of what was not is not there."""
    done = started(
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


def test_files_without_a_wal_can_be_read_where_nobody_may_write(folder: Path) -> None:
    """In the image of a container, say."""
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
    out, errors = started(script, str(folder)).communicate()

    assert "" == errors
    assert out.startswith("vector store 'vectors.db': ")
    assert out.endswith("\na\n")
