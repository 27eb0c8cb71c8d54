"""Peers beside ours: real processes, a fake peer, no network; no time is asserted."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner

from benchmarks import peers
from benchmarks.data import read
from benchmarks.metrics import gold_of
from benchmarks.peering import host
from benchmarks.peering.bench import ours
from benchmarks.peering.comparison import compare, to_json
from benchmarks.peering.runs import Failure, Run, Task, sample, task_of
from benchmarks.peering.systems import OURS, Peer
from benchmarks.peering.vectors import Vectors
from gateway.embed import MemoryVectorStore
from gateway.plugins.quality import Gold
from gateway.testing import HashingEmbedder

FIXTURE = Path(__file__).parent / "fixture"
PEER = Peer(name="fake", package="", adapter="tests.benchmarks.fake_peer", how="shared words")

Runs = list[tuple[Peer, Run | Failure]]


def fake(way: str, *, vectors: bool = False) -> Peer:
    return replace(PEER, vectors=vectors, options={"way": way})


def task() -> Task:
    return task_of(read(FIXTURE))


def gold() -> Mapping[str, Gold]:
    return {str(query["id"]): gold_of(query) for query in read(FIXTURE).queries}


def vectors(embedder: HashingEmbedder | None = None) -> Vectors:
    return Vectors(embedder, MemoryVectorStore())


async def run(
    peer: Peer, given: Vectors | None = None, *, python: str = sys.executable, timeout_s: float = 60
) -> Run | Failure:
    return await host.run(
        peer, task(), python=python, vectors=given or vectors(), timeout_s=timeout_s
    )


async def answered(peer: Peer, given: Vectors | None = None) -> Run:
    found = await run(peer, given)
    assert isinstance(found, Run), found
    return found


async def test_a_peer_answers_every_query_from_a_process_of_its_own() -> None:
    """What its libraries print does no harm."""
    found = await answered(PEER)

    assert ["q1", "q2", "q3", "q4", "q5"] == list(found.ranked)
    assert {8} == {len(names) for names in found.ranked.values()}
    assert 5 == len(found.search_us) == len(found.embed_us)
    assert ("talks", "") == (found.note, found.version)
    assert found.build_s >= 0


async def test_a_peer_gets_the_vectors_of_the_embedder() -> None:
    """Through the API that it knows; each text is embedded once."""
    embedder = HashingEmbedder(64)
    given = vectors(embedder)
    first = await answered(fake("vectors", vectors=True), given)
    texts = embedder.texts
    second = await answered(fake("vectors", vectors=True), given)

    assert 8 + 5 + 1 == texts == embedder.texts
    assert first.ranked == second.ranked
    assert first.ranked != (await answered(PEER)).ranked


async def test_ours_is_measured_in_the_same_way() -> None:
    """Through the public API."""
    run = await answered(ours("graph"))

    assert task().queries[0]["id"] in run.ranked
    assert {0.0} == {*run.embed_us}


def run_of(*firsts: str, us: float) -> Run:
    """A run that finds the given tool for each query."""
    names = {tool: name for name, tool in task().ids.items()}
    ranked = {f"q{at}": (names[tool],) for at, tool in enumerate(firsts, 1)}
    return Run(ranked=ranked, search_us=(us, us, 9 * us), embed_us=(3.0,), build_s=0.5, version="1")


def test_a_row_tells_quality_cost_and_how_sure_the_difference_is() -> None:
    """The ratio is theirs over ours, of medians of one run; only shared queries are compared."""
    mine = run_of("t3", "t4", "t5", us=2)
    runs: Runs = [
        (OURS, mine),
        (PEER, run_of("t3", "t3", us=8)),
        (PEER, Failure(reason="no reason")),
    ]
    own, other, failure = map(to_json, compare(task(), gold(), runs))

    assert "ours_minus_this" not in own
    assert {"build_s": 0.5, "search_us": 8, "embed_us": 3.0} == {
        name: figure
        for name, figure in other["cpu"].items()  # type: ignore[attr-defined]  # an object
        if name in {"build_s", "search_us", "embed_us"}
    }
    assert 4.0 == other["cpu"]["ratio_to_ours"]  # type: ignore[index]  # an object
    assert 2 == other["queries"]
    assert {"figure", "mean", "low", "high", "verdict"} == set(other["ours_minus_this"])  # type: ignore[call-overload]  # an object
    assert (True, "no reason") == (failure["failed"], failure["note"])


def test_a_sample_is_the_one_that_a_folder_gives() -> None:
    """So that what a slow peer is asked is among what ours is asked."""
    drawn = [query["id"] for query in read(FIXTURE, limit=2).queries]

    assert drawn == [query["id"] for query in sample(task(), 2).queries]
    assert task() == sample(task(), 0)


def called(cache: Path, *words: object) -> tuple[int, str]:
    result = CliRunner().invoke(
        peers.app, [str(word) for word in words], env={"GATEWAY_CACHE_DIR": str(cache)}
    )
    return result.exit_code, result.stdout


def test_the_command_tells_every_system_as_json(tmp_path: Path) -> None:
    """One that is not installed has a row too."""
    words = ("--data", FIXTURE, "--strategy", "graph", "--embedder", "none", "--only", "dehydrator")
    code, output = called(tmp_path, *words, "--json")
    rows = json.loads(output)["rows"]

    assert 0 == code
    assert ["ours", "dehydrator"] == [row["system"] for row in rows]
    assert 1.0 == rows[0]["hit@1"]
    assert (True, "not installed: call again with --install") == (
        rows[1]["failed"],
        rows[1]["note"],
    )
