"""Whether one scripted conversation sends all spans and metrics of `telemetry.txt`.

    python -m benchmarks.telemetry --json

Real parts: wrapper, model behind HTTP, MCP server, OpenTelemetry's SDK, all in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import typer
from openai import OpenAI
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from benchmarks.serving import idle_server
from benchmarks.tables import print_figures
from gateway import AutoDiscoveryClient, Gateway, OpenAIEmbedder, OpenAINormalizer, Options
from gateway.serve.api.app import api_app
from gateway.serve.http import measured
from gateway.serve.http_options import HttpOptions
from gateway.testing import Call, Faults, ScriptedModel, Turn, script

PROMISES = Path(__file__).with_suffix(".txt")
TURNS = (
    Turn(calls=(Call("search_tools", {"query": "be idle"}),)),
    Turn(calls=(Call("idle"), Call("call_tool", {"name": "no_such_tool", "arguments": {}}))),
    Turn("Done."),
)


async def _over_http(gateway: Gateway) -> None:
    served = httpx2.ASGITransport(measured(api_app(gateway, HttpOptions()), gateway.telemetry))
    async with httpx2.AsyncClient(transport=served, base_url="http://127.0.0.1") as client:
        await client.get("/api/entities")


def converse(folder: Path, tracer: TracerProvider, reader: InMemoryMetricReader) -> Any:
    """Hold one conversation, search when the embedder is down and over HTTP; return the metrics."""
    (folder / "index").touch()  # where a folder should be: the store of the index fails
    with (
        ScriptedModel(script(*TURNS)) as model,
        OpenAI(base_url=model.base_url, api_key="test", max_retries=0) as openai,
    ):
        gateway = Gateway(
            strategy="auto",
            embedder=OpenAIEmbedder(openai, model="embedding"),
            normalizer=OpenAINormalizer(openai, model="small"),
            options=Options(index_path=folder / "index", vector_store_path=folder / "vectors"),
            tracer_provider=tracer,
            meter_provider=MeterProvider([reader]),
        )
        with closing(gateway):
            gateway.add_server("idle", server=idle_server("n" * 129))  # too long a name
            gateway.add_server("dead", command="no-such-program")
            agent = AutoDiscoveryClient(openai, gateway, agent="clerk")
            list(agent.responses.create(model="m", input="Rest.", conversation="c", stream=True))
            model.fail(Faults(times=9), "embeddings")
            gateway.bridge.call(lambda: gateway.search("xyzzy plugh"))
            gateway.bridge.call(lambda: _over_http(gateway))
            return reader.get_metrics_data()


def sent() -> Iterator[tuple[str, ...]]:
    """Yield the name of each span and metric that was sent, alone and with each attribute."""
    spans, tracer = InMemorySpanExporter(), TracerProvider()
    tracer.add_span_processor(SimpleSpanProcessor(spans))
    with TemporaryDirectory() as folder:
        data = converse(Path(folder), tracer, InMemoryMetricReader())
    points = [(span.name.split()[0], span.attributes) for span in spans.get_finished_spans()]
    for resource in data.resource_metrics:
        for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
            points += [(metric.name, point.attributes) for point in metric.data.data_points]
    for name, attributes in points:
        yield (name,)
        yield from ((name, attribute) for attribute in attributes or ())


def main(*, as_json: bool = typer.Option(False, "--json", help="Print one object.")) -> None:
    """Print what was found and what is missing; exit with 1 if anything is."""
    figures: dict[str, list[str]] = {"found": [], "missing": []}
    there = set(sent())
    for name, *attributes in map(str.split, PROMISES.read_text(encoding="utf-8").splitlines()[1:]):
        for key in ((name,), *((name, attribute) for attribute in attributes)):
            figures["found" if key in there else "missing"].append(" ".join(key))
    counts = {"found": len(figures["found"]), "missing": figures["missing"]}
    print_figures(figures if as_json else counts, as_json=as_json)
    raise typer.Exit(bool(figures["missing"]))


if __name__ == "__main__":
    typer.run(main)
