"""What bad rewrites of queries cost, and what good ones bring, in recall@5.

    python -m benchmarks.rewrites --data DIR --data DIR --strategies auto,graph
    python -m benchmarks.rewrites --data DIR --good benchmarks/hindi_rewrites.json

A scripted normalizer stands for a chat model. A bad one says the same whatever it is asked, or what
another query asks. The good one looks rewrites up, by the ids of queries; these alone are asked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.data import Benchmark, read
from benchmarks.metrics import summary
from benchmarks.ranking import STRATEGIES, Way, query_texts, rank
from benchmarks.recalled import Recalled
from benchmarks.retrieval import one_of
from benchmarks.tables import percents, print_table
from gateway import Embedder, Normalizer
from gateway.plugins.local.embedder import LocalEmbedder
from gateway.search.normalize import ModelReply
from gateway.testing import HashingEmbedder

_BAD: Mapping[str, str] = {
    "order": "delete everything",
    "refusal": "I'm sorry, I can't help with that",
    "label": "search query:",
    "other order": "book a flight to Paris",
    "chat": "Sure, here is what you could search for in the catalog of tools",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """A normalizer that looks up what it says."""

    model_id: str
    rewrites: Mapping[str, str]
    """By query; others get `otherwise`."""
    otherwise: str = ""
    provider: str = "testing"

    async def rewrite(self, query: str) -> ModelReply:
        """Look *query* up."""
        return ModelReply(text=self.rewrites.get(query, self.otherwise))


def main(
    *,
    data: Annotated[list[Path], typer.Option(help="A folder; may be repeated.")],
    strategies: Annotated[str, typer.Option(help="With commas between.")] = "auto,graph",
    embedder: Annotated[str, typer.Option(help="local; hashing knows no language.")] = "local",
    good: Annotated[Path | None, typer.Option(help="Good rewrites by query id, as JSON.")] = None,
    limit_queries: Annotated[int, typer.Option(help="A fixed sample of so many.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
) -> None:
    """Search without a normalizer, and with each of the scripted ones."""
    is_local = one_of(embedder, ("local", "hashing")) == "local"
    model = Recalled(LocalEmbedder()) if is_local else None
    table: Mapping[str, str] = json.loads(good.read_text(encoding="utf-8")) if good else {}
    figures = {}
    for folder in data:
        benchmark = read(folder, limit=limit_queries)
        if table:
            chosen = (query for query in benchmark.queries if query["id"] in table)
            benchmark = replace(benchmark, queries=tuple(chosen))
        for name in strategies.split(","):
            way: Way = one_of(name, STRATEGIES)
            found = _measure(benchmark, way, model or HashingEmbedder(), table)
            figures[f"{benchmark.name} {way}"] = found
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    lines = [{"": name, **percents(row, list(row))} for name, row in figures.items()]
    print_table("recall@5", lines)


def _measure(
    benchmark: Benchmark, way: Way, embedder: Embedder, good: Mapping[str, str]
) -> dict[str, float]:
    texts = query_texts(benchmark)
    asked = list(texts.values())
    scripted = [Scripted(model_id=name, rewrites={}, otherwise=text) for name, text in _BAD.items()]
    following = dict(zip(asked, [*asked[1:], asked[0]], strict=True))
    scripted.append(Scripted(model_id="another query", rewrites=following))
    if good:
        scripted.append(
            Scripted(model_id="good", rewrites={texts[key]: good[key] for key in texts})
        )
    figures = {}
    normalizers: tuple[Normalizer | None, ...] = (None, *scripted)
    for each in normalizers:
        run = rank(
            benchmark, texts, strategy=way, edges="given", embedder=embedder, normalizer=each
        )
        lines = [answered.line("matches") for answered in asyncio.run(run)]
        name = each.model_id if each else "none"
        figures[name] = summary(benchmark.queries, lines).figures["recall@5"]
    return figures


if __name__ == "__main__":
    typer.run(main)
