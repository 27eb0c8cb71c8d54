"""Starts that find an index: when it is read, when it is made, and that nobody can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.embed.cache import MemoryVectorStore
from gateway.embed.protocol import Embedder
from gateway.gateway import Gateway
from gateway.options import GraphOptions, IndexOptions, Options
from gateway.sources.listing_codec import decode, encode
from gateway.sources.protocol import Source
from gateway.testing import HashingEmbedder
from gateway.types import Hints, SearchResult
from gateway.types.listing import Listing
from tests.fakes import ListSource, definitions

TOOLS = definitions(30)
QUERIES = ("approve the urgent invoice", "exprot contracts", "find flight")
Open = Callable[..., Gateway]


class LateSource(ListSource):
    """A source whose tools are parsed only when one is looked at."""

    def __init__(self, server: str) -> None:
        super().__init__(server, TOOLS)
        self.listing = decode(encode(Listing(tools=tuple(TOOLS))))

    @property
    def parsed(self) -> bool:
        return "_tools" in vars(self.listing.tools)

    async def list_tools(self) -> Listing:
        return self.listing


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Open]:
    """Open gateways that save their indexes in one folder."""
    made: list[Gateway] = []

    def opened(
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
        made.append(gateway)
        return gateway

    yield opened
    for gateway in made:
        gateway.close()


async def answered(gateway: Gateway) -> list[SearchResult]:
    """Ask, and close."""
    found = await asked(gateway)
    await gateway.aclose()
    return found


async def asked(gateway: Gateway) -> list[SearchResult]:
    return [await gateway.search(query) for query in QUERIES]


async def test_the_second_start_reads_what_the_first_made(start: Open) -> None:
    """The same answers, nothing embedded but the queries."""
    first = start()
    made = await asked(first)
    assert not (await first.report()).saved
    await first.aclose()

    second = start()
    report = await second.report()

    assert (True, 30, 0) == (report.saved, report.entities, report.embedded_texts)
    assert made == await asked(second)
    listed = await second.list_tools()
    assert {tool.name for tool in TOOLS} == {entity.name for entity in listed}


async def test_tools_that_nothing_is_asked_of_are_not_read(start: Open) -> None:
    """The digest of a listing is enough."""
    await answered(start(LateSource("srv")))
    source = LateSource("srv")

    second = start(source)
    await asked(second)

    assert (True, False) == ((await second.report()).saved, source.parsed)


async def test_the_same_documents_are_the_same_index(start: Open, tmp_path: Path) -> None:
    """Told by their files, which nobody takes apart for it."""
    (tmp_path / "a.md").write_text("---\ntitle: Plan\n---\n")
    await answered(start(documents=tmp_path / "a.md"))

    assert (await start(documents=tmp_path / "a.md").report()).saved


@pytest.mark.parametrize("what", ["tool", "hints", "options", "documents"])
async def test_another_catalog_is_another_index(start: Open, tmp_path: Path, what: str) -> None:
    """A tool that says something else, other hints, other options, other documents."""
    documents = tmp_path / "a.md"
    documents.write_text("---\ntitle: Plan\n---\n")
    await answered(start(documents=documents))
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


async def test_a_change_after_a_start_is_that_of_a_fresh_index(start: Open) -> None:
    """What was read grows as what was made, and is saved at the end."""
    await answered(start())
    second = start()
    assert (await second.report()).saved

    second.add_source(ListSource("more", definitions(34)[30:]))
    grown = await asked(second)
    await second.aclose()

    third = start()
    third.add_source(ListSource("more", definitions(34)[30:]))
    assert (await third.report()).saved
    assert grown == await asked(third)


async def test_a_small_index_is_not_saved(tmp_path: Path) -> None:
    """It is made sooner."""
    options = Options(index_path=tmp_path / "index")
    gateway = Gateway(options=options)
    gateway.add_source(ListSource("srv", TOOLS))
    await gateway.search("invoice")
    await gateway.aclose()

    assert not (tmp_path / "index").exists()


async def test_a_disk_that_is_full_is_in_the_report(start: Open, tmp_path: Path) -> None:
    """Searches go on."""
    (tmp_path / "index").write_text("a file where the folder should be")
    gateway = start()
    await asked(gateway)
    await gateway.aclose()

    built = gateway._index._built  # noqa: SLF001  (after the end, nobody can ask)
    assert built is not None
    assert "store_unavailable" in [note.code for note in built.report.diagnostics]
    assert "store_unavailable" in [note.code for note in built.snapshot.repeated]
