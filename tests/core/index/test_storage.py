"""Saved snapshots of the index: when they are saved, loaded and replaced."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from mmap import mmap
from pathlib import Path

import numpy as np
import pytest

from gateway.embed import Embedder, MemoryVectorStore
from gateway.gateway import Gateway
from gateway.index import IndexStore, VectorIndex
from gateway.options import GraphOptions, IndexOptions, Options
from gateway.runtime.vectors import unit_rows
from gateway.sources import Source
from gateway.testing import HashingEmbedder
from gateway.types import Hints, SearchResult
from tests.fakes import ListSource, compile_snapshot, definitions, entity, names, until

TOOLS = definitions(30)
QUERIES = ("approve the urgent invoice", "exprot contracts", "find flight")
OpenIndexed = Callable[..., Gateway]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[OpenIndexed]:
    """Return a function that opens a gateway. All these gateways save snapshots in one folder."""
    gateways: list[Gateway] = []

    def open_gateway(
        source: Source | None = None,
        *,
        documents: Path | None = None,
        derive: GraphOptions | None = None,
        embedder: Embedder | None = None,
    ) -> Gateway:
        gateway = Gateway(
            strategy="auto",
            embedder=embedder or HashingEmbedder(),
            vector_store=MemoryVectorStore(),
            graph=documents,
            options=Options(
                graph=derive or GraphOptions(),
                index_path=tmp_path / "index",
                index=IndexOptions(min_tools=10),
            ),
        )
        gateway.add_source(source or ListSource("srv", TOOLS))
        gateways.append(gateway)
        return gateway

    yield open_gateway
    for gateway in gateways:
        gateway.close()


async def search_and_close(gateway: Gateway) -> list[SearchResult]:
    """Run searches on *gateway*, close it, and return the results."""
    results = await search_all(gateway)
    await gateway.aclose()
    return results


async def search_all(gateway: Gateway) -> list[SearchResult]:
    return [await gateway.search(query) for query in QUERIES]


async def test_second_start_loads_the_saved_snapshot(start: OpenIndexed) -> None:
    """Its results are equal, and only queries are embedded."""
    first = start()
    expected = await search_all(first)
    assert not (await first.report()).saved
    await first.aclose()

    second = start()
    report = await second.report()

    assert (True, 30, 0) == (report.saved, report.entities, report.embedded_texts)
    assert expected == await search_all(second)
    listed = await second.list_tools()
    assert {tool.name for tool in TOOLS} == {entity.name for entity in listed}


async def test_saved_snapshot_contains_the_search_texts_of_tools(
    start: OpenIndexed, tmp_path: Path
) -> None:
    """They come from hints and documents. If one changes, the saved snapshot is not loaded."""
    document = tmp_path / "a.md"
    document.write_text(f"---\nid: {TOOLS[1].name}\nsearch_text: Thermostat.\n---\n", "utf-8")
    hinted = replace(TOOLS[0], hints=Hints(search_text="Kettle."))
    tools = [hinted, *TOOLS[1:]]
    await search_and_close(start(ListSource("srv", tools), documents=document))
    second = start(ListSource("srv", tools), documents=document)

    assert (await second.report()).saved
    for word, expected in (("kettle", TOOLS[0]), ("thermostat", TOOLS[1])):
        assert expected.name == (await second.search(word)).matches[0].name
    await second.aclose()
    document.write_text(f"---\nid: {TOOLS[1].name}\nsearch_text: Oven.\n---\n", "utf-8")
    third = start(ListSource("srv", tools), documents=document)
    assert not (await third.report()).saved
    assert TOOLS[1].name == (await third.search("oven")).matches[0].name


async def test_saved_snapshot_is_loaded_if_graph_documents_are_unchanged(
    start: OpenIndexed, tmp_path: Path
) -> None:
    """Its fingerprint is computed from the files, which are not parsed for this."""
    (tmp_path / "a.md").write_text("---\ntitle: Plan\n---\n")
    await search_and_close(start(documents=tmp_path / "a.md"))

    assert (await start(documents=tmp_path / "a.md").report()).saved


@pytest.mark.parametrize("what", ["tool", "hints", "options", "documents"])
async def test_saved_snapshot_is_not_loaded_if_an_input_changed(
    start: OpenIndexed, tmp_path: Path, what: str
) -> None:
    documents = tmp_path / "a.md"
    documents.write_text("---\ntitle: Plan\n---\n")
    await search_and_close(start(documents=documents))
    tools = list(TOOLS)
    if what == "tool":
        tools[0] = replace(tools[0], description="Another.")
    if what == "hints":
        tools[0] = replace(tools[0], hints=Hints(aliases=("other",)))
    if what == "documents":
        documents.write_text("---\ntitle: Another\n---\n")

    derive = GraphOptions(phases=what != "options")
    second = start(ListSource("srv", tools), documents=documents, derive=derive)

    assert not (await second.report()).saved


async def test_catalog_changed_after_loading_gives_the_same_index_as_a_new_one(
    start: OpenIndexed,
) -> None:
    """The snapshot of the changed catalog is saved when the gateway closes."""
    await search_and_close(start())
    second = start()
    assert (await second.report()).saved

    second.add_source(ListSource("more", definitions(34)[30:]))
    grown = await search_all(second)
    await second.aclose()

    third = start()
    third.add_source(ListSource("more", definitions(34)[30:]))
    assert (await third.report()).saved
    assert grown == await search_all(third)


async def test_small_snapshot_is_not_saved(tmp_path: Path) -> None:
    """Compiling it takes less time than loading it."""
    options = Options(index_path=tmp_path / "index")
    gateway = Gateway(strategy="graph", options=options)
    gateway.add_source(ListSource("srv", TOOLS))
    await gateway.search("invoice")
    await gateway.aclose()

    assert not (tmp_path / "index").exists()


async def test_failure_to_save_a_snapshot_is_reported(start: OpenIndexed, tmp_path: Path) -> None:
    """Searches still work."""
    (tmp_path / "index").write_text("a file where the folder should be")
    gateway = start()
    await search_all(gateway)

    async def is_reported() -> bool:
        return "store_unavailable" in [note.code for note in (await gateway.report()).diagnostics]

    await until(is_reported)

    assert (await gateway.search("pay an invoice")).matches


async def test_snapshot_is_compiled_again_if_its_file_is_damaged(
    start: OpenIndexed, tmp_path: Path
) -> None:
    """The report has a diagnostic, and searches give the same results."""
    expected = await search_and_close(start())
    (path,) = saved_files(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] + b"x" * 99 + content[len(content) // 2 + 99 :])

    second = start()
    report = await second.report()

    assert (False, ["store_rebuilt"]) == (report.saved, [note.code for note in report.diagnostics])
    assert [names(result) for result in expected] == [
        names(result) for result in await search_all(second)
    ]


async def test_saved_snapshot_of_another_catalog_is_rejected(
    start: OpenIndexed, tmp_path: Path
) -> None:
    """The file has the expected name, but contains another fingerprint."""
    await search_and_close(start())
    (path,) = saved_files(tmp_path)
    foreign = path.read_bytes()
    path.unlink()
    await search_and_close(start(ListSource("srv", TOOLS[:20])))
    (path,) = saved_files(tmp_path)
    path.write_bytes(foreign)

    report = await start(ListSource("srv", TOOLS[:20])).report()

    assert (False, 20) == (report.saved, report.entities)
    assert ["store_rebuilt"] == [note.code for note in report.diagnostics]


async def test_pickle_in_place_of_a_saved_snapshot_is_not_executed(
    start: OpenIndexed, tmp_path: Path
) -> None:
    """Anyone who can write into the folder could place such a file."""
    await search_and_close(start())
    (path,) = saved_files(tmp_path)
    path.write_bytes(pickle.dumps(Trap()))

    report = await start().report()

    assert ["store_rebuilt"] == [note.code for note in report.diagnostics]


class Trap:
    """An object that fails the test if it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return pytest.fail, ("a pickle was run",)


def saved_files(folder: Path) -> list[Path]:
    return list((folder / "index").iterdir())


async def test_saved_snapshot_contains_the_complete_graph(start: OpenIndexed) -> None:
    """An export of the graph also reads facts that searches do not use."""
    first = start()
    await first.report()  # wait for the vectors, because an index without them is not saved
    expected = sorted((await first.export_graph("n-triples")).splitlines())
    await first.aclose()

    second = start()

    assert (await second.report()).saved
    assert expected == sorted((await second.export_graph("n-triples")).splitlines())


async def test_saving_a_snapshot_deletes_the_oldest_files(
    start: OpenIndexed, tmp_path: Path
) -> None:
    for count in range(15, 21):
        await search_and_close(start(ListSource("srv", TOOLS[:count])))

    assert IndexOptions().kept == len(saved_files(tmp_path))


def test_saved_snapshot_contains_the_sketch_of_its_vectors(tmp_path: Path) -> None:
    snapshot = compile_snapshot([entity(definition) for definition in TOOLS])
    rows = unit_rows(np.random.default_rng(1).standard_normal((len(TOOLS), 16)))
    vectors = VectorIndex.of(rows, exact_numbers=0, mean=rows.mean(axis=0))
    whole = replace(snapshot, vectors=vectors)
    store = IndexStore(tmp_path, IndexOptions(min_tools=1))

    assert () == store.save({}, ["mark"], whole)
    loaded, notes = store.load({}, ["mark"])

    assert () == notes
    assert loaded is not None
    assert isinstance(loaded.vectors, VectorIndex)
    assert loaded.vectors.sketch is not None
    assert loaded.vectors.mean is not None
    assert rows.mean(axis=0).tolist() == loaded.vectors.mean.tolist()
    assert vectors.sketch is not None
    expected = vectors.sketch.estimate(rows[:2])
    assert expected.tolist() == loaded.vectors.sketch.estimate(rows[:2]).tolist()
    assert list(whole.entities) == list(loaded.entities)
    base: object = loaded.vectors.matrix
    while isinstance(base, np.ndarray):
        base = base.base
    # The rows are memory-mapped and not read yet.
    assert isinstance(base, memoryview)
    assert isinstance(base.obj, mmap)
