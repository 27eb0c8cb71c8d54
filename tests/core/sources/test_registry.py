"""Registry of sources, and entities from their listings."""

from __future__ import annotations

import asyncio

import pytest

from gateway.errors import ConfigError, UpstreamError
from gateway.runtime.telemetry import Telemetry
from gateway.sources import (
    EntityRegistry,
    ListResult,
    NameBindings,
    Registration,
    Registry,
    Source,
    list_sources,
)
from gateway.types import Diagnostic, Hints, Listing, merge_hints
from tests.core.sources.live_source import BrokenStore
from tests.fakes import ListSource, tool

TELEMETRY = Telemetry()


def registry_of(*sources: Source) -> Registry:
    registry = Registry()
    for source in sources:
        registry.add(Registration(source))
    return registry


async def listed(
    registry: Registry, list_entities: dict[str, ListResult] | None = None
) -> dict[str, ListResult]:
    return dict(await list_sources(registry.all(), list_entities or {}, telemetry=TELEMETRY))


def test_registry_refuses_a_name_that_is_taken() -> None:
    with pytest.raises(ConfigError, match="'a' is there already"):
        registry_of(ListSource("a"), ListSource("a"))


async def test_only_changed_or_failed_sources_are_listed_again() -> None:
    same, touched, failing = (ListSource(name, [tool("t")]) for name in "abc")
    failing.fail_with = UpstreamError("c", "down")
    registry = registry_of(same, touched, failing)
    first = await listed(registry)
    registry.mark_dirty("b")
    failing.fail_with = None

    second = await listed(registry, first)

    assert (1, 2, 2) == (same.listings, touched.listings, failing.listings)
    assert [True, False] == [first["c"].failed, second["c"].failed]


async def test_failed_source_keeps_its_last_tools() -> None:
    source = ListSource("a", [tool("t")])
    registry = registry_of(source)
    first = await listed(registry)
    source.fail_with = OSError("secret")
    registry.mark_dirty("a")

    second = await listed(registry, first)

    assert ["t"] == [item.name for item in second["a"].listing.tools]
    assert [("source_load_failed", "'a': OSError")] == [
        (note.code, note.detail) for note in second["a"].listing.diagnostics
    ]


class BarrierSource(ListSource):
    """A source whose listing waits until *party* sources are being listed at the same time."""

    def __init__(self, server: str, party: asyncio.Barrier) -> None:
        super().__init__(server)
        self._party = party

    async def list_tools(self) -> Listing:
        async with asyncio.timeout(10), self._party:
            return Listing(
                diagnostics=(Diagnostic(stage="catalog", code="tool_quarantined", detail="x"),)
            )


async def test_sources_are_listed_in_parallel() -> None:
    party = asyncio.Barrier(5)

    results = await listed(registry_of(*(BarrierSource(str(number), party) for number in range(5))))

    assert not any(result.failed for result in results.values())


async def list_entities(registry: Registry) -> EntityRegistry:
    """List the sources of *registry*; return the registry of their entities."""
    bindings = NameBindings(BrokenStore(), lambda: "names:test")
    entities = EntityRegistry(reserved=frozenset(), bindings=bindings)
    entities.update(await listed(registry))
    return entities


async def test_entities_have_the_hints_of_the_host_and_the_trust_of_the_source() -> None:
    """The host's hints have priority over the source's hints."""
    registry = Registry()
    source = ListSource("a", [tool("t", hints=Hints(read_only=True, tags=("x",)))], trusted=True)
    registry.add(Registration(source, {"t": Hints(read_only=False, tags=("y",))}))

    (entity,) = (await list_entities(registry)).entities.values()

    assert ("a/t", "t", "a", True) == (
        entity.id,
        entity.exposed_name,
        entity.server,
        entity.trusted,
    )
    assert (False, ("y", "x")) == (entity.hints.read_only, entity.hints.tags)


async def test_diagnostic_reports_a_tool_renamed_because_its_name_was_taken() -> None:
    registry = registry_of(ListSource("a", [tool("t")]), ListSource("b", [tool("t"), tool("u")]))

    entities = await list_entities(registry)

    assert ["t", "b_t", "u"] == [entity.exposed_name for entity in entities.entities.values()]
    assert ("name_qualified", "'t' is the name of a/t; b/t became b_t") in [
        (note.code, note.detail) for note in entities.notes
    ]


def test_merging_hints_prefers_the_first_and_keeps_a_tool_disabled() -> None:
    merged = merge_hints(
        Hints(aliases=("a",), destructive=True),
        Hints(aliases=("b", "a"), destructive=False, idempotent=True, enabled=False),
    )

    assert Hints(aliases=("a", "b"), destructive=True, idempotent=True, enabled=False) == merged
