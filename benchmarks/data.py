"""Benchmark folders in the common format, and a catalog made of one.

A folder holds ``catalog.jsonl`` and ``queries.jsonl``, and may hold ``edges.jsonl`` (the source
depends on the target). Tool ids of the data are kept beside the gateway's own.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import ConfigError
from gateway.plugins.quality.distractors import FixedSource
from gateway.types import ToolDefinition
from graphs import Document, Link

Row = Mapping[str, object]
ORIGIN_FILE = "origin.txt"
"""In a folder: one line, the group of the sets that were made by the same people."""
_ORIGINS: Mapping[str, str] = {
    "acebench_en": "acebench",
    "acebench_zh": "acebench",
    "bfcl_india": "bfcl",
    # The requests of mixed are joined from those of the other three.
    **dict.fromkeys(["metatool", "mixed", "nestful", "toolbench"], "metatool and others"),
}
"""The groups of sets whose folders have no such file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One folder, read."""

    name: str
    tools: tuple[Row, ...]
    queries: tuple[Row, ...]
    edges: tuple[Row, ...]
    servers: Mapping[str, str]
    """The gateway's server name of each tool id."""

    entity_ids: Mapping[str, str]
    """The gateway's id of each tool id."""
    tool_ids: Mapping[str, str]
    """The same, the other way."""


def read(folder: Path, *, extra: Sequence[Path] = (), limit: int = 0) -> Benchmark:
    """Read *folder*.

    Args:
        folder: Where the data is.
        extra: More catalogs, whose tools are added as distractors.
        limit: Take this many queries, drawn by the hash of their ids; 0 takes all.

    Raises:
        ConfigError: If the folder has no catalog or no queries.
    """
    tools = {str(row["id"]): row for row in rows(folder / "catalog.jsonl")}
    for path in extra:
        tools = {str(row["id"]): row for row in rows(path)} | tools
    queries = list(rows(folder / "queries.jsonl"))
    if limit:
        queries = sorted(queries, key=lambda query: _hash(str(query["id"])))[:limit]
    edges = folder / "edges.jsonl"
    return _benchmark(
        folder.name, tools, queries=queries, edges=tuple(rows(edges)) if edges.exists() else ()
    )


def read_catalog(path: Path) -> Benchmark:
    """Read a file of tools, without queries.

    Raises:
        ConfigError: If the file is missing.
    """
    return _benchmark(path.parent.name, {str(row["id"]): row for row in rows(path)})


def _benchmark(
    name: str, tools: Mapping[str, Row], *, queries: Sequence[Row] = (), edges: Sequence[Row] = ()
) -> Benchmark:
    servers = _servers(tools.values())
    entity_ids = {key: f"{servers[key]}/{tool['name']}" for key, tool in tools.items()}
    return Benchmark(
        name=name,
        tools=tuple(tools.values()),
        queries=tuple(queries),
        edges=tuple(edges),
        servers=servers,
        entity_ids=entity_ids,
        tool_ids={entity: tool for tool, entity in entity_ids.items()},
    )


def origin_of(folder: Path) -> str:
    """Return the group of origin of the set in *folder*: its own name where nothing names one."""
    file = folder / ORIGIN_FILE
    text = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    return text or _ORIGINS.get(folder.name, folder.name)


def rows(path: Path) -> Iterable[Row]:
    """Read the lines of a JSON Lines file, without the empty ones.

    Raises:
        ConfigError: If there is no such file.
    """
    if not path.is_file():
        raise ConfigError(f"no {path.name!r} in {str(path.parent)!r}")
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                row: Row = json.loads(line)
                yield row


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _servers(tools: Iterable[Row]) -> dict[str, str]:
    """Name the servers; a name that a server offers twice goes to a second server."""
    taken: set[tuple[str, str]] = set()
    found: dict[str, str] = {}
    for tool in tools:
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", str(tool.get("server") or "tools"))
        server = base = plain.strip("_")[:56] or "tools"
        number = 2
        while (server, str(tool["name"])) in taken:
            server, number = f"{base}-{number}", number + 1
        taken.add((server, str(tool["name"])))
        found[str(tool["id"])] = server
    return found


def sources(benchmark: Benchmark) -> list[FixedSource]:
    """Make the sources of a benchmark's catalog."""
    by_server: dict[str, list[ToolDefinition]] = defaultdict(list)
    for tool in benchmark.tools:
        by_server[benchmark.servers[str(tool["id"])]].append(_definition(tool))
    return [FixedSource(server, tools) for server, tools in by_server.items()]


def definitions(benchmark: Benchmark) -> list[ToolDefinition]:
    """Return the tools of a benchmark's catalog as their servers list them."""
    return [_definition(tool) for tool in benchmark.tools]


def _definition(tool: Row) -> ToolDefinition:
    schema, output = tool.get("input_schema"), tool.get("output_schema")
    return ToolDefinition(
        name=str(tool["name"]),
        title=str(tool.get("title") or ""),
        description=str(tool.get("description") or ""),
        input_schema=schema if isinstance(schema, dict) else {},
        output_schema=output if isinstance(output, dict) else None,
    )


def edge_documents(benchmark: Benchmark) -> list[Document]:
    """Write the given dependencies as a host would: one document a tool, ``requires`` its needs."""
    ids = {str(tool["id"]) for tool in benchmark.tools}
    needs: dict[str, list[str]] = defaultdict(list)
    for edge in benchmark.edges:
        source, target = str(edge["source"]), str(edge["target"])
        if {source, target} <= ids:
            needs[source].append(target)
    return [
        Document(
            id=f"urn:benchmark:{benchmark.name}:{source}",
            path=f"{_hash(source)[:16]}.md",
            title=benchmark.entity_ids[source],
            requires=tuple(Link(target=benchmark.entity_ids[target]) for target in targets),
        )
        for source, targets in needs.items()
    ]
