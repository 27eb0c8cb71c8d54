"""Runs one system in a process of its own: writes its task, waits, reads what it measured."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from pathlib import Path

from benchmarks.peering.environments import last_line
from benchmarks.peering.runs import LIMIT, Failure, Run, Task
from benchmarks.peering.systems import Peer
from benchmarks.peering.vectors import Vectors

ROOT = Path(__file__).parents[2]
_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "NO_PROXY": "127.0.0.1",
    "no_proxy": "127.0.0.1",
    "PYTHONPATH": str(ROOT),
}
"""One thread, no network, no telemetry sent."""


async def run(
    peer: Peer, task: Task, *, python: str, vectors: Vectors, timeout_s: float
) -> Run | Failure:
    """Run one system.

    Args:
        peer: Which system.
        task: The catalog and the queries.
        python: The interpreter of its environment.
        vectors: Used only by peers that have none.
        timeout_s: Wall seconds after which the process is killed.
    """
    with tempfile.TemporaryDirectory() as folder, vectors.endpoint() as endpoint:
        source, target = Path(folder) / "task.json", Path(folder) / "run.json"
        dimensions = vectors.dimensions if peer.vectors else 0
        document = {
            "catalog": task.tools,
            "queries": task.queries,
            "limit": LIMIT,
            "dimensions": dimensions,
            "endpoint": endpoint if dimensions else "",
            "options": dict(peer.options),
        }
        source.write_text(json.dumps(document), encoding="utf-8")
        try:
            process = await asyncio.create_subprocess_exec(
                python, "-m", peer.adapter, str(source), str(target),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                cwd=folder,
                env={**os.environ, **_ENVIRONMENT},
            )  # fmt: skip
        except OSError as error:
            return Failure(reason=f"{python!r} does not start: {error}")
        try:
            async with asyncio.timeout(timeout_s):
                _, errors = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            return Failure(reason=f"no answer within {timeout_s:.0f} s")
        if process.returncode or not target.exists():
            reason = last_line(errors.decode("utf-8", "replace"))
            return Failure(reason=reason or f"ended with {process.returncode}")
        return _read_run(target)


def _read_run(path: Path) -> Run:
    measured = json.loads(path.read_text(encoding="utf-8"))
    results = measured["results"]
    return Run(
        ranked={result["id"]: tuple(result["ranked"]) for result in results},
        search_us=tuple(result["cpu_us"] for result in results),
        embed_us=tuple(result["embed_us"] for result in results),
        build_s=measured["build_s"],
        version=measured["version"],
        note=measured["note"],
    )
