from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.embed import Embedded, MemoryVectorStore, Role
from gateway.gateway import Gateway
from gateway.options import UpstreamOptions
from gateway.options.provision import ProvisionOptions
from gateway.plugins.provision import (
    RegistryEntry,
    available_servers,
    bundled_servers,
    rank_servers,
)
from gateway.testing import HashingEmbedder
from tests.conftest import OpenGateway
from tests.plugins.provision.registries import FakeRegistry, item

QUICK = UpstreamOptions(connect_attempts=1)
DAY_S = 24 * 3600.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of stored registry answers."""
    return tmp_path / "registries"


@pytest.fixture
def options(registry: FakeRegistry) -> ProvisionOptions:
    return ProvisionOptions(registry=registry.url, known=False)


def stored(folder: Path) -> Path:
    """Return the file of the only stored answer."""
    (file,) = folder.iterdir()
    return file


def age(folder: Path, seconds: float) -> None:
    """Set the age of the stored answer."""
    file = stored(folder)
    modified = file.stat().st_mtime - seconds
    os.utime(file, (modified, modified))


async def test_without_a_registry_only_the_bundled_list_is_available(folder: Path) -> None:
    entries, diagnostics = await available_servers(ProvisionOptions(), QUICK, folder)

    assert (list(bundled_servers()), []) == (entries, diagnostics)


def test_bundled_list_contains_well_known_servers() -> None:
    """Only the part of the name after the slash is checked, because the publisher's name may
    change.
    """
    known = (
        "filesystem github gitlab maps memory postgres slack sqlite brave puppeteer fetch "
        "everything sequential playwright stripe sentry docker kubernetes git linear"
    )
    names = [entry.name for entry in bundled_servers()]

    assert [] == [word for word in known.split() if not any(word in name for name in names)]


async def test_registry_is_fetched_once_a_day(
    registry: FakeRegistry, options: ProvisionOptions, folder: Path
) -> None:
    registry.items = [item("a/x")]

    first, _ = await available_servers(options, QUICK, folder)
    age(folder, DAY_S - 60)
    second, _ = await available_servers(options, QUICK, folder)
    requests = len(registry.requests)
    age(folder, 61)
    refetched, _ = await available_servers(options, QUICK, folder)

    assert first == second == refetched
    assert registry.url == first[0].source
    assert (1, 2) == (requests, len(registry.requests))


async def test_unreachable_registry_falls_back_to_the_stored_answer(
    registry: FakeRegistry, options: ProvisionOptions, folder: Path
) -> None:
    registry.items = [item("a/x")]
    await available_servers(options, QUICK, folder)
    age(folder, 2 * DAY_S)
    registry.faults = [500]

    entries, diagnostics = await available_servers(options, QUICK, folder)

    assert ["a/x"] == [entry.name for entry in entries]
    assert ["registry_unavailable", "registry_stale"] == [entry.code for entry in diagnostics]
    assert "48 hours" in diagnostics[1].detail


async def test_unreachable_registry_without_a_stored_answer_leaves_the_bundled_list(
    registry: FakeRegistry, folder: Path
) -> None:
    registry.faults = [500]

    entries, diagnostics = await available_servers(
        ProvisionOptions(registry=registry.url), QUICK, folder
    )

    assert list(bundled_servers()) == entries
    assert ["registry_unavailable"] == [entry.code for entry in diagnostics]


async def test_truncated_registry_answer_is_not_stored(
    registry: FakeRegistry, folder: Path
) -> None:
    """Otherwise half an answer would be used for a day."""
    registry.items = [item("a/x"), item("a/y"), item("a/z")]
    options = ProvisionOptions(registry=registry.url, known=False, max_pages=1)

    await available_servers(options, QUICK, folder)
    entries, diagnostics = await available_servers(options, QUICK, folder)

    assert (2, 2) == (len(entries), len(registry.requests))
    assert ["registry_truncated"] == [entry.code for entry in diagnostics]
    assert "more than 1 pages; 2 entries were read" in diagnostics[0].detail


async def test_bundled_entry_takes_precedence_over_a_registry_entry_with_its_name(
    registry: FakeRegistry, folder: Path
) -> None:
    """A registry entry must not replace a checked one."""
    name = bundled_servers()[0].name
    registry.items = [item(name, "An impostor."), {}]
    options = ProvisionOptions(registry=registry.url)

    entries, diagnostics = await available_servers(options, QUICK, folder)

    assert ["registry_entry_skipped"] == [entry.code for entry in diagnostics]
    assert ["known"] == [entry.source for entry in entries if entry.name == name]


async def test_registry_answer_is_used_even_if_it_cannot_be_stored(
    registry: FakeRegistry, options: ProvisionOptions, tmp_path: Path
) -> None:
    registry.items = [item("a/x")]
    (tmp_path / "file").write_text("no folder")

    entries, diagnostics = await available_servers(options, QUICK, tmp_path / "file" / "registries")

    assert ["a/x"] == [entry.name for entry in entries]
    assert ["catalog_unavailable"] == [entry.code for entry in diagnostics]


@pytest.mark.parametrize("text", ["{", "{}"])
async def test_registry_is_fetched_again_if_the_stored_answer_is_unreadable(
    registry: FakeRegistry, options: ProvisionOptions, folder: Path, text: str
) -> None:
    registry.items = [item("a/x")]
    await available_servers(options, QUICK, folder)
    stored(folder).write_text(text, encoding="utf-8")

    entries, _ = await available_servers(options, QUICK, folder)

    assert (["a/x"], 2) == ([entry.name for entry in entries], len(registry.requests))


def test_bundled_list_has_unique_names_exact_versions_and_descriptions() -> None:
    entries = bundled_servers()

    assert len(entries) == len({entry.name for entry in entries}) >= 50
    assert all(len(entry.description) > 20 and not entry.suspicions for entry in entries)
    assert all(entry.packages or entry.remotes for entry in entries)
    assert {"active", "deprecated"} == {entry.status for entry in entries}


CASES = (
    ("what time is it in Kyiv", "modelcontextprotocol/time"),
    ("crawl a whole website", "firecrawl/firecrawl"),
    ("make a pivot table in an Excel workbook", "haris-musa/excel"),
    ("get the transcript of this YouTube video", "kimtaeyoon83/youtube-transcript"),
    ("refund a customer in Stripe", "stripe/stripe"),
)


@pytest.mark.parametrize(("intent", "expected"), CASES)
async def test_well_known_servers_are_found_by_their_purpose(
    open_gateway: OpenGateway, intent: str, expected: str
) -> None:
    ranked = await rank_servers(open_gateway(), bundled_servers(), intent, limit=3, max_ranked=500)

    assert expected == ranked[0].entry.name
    assert ranked[0].confidence > 0.85


class Watched(HashingEmbedder):
    """An embedder that records its texts and loops."""

    def __init__(self) -> None:
        super().__init__()
        self.embedded_texts: list[str] = []
        self.loops: set[int] = set()

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        self.embedded_texts += texts
        self.loops.add(id(asyncio.get_running_loop()))
        return await super().embed(texts, role=role)


async def test_ranking_embeds_on_the_gateways_own_loop(open_gateway: OpenGateway) -> None:
    """An embedder's connections belong to one loop."""
    embedder = Watched()
    gateway = open_gateway(strategy="auto", embedder=embedder)
    entries = [
        RegistryEntry(name="a/parcels", description="Weighs."),
        RegistryEntry(name="a/songs"),
    ]

    ranked = await rank_servers(gateway, entries, "parcels", limit=1, max_ranked=500)

    async def loop() -> int:
        return id(asyncio.get_running_loop())

    assert ["a/parcels"] == [row.entry.name for row in ranked]
    assert {await gateway.bridge.run(loop)} == embedder.loops


async def test_entries_of_a_large_registry_are_preselected_by_words() -> None:
    """Embedding ten thousand entries for one query would take minutes."""
    embedder = Watched()
    entries = [
        RegistryEntry(name=f"a/s{number}", description=f"Number {number}.") for number in range(300)
    ]
    entries.append(RegistryEntry(name="b/parcels", description="Weighs a parcel."))
    async with Gateway(
        strategy="auto", embedder=embedder, vector_store=MemoryVectorStore()
    ) as gateway:
        ranked = await rank_servers(gateway, entries, "weigh a parcel", limit=3, max_ranked=100)

    assert "b/parcels" == ranked[0].entry.name
    assert not any("Number" in text for text in embedder.embedded_texts)


async def test_servers_of_two_publishers_with_the_same_short_name_are_both_found(
    open_gateway: OpenGateway,
) -> None:
    entries = [
        RegistryEntry(name="b/parcels", description="Weighs a parcel."),
        RegistryEntry(name="a/parcels", description="Weighs a parcel."),
    ]

    ranked = await rank_servers(open_gateway(), entries, "weigh a parcel", limit=5, max_ranked=500)

    assert {"a/parcels", "b/parcels"} == {row.entry.name for row in ranked}
