"""The task that every system is given, and what it returned."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.data import Benchmark, Row

LIMIT = 10
"""How many tools are wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What every system is given."""

    name: str
    tools: tuple[Row, ...]
    """Fields of `benchmarks.peering.wire.Tool`."""
    ids: Mapping[str, str]
    """The data's tool id by the unique name of a tool."""
    queries: tuple[Row, ...]
    """``id`` and ``query``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a system returned, and what that cost in process CPU."""

    ranked: Mapping[str, tuple[str, ...]]
    """Names of tools by query id, best first."""
    search_us: tuple[float, ...]
    """Each search, without embedding the query."""
    embed_us: tuple[float, ...]
    """Embedding each query; 0 where vectors are given."""
    build_s: float
    """Indexing, without embedding."""
    version: str = ""
    note: str = ""
    """What the system refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why there is no run."""

    reason: str


def task_of(benchmark: Benchmark) -> Task:
    """Return the task of a benchmark folder, without its edges: peers take none."""
    names = unique_names([str(tool["name"]) for tool in benchmark.tools])
    tools = tuple(
        _tool_row(tool, name, benchmark.servers[str(tool["id"])])
        for tool, name in zip(benchmark.tools, names, strict=True)
    )
    return Task(
        name=benchmark.name,
        tools=tools,
        ids={name: str(tool["id"]) for tool, name in zip(benchmark.tools, names, strict=True)},
        queries=tuple({"id": str(q["id"]), "query": str(q["query"])} for q in benchmark.queries),
    )


def _tool_row(tool: Row, name: str, server: str) -> Row:
    schema, output = tool.get("input_schema"), tool.get("output_schema")
    return {
        "name": name,
        "plain": str(tool["name"]),
        "server": server,
        "title": str(tool.get("title") or ""),
        "description": str(tool.get("description") or ""),
        "input_schema": schema if isinstance(schema, dict) else {},
        "output_schema": output if isinstance(output, dict) else None,
    }


def unique_names(names: Sequence[str]) -> list[str]:
    """Return *names*, with a number behind each repeated one."""
    taken = set(names)
    unique: dict[str, None] = {}
    for name in names:
        new, number = name, 2
        while new in unique or (new != name and new in taken):
            new, number = f"{name}_{number}", number + 1
        unique[new] = None
    return list(unique)


def sample(task: Task, limit: int) -> Task:
    """Return *task* with *limit* queries, drawn as `benchmarks.data.read` does; 0 keeps all."""
    drawn = sorted(
        task.queries, key=lambda query: hashlib.sha256(str(query["id"]).encode()).hexdigest()
    )
    return replace(task, queries=tuple(drawn[:limit])) if limit else task
