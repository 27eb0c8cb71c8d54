"""The other end of an adapter: starts it, hands over data and vectors, reads the answers."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.peering.environments import last_line
from benchmarks.peering.runs import LIMIT, Failure, Run, Task
from benchmarks.peering.table import Peer
from benchmarks.peering.vectors import Vectors
from gateway.embed.protocol import Role

ROOT = Path(__file__).parents[2]
_LINE = 2**24
"""Bytes of the longest answer."""
_QUIET = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "NO_PROXY": "127.0.0.1",
    "no_proxy": "127.0.0.1",
    "PYTHONPATH": str(ROOT),
}
"""One thread, no network, nothing sent home."""


async def run(
    peer: Peer, task: Task, *, python: str, vectors: Vectors, timeout_s: float
) -> Run | Failure:
    """Run one system.

    Args:
        peer: Which.
        task: The catalog and the queries.
        python: The interpreter of its environment.
        vectors: Asked only by peers that have none.
        timeout_s: Wall seconds after which it is ended.
    """
    with tempfile.TemporaryDirectory() as folder, vectors.endpoint() as endpoint:
        errors = Path(folder) / "errors.txt"
        with errors.open("wb") as sink:
            try:
                process = await asyncio.create_subprocess_exec(
                    python,
                    "-m",
                    peer.adapter,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=sink,
                    cwd=folder,
                    env={**os.environ, **_QUIET},
                    limit=_LINE,
                )
            except OSError as error:
                return Failure(reason=f"{python!r} does not start: {error}")
            talk = _Talk(process, vectors, Path(folder))
            try:
                async with asyncio.timeout(timeout_s):
                    return await talk.run(peer, task, endpoint)
            except TimeoutError:
                return Failure(reason=f"no answer within {timeout_s:.0f} s")
            except (EOFError, ConnectionError):
                await process.wait()
                said = last_line(errors.read_text(encoding="utf-8", errors="replace"))
                return Failure(reason=said or f"ended with {process.returncode}")
            finally:
                await talk.end()


class _Talk:
    def __init__(self, process: asyncio.subprocess.Process, vectors: Vectors, folder: Path) -> None:
        self._process = process
        self._vectors = vectors
        self._folder = folder

    async def run(self, peer: Peer, task: Task, endpoint: str) -> Run:
        self._vectors.role = "document"
        dimensions = self._vectors.dimensions if peer.vectors else 0
        first = {"catalog": task.tools, "dimensions": dimensions, "options": dict(peer.options)}
        await self._tell({**first, "endpoint": endpoint if dimensions else ""})
        built = (await self._hear("built"))["built"]
        self._vectors.role = "query"
        if dimensions:
            await self._vectors.rows([str(query["query"]) for query in task.queries], "query")
        await self._tell({"queries": task.queries, "limit": LIMIT})
        answers = [await self._hear("id") for _ in task.queries]
        return _run(built, answers)

    async def _tell(self, what: Mapping[str, object]) -> None:
        if self._process.stdin is None:
            raise EOFError
        self._process.stdin.write(f"{json.dumps(what)}\n".encode())
        await self._process.stdin.drain()

    async def _hear(self, key: str) -> dict[str, object]:
        """Wait for the line with *key*; give vectors meanwhile."""
        while True:
            line = await self._process.stdout.readline() if self._process.stdout else b""
            if not line:
                raise EOFError
            heard: dict[str, object] = json.loads(line)
            if key in heard:
                return heard
            await self._embed(_texts(str(heard["embed"])), str(heard["role"]))

    async def _embed(self, texts: list[str], role: str) -> None:
        asked: Role = "query" if role == "query" else "document"
        rows = await self._vectors.rows(texts, asked)
        written = self._folder / "vectors.f32"
        written.write_bytes(rows.astype("<f4").tobytes())
        await self._tell({"vectors": str(written)})

    async def end(self) -> None:
        """Hang up, and end the process if that does not."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(5):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


def _texts(path: str) -> list[str]:
    texts: list[str] = json.loads(Path(path).read_text(encoding="utf-8"))
    return texts


def _run(built: object, answers: list[dict[str, object]]) -> Run:
    told: Mapping[str, object] = built if isinstance(built, dict) else {}
    ranked = {
        str(each["id"]): tuple(map(str, names))
        for each in answers
        if isinstance(names := each["ranked"], list)
    }
    return Run(
        ranked=ranked,
        search_us=tuple(float(str(each["cpu_us"])) for each in answers),
        embed_us=tuple(float(str(each["embed_us"])) for each in answers),
        build_s=float(str(told["cpu_s"])),
        version=str(told["version"]),
        note=str(told["note"]),
    )
