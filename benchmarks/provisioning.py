"""Measure how well the ranking of well-known servers finds the right one, or none.

    python -m benchmarks.provisioning --strategy graph --json

* ``benchmarks/intents.txt`` holds requests written for this, each with the entries of the bundled
  list that serve it, or with none.
* A server is *sure* from `ProvisionOptions.min_confidence` on. That threshold was chosen on the
  requests whose SHA-256 is even; the others are reported apart.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.tables import print_figures
from gateway import Gateway
from gateway.options.provision import ProvisionOptions
from gateway.plugins.provision.candidates import ServerCandidate, bundled_servers, rank_servers
from gateway.types import Strategy

INTENTS = Path(__file__).with_name("intents.txt")
_LISTED = 5

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One request."""

    text: str
    servers: frozenset[str]
    """Entries that serve it; empty where none does."""

    @property
    def is_even(self) -> bool:
        """Whether it is of the half on which the threshold was chosen."""
        return int(hashlib.sha256(self.text.encode()).hexdigest(), 16) % 2 == 0


def read_intents(path: Path = INTENTS) -> Iterator[Intent]:
    """Yield the requests of a file: ``request|entry,entry`` a line, ``#`` begins a comment."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            text, _, names = line.partition("|")
            yield Intent(text=text, servers=frozenset(filter(None, names.split(","))))


def compute_figures(
    rankings: Sequence[tuple[Intent, Sequence[ServerCandidate]]], threshold: float
) -> dict[str, float]:
    """Return the counts and shares of ranked requests.

    ``first``: the first server is a right one; ``listed``: one of the first five is;
    ``right_and_sure``, ``wrong_and_sure``: the same of the first one where it is sure;
    ``sure_of_nothing``: of the requests that nothing serves, a server was sure all the same.
    """
    served = [(intent, ranking) for intent, ranking in rankings if intent.servers]
    unserved = [ranking for intent, ranking in rankings if not intent.servers]

    def is_sure(ranking: Sequence[ServerCandidate]) -> bool:
        return bool(ranking) and ranking[0].confidence >= threshold

    hits = [
        [candidate.entry.name in intent.servers for candidate in ranking]
        for intent, ranking in served
    ]
    right = [any(hit[:1]) for hit in hits]
    sure = [is_sure(ranking) for _, ranking in served]
    return {
        "served": len(served),
        "unserved": len(unserved),
        "first": _share(right),
        "listed": _share([any(hit) for hit in hits]),
        "right_and_sure": _share([a and b for a, b in zip(right, sure, strict=True)]),
        "wrong_and_sure": _share([b and not a for a, b in zip(right, sure, strict=True)]),
        "sure_of_nothing": _share([is_sure(ranking) for ranking in unserved]),
    }


def _share(hits: Sequence[bool]) -> float:
    return round(sum(hits) / len(hits), 3) if hits else 0.0


async def measure(
    gateway: Gateway, intents: Sequence[Intent], threshold: float
) -> dict[str, dict[str, float]]:
    """Rank the bundled list for each request, and return the figures of both halves."""
    entries = bundled_servers()
    rankings = [
        (intent, await rank_servers(gateway, entries, intent.text, limit=_LISTED, max_ranked=500))
        for intent in intents
    ]
    return {
        name: compute_figures([pair for pair in rankings if pair[0].is_even == even], threshold)
        for name, even in (("even", True), ("odd", False))
    }


@app.command()
def run(
    *,
    strategy: Annotated[Strategy, typer.Option(help="auto needs the embedded model.")] = "auto",
    bar: Annotated[float, typer.Option(help="The confidence from which a server is sure.")] = (
        ProvisionOptions().min_confidence
    ),
    limit: Annotated[int, typer.Option(help="Requests at most; 0 takes all.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure the ranking."""
    gateway = Gateway(strategy=strategy, embedder="local" if strategy != "graph" else None)
    try:
        halves = asyncio.run(measure(gateway, tuple(read_intents())[: limit or None], bar))
    finally:
        gateway.close()
    print_figures({"strategy": strategy, "bar": bar, **halves}, as_json=as_json)


if __name__ == "__main__":
    app()
