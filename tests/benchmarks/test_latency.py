"""The latency benchmark and its generated catalog. No time is asserted."""

from __future__ import annotations

import json

import numpy as np
from typer.testing import CliRunner

from benchmarks import latency

SMALL = ["--tools", "30,60", "--dimensions", "16", "--queries", "5"]


def output(*words: str) -> str:
    result = CliRunner().invoke(latency.app, [*SMALL, *words])
    assert 0 == result.exit_code, result.output
    return result.stdout


def test_latency_is_reported_for_every_size_of_the_catalog() -> None:
    """It is also reported as a ratio to the bare vector scan. The recall is the recall of the
    ranking by vectors.
    """
    result = json.loads(output("--json"))

    assert ["30", "60"] == list(result["tools"])
    for sizes in result["tools"].values():
        assert {"embeddings", "auto", "numpy_cpu_us"} == set(sizes)
        assert {"cpu_us", "ratio_to_numpy", "stages_us", "emptied"} == set(sizes["auto"])
        assert 1.0 == sizes["embeddings"]["recall_at_10"]
        assert 1.0 == sizes["embeddings"]["recall_at_10_answered"]
        assert 0.0 == sizes["embeddings"]["emptied"]
        stages = {"spelling", "embed", "vector", "lexical", "graph", "confidence"}
        assert stages == set(sizes["auto"]["stages_us"])
    assert result["cached_us"] > 0
    assert result["spans"] <= latency.SPANS_GOAL


def test_bare_vector_scan_finds_the_nearest_rows() -> None:
    """Recall is measured against these rows."""
    about = latency.workload(40, 16, 3)
    out = np.empty(40, dtype=np.float32)

    result = latency.kernel(about.rows, about.queries[0], out)

    assert set(np.argsort(-out)[:10].tolist()) == set(result.tolist())
