"""Many conversations on one client at once: nobody may hear of another's, and memory stays flat.

Each conversation says a word of its own, its canary, and calls a tool that repeats it. A reply
with any other canary, or none, is cross-talk.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, OpenAI

from gateway import AsyncAutoDiscoveryClient, AutoDiscoveryClient, Gateway
from gateway.testing import Call, ModelRequest, ScriptedModel, Turn

_STATM = Path("/proc/self/statm")
_PAGE = 4096


@dataclass(slots=True, kw_only=True)
class Soaked:
    """What a soak came to."""

    conversations: int = 0
    errors: int = 0
    cross_talk: int = 0
    memory_start_mb: float = 0.0
    """After the first quarter of the time: what is made once is made by then."""
    memory_end_mb: float = 0.0


def echo(word: str) -> str:
    """Repeat a word."""
    return f"echo:{word}"


def repeated(request: ModelRequest) -> Turn:
    """Search, call the echo with the user's word, say what it said."""
    word = request.user_text
    if request.progress == 0:
        return Turn(calls=(Call("search_tools", {"query": "repeat a word"}),))
    if request.progress == 1:
        return Turn(calls=(Call("echo", {"word": word}),))
    return Turn(str(request.last_tool_results()[0]["content"]))


@contextmanager
def _serving() -> Iterator[tuple[ScriptedModel, Gateway]]:
    gateway = Gateway()
    gateway.add_tool(echo)
    with ScriptedModel(repeated) as model, closing(gateway):
        yield model, gateway


def soak(seconds: float, *, threads: int = 16, tasks: int = 200) -> Soaked:
    """Talk for *seconds* from *threads* threads and *tasks* tasks at once."""
    found = Soaked()
    with _serving() as (model, gateway):
        until = time.monotonic() + seconds
        clock = _Clock(model, found, until, seconds)
        with OpenAI(base_url=model.base_url, api_key="none") as client:
            wrapped = AutoDiscoveryClient(client, gateway)
            workers = [
                threading.Thread(target=_talk, args=(wrapped, clock, f"thread-{number}"))
                for number in range(threads)
            ]
            for worker in workers:
                worker.start()
            asyncio.run(_tasks(model, gateway, clock, tasks))
            for worker in workers:
                worker.join()
    found.memory_end_mb = memory_mb()
    return found


class _Clock:
    """When to stop, and what was counted. Any thread may use it."""

    def __init__(self, model: ScriptedModel, found: Soaked, until: float, seconds: float) -> None:
        self._model = model
        self._found = found
        self._until = until
        self._quarter = until - seconds * 0.75
        self._lock = threading.Lock()

    def goes_on(self) -> bool:
        return time.monotonic() < self._until

    def count(self, canary: str, told: Any) -> None:
        with self._lock:
            found = self._found
            found.conversations += 1
            if isinstance(told, Exception):
                found.errors += 1
            elif told != f"echo:{canary}":
                found.cross_talk += 1
            if found.conversations % 100 == 0:
                # The log of the server is not what is measured.
                self._model.forget()
            if not found.memory_start_mb and time.monotonic() >= self._quarter:
                found.memory_start_mb = memory_mb()


def _talk(client: AutoDiscoveryClient, clock: _Clock, name: str) -> None:
    for number in itertools.count():
        if number and not clock.goes_on():
            return
        canary = f"{name}-{number}"
        reply = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": canary}]
        )
        clock.count(canary, reply.choices[0].message.content)


async def _tasks(model: ScriptedModel, gateway: Gateway, clock: _Clock, tasks: int) -> None:
    async with AsyncOpenAI(base_url=model.base_url, api_key="none", max_retries=5) as client:
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
