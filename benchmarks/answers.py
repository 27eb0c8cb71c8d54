"""How many tokens the answers of searches take of a conversation.

    python -m benchmarks.answers --data DIR --json

An answer is what a model reads: five matches with all that comes beside them, as compact JSON, once
with the parameters of each tool (mode ``stable``, and over MCP) and once without (``proxy``).
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Annotated

import typer

from benchmarks.data import Benchmark, read
from benchmarks.ranking import opened
from benchmarks.tables import print_figures
from gateway.discovery.call_handler import parameters_of
from gateway.discovery.render_results import render
from gateway.runtime.text import estimate_tokens
from gateway.types import ANYONE, Strategy

app = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    data: Annotated[Path, typer.Option(help="A folder in the common format.")],
    strategy: Annotated[Strategy, typer.Option(help="How it ranks.")] = "auto",
    limit: Annotated[int, typer.Option(help="So many queries; 0 takes all.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
) -> None:
    """Print the estimated tokens of the answers: the mean, and half, 95 % and all of them."""
    tokens = asyncio.run(measure(read(data, limit=limit), strategy))
    figures: dict[str, object] = {"queries": len(tokens["proxy"])}
    for mode, counts in tokens.items():
        ordered = sorted(counts)
        figures[f"{mode}.mean"] = mean(ordered)
        for percent in (50, 95, 100):
            figures[f"{mode}.p{percent}"] = ordered[-(-len(ordered) * percent // 100) - 1]
    print_figures(figures, as_json=as_json)


async def measure(benchmark: Benchmark, strategy: Strategy) -> dict[str, list[int]]:
    """Return the estimated tokens of the answer to each query, by mode."""
    tokens: dict[str, list[int]] = {"proxy": [], "stable": []}
    async with opened(benchmark, strategy=strategy) as gateway:
        options = gateway.options.discovery
        schemas = partial(
            parameters_of, await gateway.snapshot(), ANYONE, max_chars=options.parameters_chars
        )
        for query in benchmark.queries:
            result = await gateway.search(str(query["query"]))
            tokens["proxy"].append(estimate_tokens(render(result, options)))
            tokens["stable"].append(estimate_tokens(render(result, options, schemas=schemas)))
    return tokens


if __name__ == "__main__":
    app()
