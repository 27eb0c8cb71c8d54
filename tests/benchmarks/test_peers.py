"""Comparison with peers: real processes, a fake peer, no network. No time is asserted."""

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


async def run_peer(peer: Peer, given: Vectors | None = None) -> Run:
    result = await run(peer, given)
    assert isinstance(result, Run), result
    return result


async def test_peer_answers_every_query_from_a_process_of_its_own() -> None:
    """Text that the peer's libraries print does not disturb the exchange."""
    result = await run_peer(PEER)

    assert ["q1", "q2", "q3", "q4", "q5"] == list(result.ranked)
    assert {8} == {len(names) for names in result.ranked.values()}
    assert 5 == len(result.search_us) == len(result.embed_us)
    assert ("talks", "") == (result.note, result.version)
    assert result.build_s >= 0


async def test_peer_uses_the_vectors_of_the_embedder() -> None:
    """The peer uses an OpenAI-compatible API. Each text is embedded once."""
    embedder = HashingEmbedder(64)
    inputs = vectors(embedder)
    first = await run_peer(fake("vectors", vectors=True), inputs)
    texts = embedder.texts
    second = await run_peer(fake("vectors", vectors=True), inputs)

    assert 8 + 5 + 1 == texts == embedder.texts
    assert first.ranked == second.ranked
    assert first.ranked != (await run_peer(PEER)).ranked


async def test_gateway_is_measured_through_the_adapter_of_peers() -> None:
    """The public API is used."""
    run = await run_peer(ours("graph"))

    assert task().queries[0]["id"] in run.ranked
    assert {0.0} == {*run.embed_us}


def run_of(*firsts: str, us: float) -> Run:
    """Return a run that finds the given tool for each query."""
    names = {tool: name for name, tool in task().ids.items()}
    ranked = {f"q{number}": (names[tool],) for number, tool in enumerate(firsts, 1)}
    return Run(ranked=ranked, search_us=(us, us, 9 * us), embed_us=(3.0,), build_s=0.5, version="1")


def test_row_of_a_peer_reports_quality_cost_and_certainty() -> None:
    """The ratio is the peer's median time divided by the gateway's in the same run. Only shared
    queries are compared.
    """
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


def test_queries_of_a_slow_peer_are_a_part_of_the_sampled_queries() -> None:
    """The gateway answers all of the slow peer's queries too."""
    drawn = [query["id"] for query in read(FIXTURE, limit=2).queries]

    assert drawn == [query["id"] for query in sample(task(), 2).queries]
    assert task() == sample(task(), 0)


def called(cache: Path, *words: object) -> tuple[int, str]:
    result = CliRunner().invoke(
        peers.app, [str(word) for word in words], env={"GATEWAY_CACHE_DIR": str(cache)}
    )
    return result.exit_code, result.stdout


def test_comparison_command_prints_every_system_as_json(tmp_path: Path) -> None:
    """Systems that are not installed have a row too."""
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
