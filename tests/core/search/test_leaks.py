"""Hidden entities leave no trace in results: no id, name, server or word."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple, get_args

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.index import Snapshot
from gateway.options import SearchOptions
from gateway.search import Search, suggest_next_steps
from gateway.testing import HashingEmbedder
from gateway.types import (
    Diagnostic,
    Entity,
    Filters,
    Hints,
    Kind,
    Match,
    RankingPolicy,
    SearchResult,
    Status,
    Strategy,
    ToolDefinition,
)
from graphs import Document, Link
from tests.core.search.conftest import POLICIES, RANKINGS, run, snapshot_of
from tests.fakes import plain_embed

KINDS: tuple[Kind, ...] = ("tool", "tool", "tool", "skill", "agent")
STATUSES: tuple[Status, ...] = ("active", "beta", "draft", "deprecated")
SERVERS = ("srvaa", "srvbb", "srvcc")
TAGS = ("daily", "finance")
SCOPES = ("read", "write")
WORDS = ("invoice", "contract", "customer", "payment", "report")
STRATEGIES = get_args(Strategy)
EMBEDDER = HashingEmbedder(64)
OPTIONS = SearchOptions(no_match_confidence=0, window_margin=0)
EVERYBODY = Filters(
    kinds=frozenset(KINDS),
    statuses=frozenset(STATUSES),
    scopes=frozenset(SCOPES),
    include_disabled=True,
)


class World(NamedTuple):
    """A random catalog, and filters that hide a part of it."""

    snapshot: Snapshot
    filters: Filters

    @property
    def visible(self) -> list[Entity]:
        return [entity for entity in self.snapshot.entities if passes(entity, self.filters)]

    @property
    def hidden(self) -> set[str]:
        """Names of hidden entities and servers, which a result must not contain."""
        visible = self.visible
        out = [entity for entity in self.snapshot.entities if entity not in visible]
        # A diagnostic may name a server if the caller can see any of its entities, of any kind.
        any_kind = replace(self.filters, kinds=frozenset(KINDS))
        visible_servers = {
            entity.server for entity in self.snapshot.entities if passes(entity, any_kind)
        }
        servers = {entity.server for entity in out} - visible_servers
        return {entity.id for entity in out} | {entity.exposed_name for entity in out} | servers


def passes(entity: Entity, filters: Filters) -> bool:
    """Return whether *entity* passes *filters*, by the documented rule instead of the product's
    code.
    """
    return (
        entity.kind in filters.kinds
        and entity.status in filters.statuses
        and filters.tags <= {tag.casefold() for tag in entity.hints.tags}
        and (not filters.servers or entity.server in filters.servers)
        and (entity.scopes <= filters.scopes or "*" in filters.scopes)
        and (filters.include_disabled or entity.hints.enabled)
        and not filters.without & {entity.id, entity.server}
    )


@st.composite
def entities(draw: st.DrawFn, number: int) -> Entity:
    """Return a random entity whose name and id do not occur in any other text."""
    kind, server = draw(st.sampled_from(KINDS)), draw(st.sampled_from(SERVERS))
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))
    name = f"thing{number:02d}"
    schema = {"type": "object", "required": draw(st.lists(st.sampled_from(WORDS), max_size=1))}
    definition = ToolDefinition(
        name=name,
        description=f"Handle the {' '.join(words)}.",
        input_schema=schema,
        output_schema={"properties": dict.fromkeys(draw(st.lists(st.sampled_from(WORDS))))},
        hints=Hints(
            tags=tuple(draw(st.frozensets(st.sampled_from(TAGS)))),
            enabled=draw(st.integers(0, 4)) > 0,
        ),
        kind=kind,
    )
    return Entity(
        id=f"{'' if kind == 'tool' else f'{kind}:'}{server}/{name}",
        kind=kind,
        exposed_name=name,
        server=server,
        definition=definition,
        status=draw(st.sampled_from(STATUSES)),
        scopes=draw(st.frozensets(st.sampled_from(SCOPES), max_size=1)),
        digest=repr(definition),
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Return a small random catalog with many edges, and filters."""
    catalog = [draw(entities(number)) for number in range(draw(st.integers(2, 10)))]
    names = [entity.name for entity in catalog]
    links = st.lists(st.sampled_from(names), max_size=3).map(
        lambda chosen: tuple(Link(target=name) for name in chosen)
    )
    documents = [
        Document(
            id=f"host:{place}",
            title=name,
            requires=draw(links),
            related=draw(links),
            next_steps=draw(links),
        )
        for place, name in enumerate(names)
    ]
    snapshot = snapshot_of(catalog, EMBEDDER, documents=documents)
    notes = tuple(
        Diagnostic(stage="catalog", code="source_load_failed", detail=f"{name!r}: it is down")
        for name in SERVERS
    )
    filters = Filters(
        kinds=draw(st.sampled_from([frozenset({"tool"}), frozenset(KINDS)])),
        statuses=draw(st.sampled_from([frozenset({"active"}), frozenset(STATUSES)])),
        tags=draw(st.frozensets(st.sampled_from(TAGS), max_size=1)),
        servers=draw(st.frozensets(st.sampled_from(SERVERS), max_size=2)),
        scopes=draw(st.frozensets(st.sampled_from([*SCOPES, "*"]), max_size=2)),
        include_disabled=draw(st.booleans()),
        without=draw(
            st.frozensets(st.sampled_from([*SERVERS, *(e.id for e in catalog)]), max_size=2)
        ),
    )
    return World(replace(snapshot, diagnostics=notes), filters)


queries = st.lists(
    st.sampled_from(["handle the invoice", "custmer report", "thing03", "#daily payment", "zzz"]),
    max_size=2,
    unique=True,
)


def search_world(
    world: World,
    queries: Sequence[str],
    *,
    strategy: Strategy = "auto",
    broken: bool = False,
    options: SearchOptions = OPTIONS,
    filters: Filters | None = None,
    **more: Any,
) -> SearchResult:
    embed = None if broken else plain_embed(EMBEDDER)
    search = Search(options=options, strategy=strategy, embed=embed, rankings=POLICIES)
    filters = filters or world.filters
    return run(search, world.snapshot, None, queries=queries, filters=filters, **more)


def text_of(result: SearchResult) -> str:
    """Return all data of a result as one text."""
    return repr(replace(result, stages={}))


def ids(matches: Sequence[Match]) -> list[str]:
    return [match.id for match in matches]


slow = settings(
    deadline=None, derandomize=True, max_examples=12, suppress_health_check=[HealthCheck.too_slow]
)
combinations = st.lists(
    st.sampled_from([*product(STRATEGIES, RANKINGS)]), min_size=4, max_size=4, unique=True
)


@slow
@given(worlds())
def test_mask_contains_the_entities_that_pass_by_the_documented_rule(world: World) -> None:
    expected = [passes(entity, world.filters) for entity in world.snapshot.entities]

    assert expected == world.snapshot.mask(world.filters).tolist()


@slow
@given(worlds(), queries, combinations, st.integers(1, 6), st.booleans(), st.booleans())
def test_result_does_not_mention_hidden_entities(
    world: World,
    queries: list[str],
    combinations: list[tuple[Strategy, RankingPolicy]],
    limit: int,
    broken: bool,
    spread: bool,
) -> None:
    """The test uses every strategy and every ranking policy."""
    visible = {entity.id for entity in world.visible}
    unwritten = world.hidden - set(queries)
    options = replace(OPTIONS, no_match_confidence=float(limit == 1))
    for strategy, ranking in combinations:
        result = search_world(
            world,
            queries,
            limit=limit,
            strategy=strategy,
            ranking=ranking,
            diversify=spread,
            broken=broken,
            options=options,
        )

        assert set() == {name for name in unwritten if name in text_of(result)}
        assert result.nearest is None or result.nearest.id in visible
        if not any("#" in query for query in queries):
            assert len(visible) == result.counts.eligible


def expected_count(world: World, ranking: RankingPolicy, limit: int) -> int:
    """Return the number of matches that a result must have if vectors rank."""
    kinds = [entity.kind for entity in world.visible]
    if ranking == "legacy":
        return min(limit, sum(min(3, kinds.count(kind)) for kind in set(kinds)))
    return min(limit, len(kinds))


@slow
@given(
    worlds(), st.sampled_from(["handle the invoice", "thing03"]), combinations, st.integers(1, 10)
)
def test_filtered_result_has_the_order_of_the_unfiltered_one(
    world: World, query: str, combinations: list[tuple[Strategy, RankingPolicy]], limit: int
) -> None:
    """If vectors rank, the result also fills the limit. Words find only entities that contain one
    of them.

    The orders are equal if the score of an entity does not depend on other entities.
    """
    visible = {entity.id for entity in world.visible}
    for strategy, ranking in combinations:
        broken = limit % 3 == 0
        result, unfiltered = (
            search_world(
                world,
                [query],
                limit=maximum,
                filters=filters,
                strategy=strategy,
                ranking=ranking,
                broken=broken,
            )
            for maximum, filters in ((limit, None), (50, EVERYBODY))
        )
        page = [entity for entity in ids(unfiltered.matches) if entity in visible][:limit]

        if result.mode in {"vector", "hybrid"}:
            assert expected_count(world, ranking, limit) == len(result.matches)
        elif ranking != "legacy":
            assert page == ids(result.matches)
        if result.mode == "vector" or ranking == "weighted":
            assert page == ids(result.matches)


@slow
@given(worlds(), st.integers(1, 10), st.sampled_from(["", "handle the invoice"]))
def test_next_steps_do_not_mention_hidden_entities(world: World, limit: int, query: str) -> None:
    """Hidden entities do not reduce the number of next steps, either."""
    tools = [tool for tool in world.visible if tool.kind == "tool"]
    for used in tools[:2]:
        steps = asyncio.run(
            suggest_next_steps(
                Search(options=OPTIONS, strategy="auto", embed=plain_embed(EMBEDDER)),
                world.snapshot, [used.id], query=query, filters=world.filters, limit=limit,
            )
        )  # fmt: skip

        most = min(limit, len(world.visible) - 1)
        assert len(steps) <= most
        assert most == len(steps) or world.snapshot.vectors is None
        assert used.id not in ids(steps)
        assert set() == {name for name in world.hidden if name in repr(steps)}
