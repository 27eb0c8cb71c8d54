"""The compiled edges, against the slow and plain way."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from graphs import load, save
from graphs.adjacency import CROWD, Memo, Role
from graphs.expansion import expand
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import CONCEPT_BASE, DOCUMENT_TYPE
from graphs.graph import EDGE_PREDICATES, GraphIndex
from tests.graphs.slow import Slow

ROLES: tuple[Role, ...] = get_args(Role)


def edge(subject: str, predicate: str, target: str, **more: object) -> Fact:
    told = {"literal": False, "declared": True, **more}
    return Fact(subject=subject, predicate=predicate, object=target, **told)  # type: ignore[arg-type]  # keys name fields


def seeded(number: int) -> random.Random:
    return random.Random(number)  # noqa: S311  (the same graphs at every run; no secret)


def anything(draw: random.Random) -> GraphIndex:
    """Make a small graph of all kinds of edges, crowds, circles and odd ends."""
    tools = [f"t{number}" for number in range(draw.choice((3, 12, CROWD + 20)))]
    concepts = [f"{CONCEPT_BASE}{number}" for number in range(5)]
    facts = [edge(tool, "type", DOCUMENT_TYPE) for tool in tools]
    facts += [edge(tool, "name", draw.choice("abc"), literal=True) for tool in tools]
    predicates = sorted(EDGE_PREDICATES)
    for _ in range(draw.choice((2, 6)) * len(tools)):
        predicate = draw.choice(predicates)
        through = EDGE_PREDICATES[predicate] in {"member", "consumes", "produces"}
        likely = concepts if through else tools
        target = draw.choice(likely if draw.random() < 0.95 else [*tools, *concepts, "elsewhere"])
        subject = draw.choice(tools if draw.random() < 0.97 else [*concepts, "stranger"])
        weight = draw.choice((1.0, 1.0, 0.5, 0.25))
        facts.append(edge(subject, predicate, target, weight=weight, declared=draw.random() < 0.6))
    return GraphIndex.compile(facts)


@pytest.mark.parametrize("number", range(40))
def test_the_compiled_edges_say_what_the_statements_say(number: int) -> None:
    """Node, order, score and way; and never more is looked at."""
    draw = seeded(number)
    index = anything(draw)
    pool = [*index.nodes, "nobody"]
    for _ in range(9):
        seeds = draw.choices(pool, k=draw.choice((1, 1, 4)))
        within = draw.choice((None, draw.sample(pool, k=len(pool) // 2)))
        role, hops, limit = (
            draw.choice(ROLES),
            draw.choice((1, 1, 2, 4)),
            draw.choice((0, 1, 3, 99)),
        )
        declared = draw.random() < 0.3
        slow = Slow(index, role=role, within=within, declared_only=declared)

        found = expand(
            index,
            seeds,
            role=role,
            within=within,
            declared_only=declared,
            hops=hops,
            limit=limit,
        )

        expected = slow.neighbours(seeds, hops=hops, limit=limit)
        assert [pytest.approx(each.score) for each in expected] == [
            each.score for each in found.neighbours
        ]
        assert tuple(replace(each, score=0.0) for each in expected) == tuple(
            replace(each, score=0.0) for each in found.neighbours
        )
        assert found.visited <= slow.visited


def test_a_loaded_index_expands_as_the_saved_one(tmp_path: Path) -> None:
    """The edges are saved as numbers."""
    index = anything(seeded(5))
    save(index, tmp_path)
    found = load(tmp_path)

    for role in ROLES:
        for node in index.nodes:
            assert expand(index, [node], role=role, limit=9) == expand(
                found, [node], role=role, limit=9
            )


def test_asking_again_gives_the_same_values() -> None:
    """They were remembered, not made anew."""
    index = anything(seeded(7))
    first, second = (expand(index, index.nodes, role="related", limit=9) for _ in range(2))
    (some, *_), (same, *_) = (
        expand(index, [index.nodes[0]], role="related", limit=9).neighbours for _ in range(2)
    )

    assert (first, True) == (second, some is same)


def test_a_full_memo_begins_anew() -> None:
    """What is remembered is bounded, whoever asks."""
    memo: Memo[int, str] = Memo()
    big = 60_000

    assert ["a", "b", "c"] == [
        memo.keep(1, "a"), memo.keep(2, "b", size=big), memo.keep(3, "c", size=big)
    ]  # fmt: skip
    assert ({3: "c"}, big) == (dict(memo), memo.held)
