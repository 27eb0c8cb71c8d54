"""Many conversations on one client at once: nobody may hear of another's, and memory stays flat.

Each conversation says a word of its own, its canary, and calls a tool that repeats it. A reply
with any other canary, or none, is cross-talk. The model is another process, so that the memory is
the client's and the gateway's.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, OpenAI

from benchmarks.scripted_service import scripted_service
from gateway import AsyncAutoDiscoveryClient, AutoDiscoveryClient, Gateway
from gateway.chat.loop import Loop

_STATM = Path("/proc/self/statm")
_PAGE = 4096
_WINDOWS = 12
_PATIENCE_S = 120
"""What one request may take: a busy machine is no error."""
_WARM = 4
"""Windows after which everything that is made once is made."""


@dataclass(slots=True, kw_only=True)
class Soaked:
    """What a soak came to."""

    conversations: int = 0
    errors: int = 0
    failures: tuple[str, ...] = ()
    """What kinds of errors they were."""
    cross_talk: int = 0
    left: int = 0
    """Calls of the wrapper that are still in memory when all have ended."""
    memory_start_mb: float = 0.0
    """After the first third of the time: what is made once is made by then."""
    memory_end_mb: float = 0.0
    memory_mb: tuple[float, ...] = ()
    """At the end of each twelfth of the time."""


def echo(word: str) -> str:
    """Repeat a word."""
    return f"echo:{word}"


def soak(seconds: float, *, threads: int = 16, tasks: int = 200) -> Soaked:
    """Talk for *seconds* from *threads* threads and *tasks* tasks at once."""
    found = Soaked()
    gateway = Gateway()
    gateway.add_tool(echo)
    with (
        scripted_service() as url,
        closing(gateway),
        OpenAI(base_url=url, api_key="none", timeout=_PATIENCE_S) as client,
    ):
        clock = _Clock(found, time.monotonic() + seconds)
        wrapped = AutoDiscoveryClient(client, gateway)
        workers = [
            threading.Thread(target=_talk, args=(wrapped, clock, f"thread-{number}"))
            for number in range(threads)
        ]
        with _watched(found, seconds):
            for worker in workers:
                worker.start()
            asyncio.run(_tasks(url, gateway, clock, tasks))
            for worker in workers:
                worker.join()
    gc.collect()
    found.left = sum(isinstance(each, Loop) for each in gc.get_objects())
    return found


@contextmanager
def _watched(found: Soaked, seconds: float) -> Iterator[None]:
    """Look at the memory at the end of each window."""
    ended = threading.Event()
    seen: list[float] = []

    def look() -> None:
        while len(seen) < _WINDOWS and not ended.wait(seconds / _WINDOWS):
            seen.append(memory_mb())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        found.memory_end_mb = memory_mb()
        found.memory_mb = tuple(seen)
        found.memory_start_mb = seen[_WARM - 1] if len(seen) >= _WARM else found.memory_end_mb


class _Clock:
    """When to stop, and what was counted. Any thread may use it."""

    def __init__(self, found: Soaked, until: float) -> None:
        self._found = found
        self._until = until
        self._lock = threading.Lock()

    def goes_on(self) -> bool:
        return time.monotonic() < self._until

    def count(self, canary: str, told: Any) -> None:
        with self._lock:
            found = self._found
            found.conversations += 1
            if isinstance(told, Exception):
                found.errors += 1
                found.failures = tuple(sorted({*found.failures, type(told).__name__}))
            elif told != f"echo:{canary}":
                found.cross_talk += 1


def _talk(client: AutoDiscoveryClient, clock: _Clock, name: str) -> None:
    for number in itertools.count():
        if number and not clock.goes_on():
            return
        canary = f"{name}-{number}"
        reply = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": canary}]
        )
        clock.count(canary, reply.choices[0].message.content)


async def _tasks(url: str, gateway: Gateway, clock: _Clock, tasks: int) -> None:
    async with AsyncOpenAI(base_url=url, api_key="none", timeout=_PATIENCE_S) as client:
        wrapped = AsyncAutoDiscoveryClient(client, gateway)

        async def one(name: str) -> None:
            for number in itertools.count():
                if number and not clock.goes_on():
                    return
                canary = f"{name}-{number}"
                stream = await wrapped.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": canary}], stream=True
                )
                texts = [
                    each.choices[0].delta.content or "" async for each in stream if each.choices
                ]
                clock.count(canary, "".join(texts))

        told = await asyncio.gather(
            *(one(f"task-{number}") for number in range(tasks)), return_exceptions=True
        )
        for failed in told:
            if isinstance(failed, Exception):
                clock.count("", failed)


def memory_mb() -> float:
    """Give the memory that this process holds, in megabytes; 0.0 where nobody tells."""
    if not _STATM.exists():
        return 0.0
    return int(_STATM.read_text(encoding="ascii").split()[1]) * _PAGE / 1e6
