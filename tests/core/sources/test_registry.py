"""Sources -> entities."""

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


def registered(*sources: Source) -> Registry:
    registry = Registry()
    for source in sources:
        registry.add(Registration(source))
    return registry


async def listed(
    registry: Registry, known: dict[str, ListResult] | None = None
) -> dict[str, ListResult]:
    return dict(await list_sources(registry.all(), known or {}, telemetry=TELEMETRY))


def test_a_name_is_given_once() -> None:
    """Two servers of one name could not be told apart."""
    with pytest.raises(ConfigError, match="'a' is there already"):
        registered(ListSource("a"), ListSource("a"))


async def test_only_what_changed_or_failed_is_listed_again() -> None:
    """A rebuild must not ask every server anew."""
    same, touched, failing = (ListSource(name, [tool("t")]) for name in "abc")
    failing.fail_with = UpstreamError("c", "down")
    registry = registered(same, touched, failing)
    first = await listed(registry)
    registry.mark_dirty("b")
    failing.fail_with = None

    second = await listed(registry, first)

    assert (1, 2, 2) == (same.listings, touched.listings, failing.listings)
    assert [True, False] == [first["c"].failed, second["c"].failed]


async def test_a_failed_source_keeps_its_last_good_tools() -> None:
    """A server that restarts must not empty the catalog."""
    source = ListSource("a", [tool("t")])
    registry = registered(source)
    first = await listed(registry)
    source.fail_with = OSError("secret")
    registry.mark_dirty("a")

    second = await listed(registry, first)

    assert ["t"] == [each.name for each in second["a"].listing.tools]
    assert [("source_load_failed", "'a': OSError")] == [
        (note.code, note.detail) for note in second["a"].listing.diagnostics
    ]


class Meeting(ListSource):
    """A source that answers only when all of *party* are asked at the same time."""

    def __init__(self, server: str, party: asyncio.Barrier) -> None:
        super().__init__(server)
        self._party = party

    async def list_tools(self) -> Listing:
        async with asyncio.timeout(10), self._party:
            return Listing(
                diagnostics=(Diagnostic(stage="catalog", code="tool_quarantined", detail="x"),)
            )


async def test_sources_are_listed_in_parallel() -> None:
    """Ten slow servers cost the time of one."""
    party = asyncio.Barrier(5)

    found = await listed(registered(*(Meeting(str(number), party) for number in range(5))))

    assert not any(each.failed for each in found.values())


async def known(registry: Registry) -> EntityRegistry:
    """What the sources list, named."""
    bindings = NameBindings(BrokenStore(), lambda: "names:test")
    entities = EntityRegistry(reserved=frozenset(), bindings=bindings)
    entities.update(await listed(registry))
    return entities


async def test_entities_carry_the_hosts_hints_and_trust() -> None:
    """What the host says wins over what the source says."""
    registry = Registry()
    source = ListSource("a", [tool("t", hints=Hints(read_only=True, tags=("x",)))], trusted=True)
    registry.add(Registration(source, {"t": Hints(read_only=False, tags=("y",))}))

    (entity,) = (await known(registry)).entities.values()

    assert ("a/t", "t", "a", True) == (
        entity.id,
        entity.exposed_name,
        entity.server,
        entity.trusted,
    )
    assert (False, ("y", "x")) == (entity.hints.read_only, entity.hints.tags)


async def test_names_that_two_sources_offer_are_told() -> None:
    """A host that calls by name must know."""
    registry = registered(ListSource("a", [tool("t")]), ListSource("b", [tool("t"), tool("u")]))

    found = await known(registry)

    assert ["t", "b_t", "u"] == [each.exposed_name for each in found.entities.values()]
    assert ("name_qualified", "'t' is the name of a/t; b/t became b_t") in [
        (note.code, note.detail) for note in found.notes
    ]


def test_hints_are_united_and_the_first_wins() -> None:
    """A tool that one side disables is disabled."""
    merged = merge_hints(
        Hints(aliases=("a",), destructive=True),
        Hints(aliases=("b", "a"), destructive=False, idempotent=True, enabled=False),
    )

    assert Hints(aliases=("a", "b"), destructive=True, idempotent=True, enabled=False) == merged
