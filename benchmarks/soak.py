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
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

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
    gateway = Gateway(strategy="graph")
    gateway.add_tool(echo)
    with (
        scripted_service() as url,
        closing(gateway),
        OpenAI(base_url=url, api_key="none", timeout=_PATIENCE_S) as client,
    ):
        count = _Count(found, seconds)
        wrapped = AutoDiscoveryClient(client, gateway)
        workers = [
            threading.Thread(target=_talk, args=(wrapped, count, f"thread-{number}"))
            for number in range(threads)
        ]
        watcher = threading.Thread(target=count.watch_memory, args=(seconds,))
        for thread in (watcher, *workers):
            thread.start()
        asyncio.run(_tasks(url, gateway, count, tasks))
        for worker in workers:
            worker.join()
        count.ended.set()
        watcher.join()
    gc.collect()
    found.left = sum(isinstance(each, Loop) for each in gc.get_objects())
    return found


class _Count:
    """What was counted, and when to stop. Any thread may use it."""

    def __init__(self, found: Soaked, seconds: float) -> None:
        self._found = found
        self._ends = time.monotonic() + seconds
        self._lock = threading.Lock()
        self.ended = threading.Event()

    def canaries(self, name: str) -> Iterator[str]:
        """Yield a word for each conversation, at least one, until the time is over."""
        for number in itertools.count():
            if number and time.monotonic() >= self._ends:
                return
            yield f"{name}-{number}"

    def add(self, canary: str, reply: object) -> None:
        """Count one conversation by the model's last words, or by its error."""
        with self._lock:
            found = self._found
            found.conversations += 1
            if isinstance(reply, Exception):
                found.errors += 1
                found.failures = tuple(sorted({*found.failures, type(reply).__name__}))
            elif reply != f"echo:{canary}":
                found.cross_talk += 1

    def watch_memory(self, seconds: float) -> None:
        """Note the memory at the end of each window."""
        seen: list[float] = []
        while len(seen) < _WINDOWS and not self.ended.wait(seconds / _WINDOWS):
            seen.append(memory_mb())
        self._found.memory_end_mb = memory_mb()
        self._found.memory_mb = tuple(seen)
        start = seen[_WARM - 1] if len(seen) >= _WARM else memory_mb()
        self._found.memory_start_mb = start


def _talk(client: AutoDiscoveryClient, count: _Count, name: str) -> None:
    for canary in count.canaries(name):
        reply = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": canary}]
        )
        count.add(canary, reply.choices[0].message.content)


async def _tasks(url: str, gateway: Gateway, count: _Count, tasks: int) -> None:
    async with AsyncOpenAI(base_url=url, api_key="none", timeout=_PATIENCE_S) as client:
        wrapped = AsyncAutoDiscoveryClient(client, gateway)

        async def one(name: str) -> None:
            for canary in count.canaries(name):
                stream = await wrapped.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": canary}], stream=True
                )
                texts = [
                    chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices
                ]
                count.add(canary, "".join(texts))

        work = (one(f"task-{number}") for number in range(tasks))
        for failed in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(failed, Exception):
                count.add("", failed)


def memory_mb() -> float:
    """Return the memory that this process holds, in megabytes; 0.0 where nobody tells."""
    if not _STATM.exists():
        return 0.0
    return int(_STATM.read_text(encoding="ascii").split()[1]) * _PAGE / 1e6
