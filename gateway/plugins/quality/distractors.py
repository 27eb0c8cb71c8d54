"""Tools of other people, to see what is still found among many more. Pure but for the file.

The distractor curve: what test requests find in a catalog that grows by others' tools.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.index.indexer import Progress
from gateway.plugins.quality.evaluation import evaluate
from gateway.plugins.quality.report import CurvePoint, EvalReport
from gateway.plugins.quality.requests import RequestSet
from gateway.types import Entity, InvokeResult, JsonObject, ToolDefinition
from gateway.types.listing import Listing

_TEXTS: Mapping[str, str] = {
    "list": "List or search the {0}s of {1}, newest first.",
    "get": "Get one {0} of {1} with all its details.",
    "create": "Create a {0} in {1}.",
    "update": "Change an existing {0} of {1}.",
    "delete": "Delete a {0} from {1} for good.",
}


class FixedSource:
    """A server that only lists; nothing calls it.

    Args:
        server: Its name.
        tools: What it lists.
    """

    trusted = True
    """It is ranked as it is."""

    def __init__(self, server: str, tools: Collection[ToolDefinition]) -> None:
        self.server = server
        self._tools = tuple(tools)

    async def list_tools(self) -> Listing:
        """Return the tools."""
        return Listing(definitions=self._tools)

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Refuse."""
        del arguments
        raise ConfigError(f"{tool!r} ({tool_id}) is only listed")

    async def close(self) -> None:
        """Nothing to let go of."""


def as_sources(tools: Iterable[Entity]) -> tuple[FixedSource, ...]:
    """Return the servers of *tools*, to be listed once more in another gateway."""
    by_server: defaultdict[str, list[ToolDefinition]] = defaultdict(list)
    for tool in tools:
        by_server[tool.server].append(tool.definition)
    return tuple(FixedSource(server, listed) for server, listed in by_server.items())


def distractors(count: int, *, without: Collection[str] = ()) -> tuple[FixedSource, ...]:
    """Return servers of ``distractors.md`` with *count* tools in all, or fewer if it holds fewer.

    Args:
        count: How many tools.
        without: The names of servers that are there already.
    """
    text = Path(__file__).with_name("distractors.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    sources = []
    for server, about, nouns in rows[2:]:
        tools = [*_tools(about, nouns.split(", "))][:count]
        if server not in without and tools:
            sources.append(FixedSource(server, tools))
            count -= len(tools)
    return tuple(sources)


def _tools(about: str, nouns: Collection[str]) -> Iterator[ToolDefinition]:
    for noun in nouns:
        name = noun.replace(" ", "_").replace("-", "_").lower()
        for verb, text in _TEXTS.items():
            key = "query" if verb == "list" else "title" if verb == "create" else f"{name}_id"
            yield ToolDefinition(
                name=f"{verb}_{name}{'s' if verb == 'list' else ''}",
                description=text.format(noun, about),
                input_schema={
                    "type": "object",
                    "properties": {key: {"type": "string"}},
                    "required": [key],
                },
            )


FACTORS = (3, 10)
"""How many times as many tools there are."""


async def with_curve(
    report: EvalReport,
    original: Gateway,
    documents: Path | None,
    progress: Progress = lambda *_: None,
) -> EvalReport:
    """Return *report* with the same requests' figures in gateways that list more tools.

    Names of tools are pinned in a catalog that is thrown away; vectors are kept with the others.

    Args:
        report: Of *original*. Its requests are asked again, `FACTORS` times.
        original: What it was measured with; it is left as it is.
        documents: The folder of its own graph documents.
        progress: As for `evaluate`, and of each index build.
    """
    snapshot = await original.snapshot()
    entities = [tool for tool in snapshot.entities if tool.id in report.catalog]
    requests = RequestSet(requests=tuple(outcome.request for outcome in report.outcomes))
    points = [CurvePoint(tools=len(entities), figures=report.summary.figures)]
    for factor in FACTORS:
        others = distractors(
            (factor - 1) * len(entities), without={tool.server for tool in entities}
        )
        with TemporaryDirectory() as folder:
            index, catalog = Path(folder), Path(folder, "catalog.sqlite3")
            async with Gateway(
                strategy=original.strategy,
                embedder=original.embedder,
                graph=documents,
                options=replace(
                    original.options, store="", index_path=index, catalog_store_path=catalog
                ),
                vector_store=original.store.vectors,
                progress=progress,
            ) as gateway:
                for source in (*as_sources(entities), *others):
                    gateway.add_source(source)
                larger = await evaluate(gateway, requests, progress=progress)
        points.append(CurvePoint(tools=len(larger.catalog), figures=larger.summary.figures))
    return replace(report, curve=tuple(points))
