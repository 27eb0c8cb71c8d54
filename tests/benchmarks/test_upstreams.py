"""The benchmark of upstream servers, on a small server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.upstreams import main
from tests.core.mcp.conftest import HERE


def test_figures_of_a_small_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ratios depend on the machine, but a warm start opens no connection anywhere."""
    config = tmp_path / "mcp.json"
    entry = {
        "command": sys.executable,
        "args": [str(HERE / "quick.py"), "plain", str(tmp_path / "r")],
    }
    config.write_text(json.dumps({"mcpServers": {"it": entry}}), "utf-8")

    call = ("--call", "it", "echo", '{"text": "hi"}')
    few = ("--starts", "1", "--calls", "3", "--transports", "memory")

    main(["--config", str(config), "--json", *few, *call])
    figures = json.loads(capsys.readouterr().out)

    assert (1, 4) == (figures["servers"], figures["tools"])
    assert {"2026-07-28": 1} == figures["protocols"]
    assert 0 == figures["warm_start_sessions"]
    assert min(figures["cold_start_ratio"], figures["call_overhead_ratio"]) > 0
    assert {"memory"} == set(figures["search_overhead"])
