"""A catalog of every kind, and requests with graded answers over it.

Agents, skills, what servers are for, and most requests stand in ``registrydata``; the tools, and
the requests of the slice ``tools``, come from folders in the common format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data import Benchmark, Row, read, rows
from benchmarks.graded import Answer
from benchmarks.metrics import gold_of
from gateway.errors import ConfigError

DATA = Path(__file__).parent / "registrydata"
SLICES = ("tools", "requests", "servers", "agents", "skills", "names", "mixed")
"""The slices that have answers."""
KINDS = {"tools": "tool", "requests": "tool", "servers": "server", "agents": "agent"} | {
    "skills": "skill"
}
"""The kind that a slice asks for, where it is one."""
NO_TOOLS = Benchmark(
    name="written", tools=(), queries=(), edges=(), servers={}, entity_ids={}, tool_ids={}
)
NAMESPACE = "catalog"
"""Where agents and skills stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request."""

    id: str
    slice: str
    lang: str
    query: str
    gold: tuple[Answer, ...]
    """Empty if the catalog has no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """The whole catalog, and what is asked of it."""

    benchmark: Benchmark
    """The tools."""
    agents: tuple[Row, ...]
    """A2A agent cards."""
    skills: tuple[Row, ...]
    servers: Mapping[str, str]
    """What each server is for, by the gateway's name of it."""
    requests: tuple[Request, ...]


def read_mixed(folder: Path | None, *, extra: Iterable[Path] = (), data: Path = DATA) -> Mixed:
    """Read the catalog.

    Args:
        folder: Tools with requests of their own, in the common format. Without it there are no
            tools and servers, and requests that nothing else answers are left out.
        extra: More folders, or files, of tools.
        data: Manifests and written requests.

    Raises:
        ConfigError: If a file is missing, or an answer names what is not in the catalog.
    """
    catalogs = [path / "catalog.jsonl" if path.is_dir() else path for path in extra]
    benchmark = read(folder, extra=catalogs) if folder else NO_TOOLS
    offered = _offered(benchmark)
    agents = tuple(rows(data / "agents.jsonl"))
    skills = tuple(rows(data / "skills.jsonl"))
    ids = _ids(benchmark, offered, agents, skills)
    return Mixed(
        benchmark=benchmark,
        agents=agents,
        skills=skills,
        servers={
            benchmark.servers[offered[name][0]]: str(row["description"])
            for row in rows(data / "servers.jsonl")
            if (name := str(row["name"])) in offered
        },
        requests=(
            *(_public(row, benchmark) for row in benchmark.queries),
            *(
                _written(row, ids)
                for row in rows(data / "queries.jsonl")
                if folder or _gold(row).keys() <= ids.keys()
            ),
        ),
    )


def agent_key(card: Row) -> str:
    """Return what the gold calls an agent: the last part of its address."""
    return str(card["url"]).rsplit("/", 1)[-1]


def _offered(benchmark: Benchmark) -> dict[str, list[str]]:
    """Return the tools of each server, by its name in the data."""
    found: dict[str, list[str]] = {}
    for tool in benchmark.tools:
        found.setdefault(str(tool.get("server")), []).append(str(tool["id"]))
    return found


def _ids(
    benchmark: Benchmark,
    offered: Mapping[str, Sequence[str]],
    agents: Iterable[Row],
    skills: Iterable[Row],
) -> dict[str, frozenset[str]]:
    """Return the ids of the gateway by the keys of the gold."""
    tools = benchmark.entity_ids
    ids = {f"tool:{key}": frozenset((entity,)) for key, entity in tools.items()}
    for name, keys in offered.items():
        ids[f"server:{name}"] = frozenset((f"server:{benchmark.servers[keys[0]]}",))
        ids[f"tools:{name}"] = frozenset(tools[key] for key in keys)
    for card in agents:
        ids[f"agent:{agent_key(card)}"] = frozenset((f"agent:{NAMESPACE}/{card['name']}",))
    for skill in skills:
        ids[f"skill:{skill['name']}"] = frozenset((f"skill:{NAMESPACE}/{skill['name']}",))
    return ids


def _public(row: Row, benchmark: Benchmark) -> Request:
    """Read a request of the common format: each gold tool is an answer of the same grade."""
    groups = [frozenset(benchmark.entity_ids[key] for key in group) for group in gold_of(row)]
    return Request(
        id=str(row["id"]),
        slice="tools",
        lang=str(row.get("lang") or "en"),
        query=str(row["query"]),
        gold=tuple(Answer(ids=group, grade=1) for group in groups),
    )


def _written(row: Row, ids: Mapping[str, frozenset[str]]) -> Request:
    """Read a written request."""
    gold = _gold(row)
    unknown = ", ".join(sorted(gold.keys() - ids.keys()))
    if unknown:
        raise ConfigError(f"{row['id']!r} asks for what is not there: {unknown}")
    return Request(
        id=str(row["id"]),
        slice=str(row["slice"]),
        lang=str(row["lang"]),
        query=str(row["query"]),
        gold=tuple(Answer(ids=ids[key], grade=int(grade)) for key, grade in gold.items()),
    )


def _gold(row: Row) -> Mapping[str, int]:
    gold = row.get("gold", {})
    if not isinstance(gold, dict):
        raise ConfigError(f"the gold of {row['id']!r} must be an object")
    return gold
