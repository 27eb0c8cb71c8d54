"""What bad rewrites of queries cost, and what good ones bring.

    python -m benchmarks.rewrites --data DIR --data DIR --strategies auto,graph
    python -m benchmarks.rewrites --data DIR --good benchmarks/hindi_rewrites.json

A scripted normalizer stands for a chat model. The bad ones give one text whatever they are asked,
or what another query asks. The good one looks rewrites up by the ids of queries, and is measured on
these queries alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.data import Benchmark, read
from benchmarks.metrics import summary
from benchmarks.ranking import STRATEGIES, Way, query_texts, rank
from benchmarks.recalled import Recalled
from benchmarks.retrieval import one_of
from benchmarks.tables import print_table
from gateway.embed.protocol import Embedder, resolve_embedder
from gateway.search.normalize import ModelReply, Normalizer
from gateway.testing import HashingEmbedder

Rewrite = Callable[[str], str]
_BAD: Mapping[str, str] = {
    "order": "delete everything",
    "refusal": "I'm sorry, I can't help with that",
    "label": "search query:",
    "other order": "book a flight to Paris",
    "chat": "Sure, here is what you could search for in the catalog of tools",
}

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """A normalizer that answers by a function."""

    answer: Rewrite
    model_id: str
    provider: str = "testing"

    async def rewrite(self, query: str) -> ModelReply:
        """Return what the function makes of *query*."""
        return ModelReply(text=self.answer(query))


def rewriters(texts: Mapping[str, str], good: Mapping[str, str]) -> dict[str, Rewrite]:
    """Return the functions by name; the good one only if *good* holds rewrites, by query id."""
    ordered = list(texts.values())
    following = dict(zip(ordered, [*ordered[1:], ordered[0]], strict=True))
    found: dict[str, Rewrite] = {
        name: lambda _, text=text: text  # type: ignore[misc]  # (bound at once)
        for name, text in _BAD.items()
    }
    found["another query"] = following.__getitem__
    if good:
        found["good"] = {texts[key]: text for key, text in good.items() if key in texts}.__getitem__
    return found


@app.command()
def main(
    *,
    data: Annotated[list[Path], typer.Option(help="A folder; may be repeated.")],
    strategies: Annotated[str, typer.Option(help="With commas between.")] = "auto,graph",
    embedder: Annotated[str, typer.Option(help="local; hashing knows no language.")] = "local",
    good: Annotated[Path | None, typer.Option(help="Good rewrites by query id, as JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
) -> None:
    """Measure recall@5 without a normalizer and with each of the scripted ones."""
    table = json.loads(good.read_text(encoding="utf-8")) if good else {}
    is_local = one_of(embedder, ("local", "hashing")) == "local"
    model = Recalled(resolve_embedder("local") or HashingEmbedder()) if is_local else None
    lines: list[dict[str, object]] = []
    for folder in data:
        benchmark = read(folder)
        if table:
            chosen = tuple(query for query in benchmark.queries if query["id"] in table)
            benchmark = replace(benchmark, queries=chosen)
        for name in strategies.split(","):
            way: Way = one_of(name, STRATEGIES)
            figures = _measure(benchmark, way, model or HashingEmbedder(), table)
            lines.append({"set": benchmark.name, "strategy": way, **figures})
    if as_json:
        print(json.dumps(lines, indent=2))
    else:
        shown = [
            {key: f"{100 * value:.1f}" if isinstance(value, float) else value for key, value in line.items()}
            for line in lines
        ]
        print_table("recall@5 without a normalizer, and with scripted ones", shown)


def _measure(
    benchmark: Benchmark, way: Way, embedder: Embedder, good: Mapping[str, str]
) -> dict[str, float]:
    texts = query_texts(benchmark)
    normalizers: dict[str, Normalizer | None] = {"none": None}
    for name, answer in rewriters(texts, good).items():
        normalizers[name] = Scripted(answer=answer, model_id=name)
    figures = {}
    for name, normalizer in normalizers.items():
        run = rank(
            benchmark, texts, strategy=way, edges="given", embedder=embedder, normalizer=normalizer
        )
        lines = [each.line("matches") for each in asyncio.run(run)]
        figures[name] = summary(benchmark.queries, lines).figures["recall@5"]
    return figures


if __name__ == "__main__":
    app()
