"""What a search costs: the command, the catalog that it invents; no time is asserted."""

from __future__ import annotations

import asyncio
import json

import numpy as np
from typer.testing import CliRunner

from benchmarks import latency
from benchmarks.lifelike import NumberedEmbedder, near, question, servers, vectors

SMALL = ["--tools", "30,60", "--dimensions", "16", "--queries", "5"]


def told(*words: str) -> str:
    result = CliRunner().invoke(latency.app, [*SMALL, *words])
    assert 0 == result.exit_code, result.output
    return result.stdout


def test_every_size_is_told_beside_the_kernel() -> None:
    """The ratio is what counts; recall is that of the ranking by vectors."""
    found = json.loads(told("--json"))

    assert ["30", "60"] == list(found["tools"])
    for sizes in found["tools"].values():
        assert {"embeddings", "auto", "numpy_cpu_us"} == set(sizes)
        assert {"cpu_us", "ratio_to_numpy", "stages_us", "emptied"} == set(sizes["auto"])
        assert 1.0 == sizes["embeddings"]["recall_at_10"]
        assert 1.0 == sizes["embeddings"]["recall_at_10_answered"]
        assert 0.0 == sizes["embeddings"]["emptied"]
        stages = {"normalize", "embed", "vector", "lexical", "graph", "confidence"}
        assert stages == set(sizes["auto"]["stages_us"])
    assert found["cached_us"] > 0
    assert found["spans"] <= latency.SPANS_GOAL


def test_a_person_reads_a_table() -> None:
    """With the goals, where a size has one."""
    assert all(word in told() for word in ("embeddings", "auto", "numpy µs", "from the cache"))


def test_the_kernel_finds_the_nearest_rows() -> None:
    """What recall is measured against."""
    about = latency.asked(40, 16, 3)
    out = np.empty(40, dtype=np.float32)

    found = latency.kernel(about.rows, about.queries[0], out)

    assert set(np.argsort(-out)[:10].tolist()) == set(found.tolist())


def test_no_two_tools_of_a_server_share_a_name() -> None:
    """Else one of them would be left out."""
    for source in servers(410):
        listing = asyncio.run(source.list_tools())
        assert len(listing.tools) == len({tool.name for tool in listing.tools})


def test_a_text_has_the_vector_of_its_number() -> None:
    """The embedder is a table: it costs next to nothing."""
    rows = vectors(60, 8)
    (first, *_) = servers(60)
    texts = [tool.description for tool in asyncio.run(first.list_tools()).tools]

    found = asyncio.run(NumberedEmbedder(rows).embed(texts, role="document"))

    assert np.array_equal(rows[:20], found.vectors)


def test_a_question_is_near_its_tool_and_every_fourth_is_mistyped() -> None:
    """In words and as a vector."""
    rows = vectors(60, 64)
    (first, *_) = servers(60)
    tools = asyncio.run(first.list_tools()).tools
    things = [tool.name.partition("_")[2] for tool in tools]

    assert np.array_equal(np.arange(60), (near(rows) @ rows.T).argmax(axis=1))
    assert [at % 4 > 0 for at in range(20)] == [
        thing in question(at) for at, thing in enumerate(things)
    ]
