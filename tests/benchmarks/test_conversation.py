"""The conversation benchmark on a small input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.conversation import app
from benchmarks.data import Benchmark, read
from benchmarks.scripted_conversation import MODES, TURNS, Mode, run_conversation
from benchmarks.soak import soak
from tests.benchmarks.written import write_set


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Folder with 40 tools of four servers, and four queries."""
    things = ("invoice", "letter", "song", "river", "house")
    tools = [
        {
            "id": f"{server}::{verb}_{thing}",
            "name": f"{verb}_{thing}",
            "server": server,
            "description": f"{verb.title()} a {thing} of the {server} by its number. " * 3,
            "input_schema": {
                "type": "object",
                "properties": {"number": {"type": "integer"}, "note": {"type": "string"}},
                "required": ["number"],
            },
        }
        for server in ("office", "library", "garden", "harbour")
        for verb in ("find", "burn")
        for thing in things
    ]
    queries = [
        {"id": f"q{place}", "query": f"find a {thing}", "relevant": []}
        for place, thing in enumerate(things[:4])
    ]
    return write_set(tmp_path, catalog=tools, queries=queries)


@pytest.fixture
def benchmark(data: Path) -> Benchmark:
    return read(data)


@pytest.mark.parametrize("mode", MODES)
async def test_conversation_sends_the_same_tools_in_every_turn_except_in_mode_proxy(
    benchmark: Benchmark, mode: Mode
) -> None:
    """Found tools reach the model in every mode."""
    talked = await run_conversation(benchmark, mode)

    assert TURNS == len(talked.requests)
    assert (mode != "proxy") is talked.same_tools
    assert 0.5 < talked.prefix_reuse < 1
    assert 0 < talked.definition_token_share < 0.5
    answers = [str(request.get("content")) for request in talked.requests[-1].messages[2:]]
    assert not any("error" in request for request in answers)


def test_conversation_benchmark_prints_its_figures_as_json(data: Path) -> None:
    result = CliRunner().invoke(app, ["--data", str(data), "--calls", "1", "--json"])

    assert 0 == result.exit_code, result.output
    figures = json.loads(result.stdout)
    assert {*MODES} == {*figures}
    for figure in figures.values():
        assert {"definition_token_share", "prefix_reuse", "overhead_cpu_ms"} <= {*figure}


def test_concurrent_conversations_do_not_mix() -> None:
    """16 threads run 200 tasks on one client. The benchmark has an option for a longer run."""
    soaked = soak(0.1)

    assert soaked.conversations >= 216
    assert (0, 0, 0) == (soaked.errors, soaked.cross_talk, soaked.left)
    assert 12 >= len(soaked.memory_mb)
