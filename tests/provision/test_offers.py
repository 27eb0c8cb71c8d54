"""What is looked at: the bundled list, a registry once a day, nothing that nobody configured."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.options import UpstreamOptions
from gateway.provision.candidates import available_servers, bundled_servers
from gateway.provision.options import ProvisionOptions
from gateway.provision.registry import RegistryCache
from gateway.testing import ManualClock
from tests.provision.registries import FakeRegistry, item

QUICK = UpstreamOptions(connect_attempts=1)
DAY_S = 24 * 3600.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1e9)


@pytest.fixture
def answers(tmp_path: Path, clock: ManualClock) -> RegistryCache:
    return RegistryCache(tmp_path / "registry.sqlite3", wall=clock)


async def test_without_a_registry_the_bundled_list_is_all(answers: RegistryCache) -> None:
    """Nothing is fetched that nobody configured."""
    found = await available_servers(ProvisionOptions(), QUICK, answers)

    assert (bundled_servers(), (), False) == (found.entries, found.diagnostics, found.is_fetched)


async def test_neither_gives_nothing(answers: RegistryCache) -> None:
    found = await available_servers(ProvisionOptions(known=False), QUICK, answers)

    assert () == found.entries


async def test_a_registry_is_asked_once_a_day(
    registry: FakeRegistry, answers: RegistryCache, clock: ManualClock
) -> None:
    """Its answer serves from the file, in this process and the next."""
    registry.items = [item("a/x")]
    options = ProvisionOptions(registry=registry.url, known=False)

    first = await available_servers(options, QUICK, answers)
    answers.close()
    clock.tick(DAY_S - 1)
    kept = await available_servers(options, QUICK, answers)
    clock.tick(1)
    again = await available_servers(options, QUICK, answers)

    assert [True, False, True] == [each.is_fetched for each in (first, kept, again)]
    assert first.entries == kept.entries == again.entries
    assert registry.url == first.entries[0].source
    assert 2 == len(registry.asked)


async def test_a_registry_that_is_down_serves_its_last_answer(
    registry: FakeRegistry, answers: RegistryCache, clock: ManualClock
) -> None:
    """However old; and says so."""
    registry.items = [item("a/x")]
    options = ProvisionOptions(registry=registry.url, known=False)
    await available_servers(options, QUICK, answers)
    clock.tick(2 * DAY_S)
    registry.faults = [500]

    found = await available_servers(options, QUICK, answers)

    assert ["a/x"] == [each.name for each in found.entries]
    assert ["registry_unavailable", "registry_stale"] == [each.code for each in found.diagnostics]
    assert "48 hours" in found.diagnostics[1].detail


async def test_a_registry_that_never_answered_leaves_the_bundled_list(
    registry: FakeRegistry, answers: RegistryCache
) -> None:
    registry.faults = [500]

    found = await available_servers(ProvisionOptions(registry=registry.url), QUICK, answers)

    assert bundled_servers() == found.entries
    assert ["registry_unavailable"] == [each.code for each in found.diagnostics]


async def test_what_was_cut_is_not_kept(registry: FakeRegistry, answers: RegistryCache) -> None:
    """Half an answer must not serve for a day."""
    registry.items = [item("a/x"), item("a/y"), item("a/z")]
    options = ProvisionOptions(registry=registry.url, known=False, max_pages=1)

    await available_servers(options, QUICK, answers)
    again = await available_servers(options, QUICK, answers)

    assert again.is_fetched


async def test_the_bundled_list_wins_over_a_registry(
    registry: FakeRegistry, answers: RegistryCache
) -> None:
    """An impostor in a registry does not take the place of what was looked at."""
    name = bundled_servers()[0].name
    registry.items = [item(name, "An impostor.")]

    found = await available_servers(ProvisionOptions(registry=registry.url), QUICK, answers)

    assert ["known"] == [each.source for each in found.entries if each.name == name]


async def test_a_store_that_fails_costs_only_the_store(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    """The answer serves; that it could not be kept is told."""
    registry.items = [item("a/x")]
    (tmp_path / "file").write_text("no folder")
    broken = RegistryCache(tmp_path / "file" / "registry.sqlite3")

    found = await available_servers(
        ProvisionOptions(registry=registry.url, known=False), QUICK, broken
    )

    assert ["a/x"] == [each.name for each in found.entries]
    assert ["catalog_unavailable"] * 2 == [each.code for each in found.diagnostics]


def test_an_answer_that_cannot_be_read_is_none(answers: RegistryCache) -> None:
    """A row of another form is like no row."""
    answers.save("here", (1,))
    for text in ("{", "{}"):
        with answers._database.transaction() as connection:  # noqa: SLF001  (to spoil it)
            connection.execute("UPDATE registries SET servers = ?", (text,))

        assert answers.load("here") is None


def test_the_bundled_list_is_of_use() -> None:
    """Names are unique, versions exact, descriptions say something."""
    entries = bundled_servers()

    assert len(entries) == len({each.name for each in entries}) >= 50
    assert all(len(each.description) > 20 and not each.suspicions for each in entries)
    assert all(each.packages or each.remotes for each in entries)
    assert {"active", "deprecated"} == {each.status for each in entries}
