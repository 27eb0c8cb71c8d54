"""What hostile and dying servers cost: searches that fail, time, memory, what is left behind.

    python -m benchmarks.faulting --seconds 60 --cancellations 1000 --json

* One gateway over servers that page for ever, send 50 MB, stay silent, print rubbish, die under
  calls, and offer malformed tools; beside them one that is well.
* One server is killed (SIGKILL) every two seconds, while others search and call.
* Calls are cancelled at random moments.

The servers are those of the tests. Linux only: it reads ``/proc``.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.tables import print_figures
from gateway import Gateway, GatewayError, Options
from gateway.mcp.servers import StdioServer
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.sources.mcp import McpSource

HOSTILE = Path(__file__).parents[1] / "tests" / "mcp" / "servers" / "hostile.py"
MODES = (
    "endless", "repeated", "huge", "silent", "silent_list", "garbage", "exits_at_start",
    "exits_mid_call", "malformed", "dressed", "deep", "no_list", "no_session",
)  # fmt: skip
_KILL_EVERY_S = 2.0
_GOOD = {"srv/good", "good/good"}


def main(
    *,
    seconds: Annotated[float, typer.Option(help="Of killing.")] = 60,
    cancellations: Annotated[int, typer.Option(help="Calls that are cancelled.")] = 1000,
    patience: Annotated[float, typer.Option(help="Seconds for a listing.")] = 10,
    seed: Annotated[int, typer.Option(help="Another seed cancels at other moments.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure, and print the figures."""
    with tempfile.TemporaryDirectory() as place:
        chance = random.Random(seed)  # noqa: S311  (nothing secret: it must repeat)
        work = measured(Path(place), seconds, cancellations, chance, patience)
        print_figures(asyncio.run(work), as_json=as_json)


async def measured(
    place: Path, seconds: float, cancellations: int, chance: random.Random, patience: float
) -> Mapping[str, object]:
    """Give the figures of all three."""
    before = children()
    return {
        **await _hostile(place, patience),
        **await _killed(place, seconds),
        **await _cancelled(place, cancellations, chance),
        "children_left": len(children() - before),
    }


def children() -> set[int]:
    """Give the processes that this one started and that are not gone; zombies count."""
    tasks = Path("/proc/self/task")
    return {int(each) for task in tasks.iterdir() for each in _read(task / "children").split()}


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text("utf-8")
    return ""


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _gateway(place: Path, name: str, **options: float) -> Gateway:
    upstream = UpstreamOptions(**options)  # type: ignore[arg-type]  # floats for counts
    return Gateway(options=Options(catalog_store_path=place / name, upstream=upstream))


def _add(gateway: Gateway, name: str, mode: str, record: Path) -> None:
    gateway.add_server(name, command=sys.executable, args=(str(HOSTILE), mode, str(record)))


async def _hostile(place: Path, patience: float) -> Mapping[str, object]:
    """All hostile servers at once, beside a good one that is known."""
    limits = dict.fromkeys(("first_listing_s", "connect_timeout_s", "list_timeout_s"), patience)
    async with _gateway(place, "hostile.sqlite3") as gateway:
        _add(gateway, "good", "plain", place / "good")
        await gateway.search("what works")
    before, began = _peak_mb(), time.perf_counter()
    answered, slowest = 0, 0.0
    async with _gateway(place, "hostile.sqlite3", **limits) as gateway:
        _add(gateway, "good", "plain", place / "good")
        for mode in MODES:
            _add(gateway, mode, mode, place / mode)
        await gateway.search("what works")
        first = time.perf_counter() - began
        for _ in range(20):
            began = time.perf_counter()
            found = await gateway.search("what works", limit=20)
            slowest = max(slowest, time.perf_counter() - began)
            answer = await gateway.invoke("good/good")
            answered += "good/good" in {each.id for each in found.matches} and not answer.is_error
            with suppress(GatewayError):
                await gateway.invoke("exits_mid_call/good")
    return {
        "hostile_servers": len(MODES),
        "first_search_s": first,
        "slowest_search_s": slowest,
        "good_server_answered": answered / 20,
        "peak_memory_growth_mb": _peak_mb() - before,
    }


async def _killed(place: Path, seconds: float) -> Mapping[str, object]:
    """Search and call, while the server is killed."""
    record = place / "killed"
    told: Counter[str] = Counter()
    async with _gateway(place, "killed.sqlite3", first_listing_s=120) as gateway:
        _add(gateway, "srv", "pid", record)
        await gateway.search("what works")
        ends = time.monotonic() + seconds
        searching = asyncio.create_task(_searching(gateway, ends, told))
        calling = asyncio.create_task(_calling(gateway, ends, told))
        while time.monotonic() < ends:
            told["kills"] += _kill(record)
            await asyncio.sleep(min(_KILL_EVERY_S, max(ends - time.monotonic(), 0)))
        await asyncio.gather(searching, calling)
        told["kills"] += _kill(record)
        began = time.perf_counter()
        back = await _back(gateway)
        reconnected_s = time.perf_counter() - began
    calls = Counter(line for line in _read(record).split("\n") if line.startswith("call good "))
    return {
        "kills": told["kills"],
        "searches": told["searches"],
        "searches_failed": told["searches_failed"],
        "calls": told["calls"],
        "calls_failed": told["calls_failed"],
        "calls_twice": sum(count > 1 for count in calls.values()),
        "reconnected": back,
        "reconnected_s": reconnected_s,
    }


async def _searching(gateway: Gateway, ends: float, told: Counter[str]) -> None:
    while time.monotonic() < ends:
        told["searches"] += 1
        found = await gateway.search(f"what works {told['searches']}")
        told["searches_failed"] += not {each.id for each in found.matches} & _GOOD
        await asyncio.sleep(0.01)


async def _calling(gateway: Gateway, ends: float, told: Counter[str]) -> None:
    while time.monotonic() < ends:
        told["calls"] += 1
        try:
            await gateway.invoke("srv/good", {"number": told["calls"]})
        except GatewayError:
            told["calls_failed"] += 1
        await asyncio.sleep(0.005)


def _kill(record: Path) -> int:
    pids = [int(line) for line in _read(record).split("\n") if line.isdecimal()]
    with suppress(ProcessLookupError, IndexError):
        os.kill(pids[-1], signal.SIGKILL)
        return 1
    return 0


async def _back(gateway: Gateway, *, limit_s: float = 30.0) -> bool:
    ends = time.monotonic() + limit_s
    while time.monotonic() < ends:
        with suppress(GatewayError):
            await gateway.invoke("srv/good", {"number": 0})
            return True
        await asyncio.sleep(0.01)
    return False


async def _cancelled(place: Path, count: int, chance: random.Random) -> Mapping[str, object]:
    """Cancel calls: before they leave, under way, and as they end."""
    bridge = Bridge("faulting")
    target = StdioServer(sys.executable, (str(HOSTILE), "plain", str(place / "cancelled")))
    source = McpSource("srv", target, bridge=bridge, options=UpstreamOptions())
    await source.call("good", {}, tool_id="t")
    tasks = len(await bridge.run(_tasks))
    ended: Counter[str] = Counter()
    while ended["cancelled"] < count:
        tool = chance.choice(("slow", "good"))
        calling = asyncio.create_task(source.call(tool, {}, tool_id="t"))
        for _ in range(chance.randrange(8)):
            await asyncio.sleep(0)
        if chance.random() < 0.5:
            await asyncio.sleep(chance.random() * 0.006)
        calling.cancel()
        await asyncio.wait({calling})
        ended["cancelled" if calling.cancelled() else "answered"] += 1
    answer = await source.call("good", {}, tool_id="t")
    await _quiet(bridge, source, tasks)
    left = len(await bridge.run(_tasks)) - tasks
    in_flight, opened = source.supervisor.in_flight, source.supervisor.opened
    await source.close()
    await asyncio.to_thread(bridge.close)
    return {
        "cancellations": ended["cancelled"],
        "answered_before": ended["answered"],
        "pending_after": in_flight,
        "tasks_left": left,
        "sessions_opened": opened,
        "answers_after": answer.text == "pong",
    }


async def _tasks() -> set[asyncio.Task[object]]:
    return {each for each in asyncio.all_tasks() if each is not asyncio.current_task()}


async def _quiet(bridge: Bridge, source: McpSource, tasks: int, *, limit_s: float = 10.0) -> None:
    ends = time.monotonic() + limit_s
    while time.monotonic() < ends:
        if not source.supervisor.in_flight and len(await bridge.run(_tasks)) <= tasks:
            return
        await asyncio.sleep(0.01)


if __name__ == "__main__":
    typer.run(main)
