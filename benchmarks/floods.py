"""What a server that floods costs the others: calls of an honest neighbour, and memory.

    python -m benchmarks.floods --json

* Each flood has a gateway of its own with an honest server. On the same loop a server of
  `flood_server` is listed or called again and again.
* The ratio is the median of the neighbour's calls under the flood over that without it, in turns
  of the same length, in one run.
* Memory is the peak of the process during the flood over what it held before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.flood_server import FLOODS, HTTP, LISTS
from gateway import Gateway, Options
from gateway.errors import Failed, attempt
from gateway.mcp.servers import HttpServer, StdioServer
from gateway.options import IndexOptions, UpstreamOptions
from gateway.sources.mcp import McpSource

_SERVER = str(Path(__file__).with_name("flood_server.py"))
_STATUS = Path("/proc/self/status")
_PEAK = Path("/proc/self/clear_refs")
"""Begins the peak of memory anew; see proc(5)."""
_PAUSE_S = 0.05


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.floods", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--only", nargs="+", default=FLOODS, choices=FLOODS, metavar="FLOOD")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each flood lasts")
    parser.add_argument("--rounds", type=int, default=2, help="how many times it begins anew")
    options = parser.parse_args(arguments)
    report = measure(options.only, seconds=options.seconds, rounds=options.rounds)
    summary = report if options.json else {key: report[key] for key in report if key != "rows"}
    sys.stdout.write(json.dumps(summary, indent=2) + "\n")


def measure(names: Sequence[str] = FLOODS, *, seconds: float, rounds: int) -> dict[str, Any]:
    """Return the figures of the floods *names*: the worst of each, and `rows`.

    Args:
        names: Of `FLOODS`.
        seconds: How long each turn lasts.
        rounds: How many turns each flood has.
    """
    rows = []
    for flood in names:
        rows.append(asyncio.run(_measure(flood, seconds, rounds)))
        sys.stderr.write("  ".join(f"{key} {value}" for key, value in rows[-1].items()) + "\n")
    return {
        "floods": len(rows),
        "worst_neighbour_ratio": max(row["neighbour_ratio"] for row in rows),
        "rss_growth_mb": max(row["rss_growth_mb"] for row in rows),
        "rows": rows,
    }


async def _measure(flood: str, seconds: float, rounds: int) -> dict[str, Any]:
    alone, under, said = list[float](), list[float](), set[str]()
    growth = 0.0
    with TemporaryDirectory() as folder:
        options = Options(
            vector_store_path=Path(folder, "vectors"),
            catalog_store_path=Path(folder, "catalog"),
            index=IndexOptions(saved=False),
        )
        async with Gateway(options=options) as gateway, _target(flood) as target:
            gateway.add_server("honest", command=sys.executable, args=(_SERVER, "none"))
            await _calls(gateway, seconds)
            for _ in range(rounds):
                alone += await _calls(gateway, seconds)
                before = _memory("VmRSS")
                _PEAK.write_text("5", encoding="ascii")  # noqa: ASYNC240  (no disk)
                source = McpSource(
                    "flood", target, bridge=gateway.bridge, options=UpstreamOptions()
                )
                flooding = asyncio.create_task(_provoke(source, flood, said))
                under += await _calls(gateway, seconds)
                growth = max(growth, _memory("VmHWM") - before)
                flooding.cancel()
                await asyncio.wait({flooding})
                await source.close()
    return {
        "flood": flood,
        "neighbour_ratio": round(median(under) / median(alone), 2),
        "alone_ms": round(1000 * median(alone), 2),
        "worst_ms": round(1000 * max(under)),
        "rss_growth_mb": round(growth, 1),
        "said": sorted(said),
    }


@asynccontextmanager
async def _target(flood: str) -> AsyncIterator[StdioServer | HttpServer]:
    if flood not in HTTP:
        yield StdioServer(sys.executable, (_SERVER, flood))
        return
    command = (sys.executable, _SERVER, flood, "--http")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220, S603
        assert process.stdout is not None  # noqa: S101
        try:
            yield HttpServer(f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp")
        finally:
            process.kill()


async def _provoke(source: McpSource, flood: str, said: set[str]) -> None:
    """List or call the server that floods, again and again; note in *said* what that came to."""
    is_list = flood.removeprefix("http_") in LISTS
    while True:
        work = source.list_tools() if is_list else source.call("good", {}, tool_id="flood/good")
        answer = await attempt(work)
        said.add(re.sub(r"[0-9.]+ s", "… s", answer.reason) if isinstance(answer, Failed) else "ok")
        await asyncio.sleep(_PAUSE_S)


async def _calls(gateway: Gateway, seconds: float) -> list[float]:
    """Call the honest server for *seconds*; return how long each call took."""
    took = list[float]()
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        await gateway.invoke("honest/good", {})
        took.append(time.perf_counter() - began)
    return took


def _memory(key: str) -> float:
    """Return a figure of this process's memory, in MB."""
    lines = dict(line.split(":", 1) for line in _STATUS.read_text("ascii").splitlines())
    return int(lines[key].split()[0]) / 1024


if __name__ == "__main__":
    main()
