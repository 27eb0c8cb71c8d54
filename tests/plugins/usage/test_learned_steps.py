"""Learned transitions in next steps and in search results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gateway.discovery import next_steps_hint
from gateway.gateway import Gateway
from gateway.options import DiscoveryOptions, GraphOptions, Options, SearchOptions, UsageOptions
from gateway.plugins.usage import CallNote
from gateway.search import (
    LEARNED_SCALE,
    LEARNED_WEIGHT,
    POPULARITY_SHARE,
    LearnedSteps,
    Transition,
    score_next_steps,
)
from gateway.search.expand.supplements import Gatherer, confidences, learned_steps_after
from gateway.testing import HashingEmbedder, ManualClock
from gateway.types import ANYONE, Caller, Entity, Filters, Match
from graphs import Document, Edge, parse
from tests.conftest import OpenGateway
from tests.fakes import compile_graph, tool

NO_RULES = GraphOptions(phases=False, groups=False)
NAMES = ("find_room", "book_room", "send_mail", "read_mail")
TOOLS = tuple(tool(name) for name in NAMES)
ENTITIES = [
    Entity(
        id=f"srv/{definition.name}",
        exposed_name=definition.name,
        server="srv",
        definition=definition,
    )
    for definition in sorted(TOOLS, key=lambda item: item.name)
]
WRITTEN = "---\ntitle: plan\n---\n- find_room --next--> book_room\n"
BANNED = "---\nid: find_room\ntitle: find\ngraph_forbid: [{object: send_mail}]\n---\n"


def edge(after: str, *, before: str = "srv/find_room", confidence: float = 0.5) -> Transition:
    return Transition(before=before, after=after, count=3, of=4, confidence=confidence)


def opened(
    open_gateway: OpenGateway,
    folder: Path,
    *,
    tasks: Sequence[tuple[str, Sequence[str]]],
    documents: Sequence[Document] = (),
    learn: str = "on",
    **more: object,
) -> Gateway:
    """Return a gateway with four tools and a history. *tasks* are pairs of a tenant and tools."""
    gateway = open_gateway(
        TOOLS,
        graph=documents,
        options=Options(
            catalog_store_path=folder / "catalog.sqlite3",
            graph=NO_RULES,
            discovery=DiscoveryOptions(next_steps=1),
            usage=UsageOptions(learn=learn),  # type: ignore[arg-type]  # as it came
        ),
        **more,
    )
    for number, (tenant, tools) in enumerate(tasks):
        for name in tools:
            call = CallNote(tool=f"shelf/{name}", outcome="ok", task=str(number), tenant=tenant)
            gateway.usage.call_log.note(call)
    return gateway


QUERY = "find_room, book room, send mail, read mail"
HISTORY = [("", ("find_room", "send_mail"))] * 30


def sources(matches: Sequence[Match]) -> dict[str, str]:
    return {match.name: match.evidence.path[0].source for match in matches if match.evidence.path}


async def test_learned_step_is_suggested_with_its_counts(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Suggestions are in next steps and in the hint after a call, and only if learning is on."""
    gateway = opened(open_gateway, tmp_path, tasks=HISTORY)
    off = opened(open_gateway, tmp_path, tasks=(), learn="off")

    steps = await gateway.next_steps(["find_room"])

    (step,) = steps[0].evidence.path
    assert ("shelf/find_room", "nextStep", "shelf/send_mail") == (
        step.subject,
        step.predicate,
        step.object,
    )
    assert ("send_mail", "learned, 30 of 30", False) == (steps[0].name, step.source, step.declared)
    assert "\n[next steps: send_mail]" == await next_steps_hint(gateway, "", "find_room", ANYONE)
    assert {} == sources(await off.next_steps(["find_room"]))


async def test_search_result_lists_learned_steps_of_its_matches(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Forgotten calls disappear after the refresh interval."""
    clock = ManualClock()
    gateway = opened(
        open_gateway,
        tmp_path,
        tasks=HISTORY,
        strategy="auto",
        embedder=HashingEmbedder(),
        clock=clock,
    )

    first = await gateway.search(QUERY, limit=1)
    gateway.usage.call_log.forget()
    soon = await gateway.search(QUERY, limit=1)
    clock.tick(61)
    later = await gateway.search(QUERY, limit=1)

    assert ["find_room"] == [match.name for match in first.matches]
    assert {"send_mail": "learned, 30 of 30"} == sources(first.next_steps)
    assert first.next_steps == soon.next_steps
    assert () == later.next_steps


async def test_short_history_is_not_learned(open_gateway: OpenGateway, tmp_path: Path) -> None:
    """Five calls are too few to show that the history predicts itself."""
    gateway = opened(open_gateway, tmp_path, tasks=HISTORY[:5])

    assert {} == sources(await gateway.next_steps(["find_room"]))


async def test_learned_step_neither_overrides_a_declared_edge_nor_revives_a_forbidden_one(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    plan, ban = parse(WRITTEN, path="plan.md"), parse(BANNED)
    ways = [("", ("find_room", "send_mail")), ("", ("find_room", "read_mail"))]
    gateway = opened(open_gateway, tmp_path, tasks=ways * 30, documents=[plan, ban])

    steps = await gateway.next_steps(["find_room"])
    listed = await gateway.search(QUERY, limit=1)

    told = {"book_room": "plan.md:4", "read_mail": "learned, 30 of 60"}
    assert told == sources(steps)
    assert ["book_room", "read_mail"] == [step.name for step in steps]
    assert [*told] == [next_step.name for next_step in listed.next_steps]


async def test_steps_learned_from_one_tenant_are_not_suggested_to_another(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Calls without a tenant count for all tenants."""
    ways = {"acme": "book_room", "other": "read_mail", "": "send_mail"}
    history = [(tenant, ("find_room", after)) for tenant, after in ways.items()] * 30
    gateway = opened(open_gateway, tmp_path, tasks=history)

    suggestions = {}
    for tenant in ways:
        caller = Caller(tenant=tenant)
        steps = await gateway.next_steps(["find_room"], caller=caller)
        result = await gateway.search("find a room", limit=1, caller=caller)
        suggestions[tenant] = (
            {*sources(steps)},
            repr((steps, result.next_steps)).count("learned, 30 of"),
        )

    assert {"book_room", "send_mail"} == suggestions["acme"][0]
    assert {"read_mail", "send_mail"} == suggestions["other"][0]
    assert {"send_mail"} == suggestions[""][0]
    assert all(count for _, count in suggestions.values())


def test_learned_steps_skip_missing_and_forbidden_tools() -> None:
    """A history may contain tools that no longer exist. Popular followers share the open
    probability at half weight.
    """
    learned = LearnedSteps(
        edges={"srv/find_room": (edge("srv/gone"), edge("srv/send_mail"), edge("srv/book_room"))},
        open={"srv/find_room": 0.4},
        often={"srv/read_mail": 0.5, "srv/gone": 0.5, "srv/send_mail": 0.1},
    )
    graph = compile_graph(ENTITIES, [parse(BANNED)], options=NO_RULES)
    book, find, read, _ = range(4)

    assert [(book, "srv/book_room")] == [
        (spot, step.after) for spot, step in learned_steps_after(graph, learned, find)
    ]
    assert {book: 0.5, read: POPULARITY_SHARE * 0.4 * 0.5} == pytest.approx(
        confidences(graph, learned, find)
    )
    assert {read: POPULARITY_SHARE * 0.5} == pytest.approx(
        {spot: share for spot, share in confidences(graph, learned, book).items() if spot == read}
    )
    assert {} == confidences(graph, LearnedSteps(), find)


async def test_learned_step_gains_by_confidence_but_stays_below_declared_steps(
    open_gateway: OpenGateway,
) -> None:
    """The gain is logarithmic, up to just below the declared step."""
    plan = Document(
        id="plan",
        title="plan",
        edges=(Edge(subject="find_room", predicate="nextStep", object="book_room"),),
    )
    gateway = open_gateway(TOOLS, graph=[plan], options=Options(graph=NO_RULES))
    snapshot = await gateway.snapshot()
    spot = snapshot.position("shelf/find_room")
    weak = edge("shelf/send_mail", before="shelf/find_room", confidence=0.001)
    mask = snapshot.mask(Filters())
    weighed = score_next_steps(snapshot, [spot], mask=mask, learned=LearnedSteps())

    def scores(confidence: float) -> dict[str, float]:
        sure = edge("shelf/send_mail", before="shelf/find_room", confidence=confidence)
        again = replace(sure, after="shelf/book_room")
        steps = weighed.best(9, LearnedSteps(edges={"shelf/find_room": (again, sure)}))
        return {snapshot.entities[step.position].name: step.score for step in steps}

    plain = scores(0.0)
    gained = scores(weak.confidence)["send_mail"] - plain["send_mail"]

    assert pytest.approx(LEARNED_WEIGHT * 0.0953102, abs=1e-5) == gained
    assert LEARNED_SCALE * weak.confidence == pytest.approx(0.1)
    assert plain["book_room"] == scores(0.9)["book_room"] > scores(0.9)["send_mail"]
    assert ["book_room", "send_mail"] == [*scores(0.9)][:2]


def test_learned_steps_lead_only_to_tools_inside_the_result_window() -> None:
    """Declared steps come first, then learned steps by confidence. Entities listed elsewhere are
    not repeated.
    """
    graph = compile_graph(ENTITIES, [parse(WRITTEN, path="plan.md")], options=NO_RULES)
    book, find, read, send = range(4)
    steps = tuple(edge(f"srv/{name}") for name in ("send_mail", "read_mail", "book_room"))
    learned = LearnedSteps(edges={"srv/find_room": steps})

    def listed(window: set[int], primaries: Sequence[int] = (find,), limit: int = 6) -> list[int]:
        """Return the next steps of the best of *primaries*."""
        gatherer = Gatherer(
            graph,
            primaries,
            seeds=primaries[:1],
            window=window,
            mask=np.ones(4, dtype=np.bool_),
            options=SearchOptions(max_next_steps=limit),
            nearness=lambda positions: np.zeros(len(positions), np.float32),
        )
        return [next_step.position for next_step in gatherer.gather(learned).next_steps]

    assert [book, read, send] == listed({book, find, read, send})
    assert [book, send] == listed({find, send})
    assert [book] == listed({book, find, read, send}, limit=1)
    assert [book, send] == listed({book, find, read, send}, primaries=(find, read))
