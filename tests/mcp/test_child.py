"""Processes: started in a group, ended with everything that they started."""

from __future__ import annotations

import sys
from asyncio.subprocess import Process
from pathlib import Path

import pytest

from gateway.mcp.servers import StdioServer
from gateway.mcp.stdio import start_process, stop_process
from tests.mcp.conftest import lives, until

STUBBORN = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
inner = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(inner.pid, flush=True)
signal.pause()
"""
POLITE = """
import subprocess, sys
inner = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(inner.pid, flush=True)
sys.stdin.read()
"""
SEEN = "import json, os; print(json.dumps(dict(os.environ)))"


async def started(script: str, tmp_path: Path, env: dict[str, str] | None = None) -> Process:
    with (tmp_path / "errors").open("w", encoding="utf-8") as errors:
        return await start_process(StdioServer(sys.executable, ("-c", script), env or {}), errors)


async def line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


@pytest.mark.parametrize("script", [STUBBORN, POLITE])
async def test_nothing_of_a_group_outlives_its_end(tmp_path: Path, script: str) -> None:
    """Wrappers such as npx start the real server as a child of their own."""
    process = await started(script, tmp_path)
    inner = int(await line(process))

    await stop_process(process, grace_s=0.1 if script == STUBBORN else 20)

    assert process.returncode is not None
    assert not lives(process.pid)
    await until(lambda: not lives(inner))


async def test_ending_what_ended_is_harmless(tmp_path: Path) -> None:
    """Children die at any moment."""
    process = await started("", tmp_path)
    await process.wait()

    await stop_process(process)

    assert 0 == process.returncode


async def test_a_child_inherits_few_variables_and_gets_what_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server must not find the keys of the others in its environment."""
    monkeypatch.setenv("OTHER_API_KEY", "s3cret")
    process = await started(SEEN, tmp_path, {"OWN": "1"})

    seen = await line(process)
    await stop_process(process)

    assert "OTHER_API_KEY" not in seen
    assert '"OWN": "1"' in seen
    assert '"PATH"' in seen
