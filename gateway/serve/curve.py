"""The distractor curve: what test requests find in a catalog that grows by others' tools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway.gateway import Gateway
from gateway.index.indexer import Progress
from gateway.plugins.quality.distractors import as_sources, distractors
from gateway.plugins.quality.evaluation import evaluate
from gateway.plugins.quality.report import CurvePoint, EvalReport
from gateway.plugins.quality.requests import RequestSet

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
