"""Distractors: tools from other domains, added to a catalog to test its search."""

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
    """A source with a fixed list of tools, which cannot be called.

    Args:
        server: Name of the server.
        tools: Tools of the server.
    """

    trusted = True
    """True, as for definitions by the host."""

    def __init__(self, server: str, tools: Collection[ToolDefinition]) -> None:
        self.server = server
        self._tools = tuple(tools)

    async def list_tools(self) -> Listing:
        """Return the fixed tools."""
        return Listing(definitions=self._tools)

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Raise `ConfigError`, because the tools can only be listed."""
        del arguments
        raise ConfigError(f"{tool!r} ({tool_id}) can only be listed")

    async def close(self) -> None:
        """Do nothing."""


def as_sources(tools: Iterable[Entity]) -> tuple[FixedSource, ...]:
    """Return a source for each server of *tools*, which another gateway can list."""
    by_server: defaultdict[str, list[ToolDefinition]] = defaultdict(list)
    for tool in tools:
        by_server[tool.server].append(tool.definition)
    return tuple(FixedSource(server, definitions) for server, definitions in by_server.items())


def distractors(count: int, *, without: Collection[str] = ()) -> tuple[FixedSource, ...]:
    """Return distractor servers from ``distractors.md``.

    Args:
        count: Number of tools of these servers together, or fewer if the file has fewer.
        without: Names of servers to leave out.
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
"""Catalog sizes of the distractor curve, as multiples of the original size."""


async def with_curve(
    report: EvalReport,
    original: Gateway,
    documents: Path | None,
    progress: Progress = lambda *_: None,
) -> EvalReport:
    """Return *report* with a distractor curve: figures of the same requests in larger catalogs.

    Args:
        report: Report of *original*, whose requests are evaluated once for each of `FACTORS`.
        original: Gateway that does not change, except that its store gets new vectors.
        documents: Folder of the gateway's graph documents.
        progress: Callback as for `evaluate`, also for index builds.
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
