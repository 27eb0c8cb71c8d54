"""A saved index: to the last bit the one that was made, or none."""

from __future__ import annotations

import gc
import hashlib
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from gateway.errors import StoreError
from gateway.index import pack, parts
from gateway.index.entities import Entities, written
from gateway.index.pack import Pack
from gateway.index.saved import packed, unpacked
from gateway.index.shelf import Shelf, mark_of_files
from gateway.index.snapshot import Snapshot
from gateway.index.snapshots import compile_snapshot
from gateway.index.vectors.codes import Codes
from gateway.index.vectors.exact import VectorIndex
from gateway.index.vectors.sketch import Sketched
from gateway.options import IndexOptions
from gateway.runtime.vectors import unit_rows
from gateway.types import Diagnostic, Hints
from tests.fakes import definitions, entity
from tests.index.test_changes import (
    CATALOG,
    HOST,
    Changing,
    changed,
    rows_of,
    same,
)

NOTE = Diagnostic(stage="catalog", code="name_qualified", detail="'a' became b, c")


def again(snapshot: Snapshot, folder: Path) -> Snapshot:
    """Save *snapshot* and read it."""
    path = folder / "it.index"
    pack.write(path, packed(snapshot, [NOTE]))
    read = pack.read(path)
    assert read is not None
    return unpacked(read, version=7, diagnostics=())


@pytest.mark.parametrize("number", range(6))
def test_what_was_saved_is_what_was_made(number: int, tmp_path: Path) -> None:
    """Of any catalog, with or without vectors, documents, and changes on the way."""
    draw = random.Random(number)  # noqa: S311  (the same catalogs at every run; no secret)
    index = Changing()
    index.to(draw.sample(CATALOG, k=20))
    tools = [changed(draw, tool) for tool in draw.sample(CATALOG, k=draw.choice((1, 9, 40)))]
    made = index.to(tools, HOST[: number % 3])
    if number % 2:
        made = compile_snapshot(tools, rows={}, documents=HOST)

    found = again(made, tmp_path)

    same(made, found)
    assert (7, (NOTE,)) == (found.version, found.diagnostics)
    assert [made.position(tool.id) for tool in tools] == [found.position(tool.id) for tool in tools]


def test_an_empty_catalog_is_saved_too(tmp_path: Path) -> None:
    """It has neither graph nor vectors."""
    made = compile_snapshot((), rows={})

    found = again(made, tmp_path)

    assert (0, None, None) == (len(found.entities), found.graph, found.vectors)


@pytest.mark.parametrize(("size", "looks"), [(0, Codes), (400, Sketched)])
def test_all_that_vectors_bring_comes_back(size: int, looks: type, tmp_path: Path) -> None:
    """Codes or a sketch, and the servers."""
    tools = [entity(each) for each in definitions(60)]
    tools = [replace(tool, server=f"s{at % 3}") for at, tool in enumerate(tools)]
    made = compile_snapshot(tools, rows=rows_of(tools))
    assert made.vectors is not None
    rows = made.vectors.rows(np.arange(60))
    rows = np.pad(rows, ((0, 0), (0, max(0, size - rows.shape[1]))))
    coded = replace(made, vectors=VectorIndex.of(rows, dense_numbers=1))

    found = again(coded, tmp_path)

    assert found.vectors is not None
    assert found.vectors.large is not None
    assert isinstance(found.vectors.large.codes, looks)
    for name in ("vectors", "common", "server_ids"):
        before: dict[str, np.ndarray] = {}
        after: dict[str, np.ndarray] = {}
        assert parts.taken(getattr(coded, name), name, before) == (
            parts.taken(getattr(found, name), name, after)
        )
        assert before.keys() == after.keys()
        assert all(np.array_equal(before[key], after[key]) for key in before)


def test_entities_are_made_when_somebody_looks() -> None:
    """Once each, and as they were; a slice and the last one too."""
    tools = [replace(CATALOG[0], scopes=frozenset({"b", "a"}), status="deprecated"), *CATALOG[1:5]]
    hints = Hints(tags=("x",), read_only=False, enabled=False)
    note = Diagnostic(stage="catalog", code="tool_suspicious", detail="odd")
    odd = replace(tools[1].definition, hints=hints, doubts=(note,))
    tools[1] = replace(tools[1], definition=odd)

    found = Entities(*written(tools))

    assert found[0] is found[0]
    assert (tools[-1], tuple(tools[1:3]), tools) == (found[-1], found[1:3], list(found))
    assert 5 == len(found)
    with pytest.raises(IndexError):
        found[5]


def test_what_json_cannot_say_is_not_saved() -> None:
    """A schema that would come back as another one."""
    tool = CATALOG[0]
    odd = replace(tool, definition=replace(tool.definition, input_schema={"x": (1, 2)}))

    with pytest.raises(ValueError, match="cannot be written as JSON"):
        written([odd])


@pytest.mark.parametrize("odd", [{"a": 1}, {1}, unit_rows])
def test_what_nobody_knows_how_to_save_is_told(odd: object) -> None:
    """When it is saved, not when it is read."""
    with pytest.raises(TypeError, match="'mates' holds a"):
        parts.taken(odd, "mates", {})


@dataclass(frozen=True)
class Harm:
    """Something that happens to a file."""

    name: str
    to: Callable[[bytes], bytes]


HARMS = [
    Harm("cut", lambda raw: raw[:-100]),
    Harm("head", lambda raw: b"x" + raw[1:]),
    Harm("list", lambda raw: raw[:60] + bytes([raw[60] ^ 1]) + raw[61:]),
    Harm("middle", lambda raw: raw[: len(raw) // 2] + b"\xff\x13" + raw[len(raw) // 2 + 2 :]),
    Harm("end", lambda raw: raw[:-70] + bytes(each ^ 5 for each in raw[-70:])),
    Harm("nothing", lambda _raw: b""),
    Harm("swapped", lambda raw: raw[:8192] + raw[12288:16384] + raw[8192:12288] + raw[16384:]),
]


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: str(harm.name))
def test_a_file_that_is_not_as_it_was_written_is_left_aside(harm: Harm, tmp_path: Path) -> None:
    """Torn, cut, or with a bit the other way round: never a wrong answer."""
    shelf = Shelf(folder=tmp_path, options=IndexOptions())
    made = compile_snapshot(CATALOG, rows=rows_of(CATALOG))
    assert () == shelf.keep("m", made, ())
    (path,) = tmp_path.iterdir()
    path.write_bytes(harm.to(path.read_bytes()))

    found = shelf.find("m", version=1, diagnostics=())

    assert found.snapshot is None
    assert ["store_rebuilt"] == [note.code for note in found.diagnostics]


@pytest.mark.parametrize("odd", ["", "\0", "a\0b", "\ud800", "\x85", "\U0001f600"])
@pytest.mark.parametrize("count", [0, 3, 300])
def test_texts_come_back_as_they_were(odd: str, count: int, tmp_path: Path) -> None:
    """Also those that hold what others are cut at, alone or among many."""
    texts = [*map(str, range(count)), odd]
    words = {"texts": texts, "deep": {"tuple": tuple(texts)}, "mixed": [*texts, 1, texts]}

    pack.write(tmp_path / "m", Pack(words=words, arrays={"texts": np.arange(3)}))
    found = pack.read(tmp_path / "m")

    assert found is not None
    assert {**words, "deep": {"tuple": texts}} == found.words
    assert ["texts"] == list(found.arrays)


@pytest.mark.parametrize("held", ["words", {"cut out of": ["q"]}, ["x"] * 40, [], None])
def test_a_mapping_that_looks_like_the_name_of_a_part_comes_back(
    held: object, tmp_path: Path
) -> None:
    """Its only key is what the file itself says where a list was lifted out."""
    words = {"cut out of": held, "deep": {"cut out of": held}}

    pack.write(tmp_path / "m", Pack(words=words, arrays={}))
    pack.write(tmp_path / "only", Pack(words=words["deep"], arrays={}))

    assert (words, words["deep"]) == tuple(
        found.words for name in ("m", "only") if (found := pack.read(tmp_path / name)) is not None
    )


def test_a_pack_of_another_version_is_left_aside(tmp_path: Path) -> None:
    """It is whole, and says something else."""
    shelf = Shelf(folder=tmp_path, options=IndexOptions())
    pack.write(tmp_path / "m.index", Pack(words={"old": 1}, arrays={}))

    found = shelf.find("m", version=1, diagnostics=())

    assert ["store_rebuilt"] == [note.code for note in found.diagnostics]
    assert "KeyError" in found.diagnostics[0].detail


@pytest.mark.parametrize("on", [True, False])
def test_the_garbage_collector_is_left_as_it_was(on: bool, tmp_path: Path) -> None:
    """It rests while an index is read, which is never garbage; also if none can be read."""
    shelf = Shelf(folder=tmp_path, options=IndexOptions())
    shelf.keep("there", compile_snapshot(CATALOG, rows=rows_of(CATALOG)), ())
    shelf.keep("torn", compile_snapshot(CATALOG, rows=rows_of(CATALOG)), ())
    (tmp_path / "torn.index").write_bytes(b"torn")
    before = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        found = [shelf.find(mark, version=1, diagnostics=()) for mark in ("there", "torn", "none")]
        after = gc.isenabled()
    finally:
        (gc.enable if before else gc.disable)()

    assert on == after
    assert [True, False, False] == [each.snapshot is not None for each in found]


class Meanwhile(tuple[Diagnostic, ...]):
    """Diagnostics that, while an index is read, do what another thread could."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Diagnostic]:
        """Switch the garbage collector off, and change when it runs."""
        gc.disable()
        gc.set_threshold(300, 3, 3)
        return super().__iter__()


def test_what_a_host_does_to_the_garbage_collector_meanwhile_stays(tmp_path: Path) -> None:
    """It is the whole process's: another thread may switch it off while an index is read."""
    shelf = Shelf(folder=tmp_path, options=IndexOptions())
    shelf.keep("there", compile_snapshot(CATALOG, rows=rows_of(CATALOG)), ())
    threshold = gc.get_threshold()
    try:
        shelf.find("there", version=1, diagnostics=())
        rested = gc.get_threshold()
        shelf.find("there", version=1, diagnostics=Meanwhile())
        after = gc.isenabled(), gc.get_threshold()
    finally:
        gc.enable()
        gc.set_threshold(*threshold)

    assert threshold == rested
    assert (False, (300, 3, 3)) == after


def test_objects_are_never_written_nor_read(tmp_path: Path) -> None:
    """Numbers alone: nothing in a file is run, whoever wrote it."""
    with pytest.raises(TypeError):
        pack.write(tmp_path / "m", Pack(words=1, arrays={"odd": np.asarray([None])}))
    pack.write(tmp_path / "m", Pack(words=1, arrays={"odd": np.zeros(1)}))
    raw = (tmp_path / "m").read_bytes().replace(b'"<f8"', b'"|O8"')
    size = int.from_bytes(raw[8:16], "little")
    digest = hashlib.blake2b(raw[32 : 32 + size], digest_size=16).digest()
    (tmp_path / "m").write_bytes(raw[:16] + digest + raw[32:])

    with pytest.raises(StoreError, match="not as it was written"):
        pack.read(tmp_path / "m")


def test_old_indexes_go_and_those_in_use_stay(tmp_path: Path) -> None:
    """A catalog that changes every day does not fill a disk."""
    shelf = Shelf(folder=tmp_path, options=IndexOptions(kept=2))
    made = compile_snapshot(CATALOG[:3], rows={})
    for name in "ab":
        shelf.keep(name, made, ())
    for at, path in enumerate(sorted(tmp_path.iterdir())):
        os.utime(path, (at, at))

    assert shelf.find("a", version=1, diagnostics=()).snapshot is not None
    shelf.keep("c", made, ())

    assert ["a.index", "c.index"] == sorted(path.name for path in tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """The index in memory is as good."""
    (tmp_path / "file").write_text("")
    shelf = Shelf(folder=tmp_path / "file", options=IndexOptions())

    (note,) = shelf.keep("m", compile_snapshot(CATALOG[:2], rows={}), ())

    assert "store_unavailable" == note.code
    assert shelf.find("m", version=1, diagnostics=()).snapshot is None


def test_the_digest_of_documents_is_that_of_their_files(tmp_path: Path) -> None:
    """A changed text is another graph, and so is another name."""
    (tmp_path / "a.md").write_text("one")
    first = mark_of_files(tmp_path)
    (tmp_path / "a.md").write_text("two")
    second = mark_of_files(tmp_path)

    assert mark_of_files(tmp_path / "a.md")
    assert 2 == len({first, second})
    assert "" == mark_of_files(tmp_path / "nothing.md")


@pytest.mark.parametrize(("width", "looks"), [(64, Codes), (384, Sketched)])
def test_whatever_tells_who_looks_near_can_be_saved(
    width: int, looks: type[Codes | Sketched]
) -> None:
    """Codes or a sketch: a class that `parts` does not know would be found by users alone."""
    rows = unit_rows(np.random.default_rng(1).standard_normal((300, width)))
    index = VectorIndex.of(rows, dense_numbers=1)
    assert index.large is not None
    arrays: dict[str, np.ndarray] = {}
    raw = parts.taken(index, "vectors", arrays)

    found = parts.put(raw, arrays)

    assert type(found.large.codes) is looks
    assert raw == parts.taken(found, "vectors", {})
