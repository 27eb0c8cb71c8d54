"""Does the ranking of well-known servers know the right one, and when none is right?

    python -m benchmarks.provisioning --strategy graph --json

* ``benchmarks/intents.txt``: requests that we wrote, each with the entries of the bundled list
  that serve it, or with none.
* A server is *sure* from `ProvisionOptions.min_confidence` on. That bar was chosen on the requests
  whose SHA-256 is even; the others are told apart.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from gateway import Gateway
from gateway.provision.candidates import ServerCandidate, bundled_servers, rank_servers
from gateway.provision.options import ProvisionOptions
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
    def even(self) -> bool:
        """Whether it is of the half on which the bar was chosen."""
        return int(hashlib.sha256(self.text.encode()).hexdigest(), 16) % 2 == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How one half came out, as shares."""

    served: int
    unserved: int
    first: float
    """The first server is a right one."""
    listed: float
    """One of the first five is."""
    right_and_sure: float
    wrong_and_sure: float
    sure_of_nothing: float
    """Of the requests that nothing serves: a server was sure all the same."""


def intents(path: Path = INTENTS) -> Iterator[Intent]:
    """Read the requests of a file: ``request|entry,entry`` a line, ``#`` begins a comment."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            text, _, names = line.partition("|")
            yield Intent(text=text, servers=frozenset(filter(None, names.split(","))))


def judged(found: Sequence[tuple[Intent, Sequence[ServerCandidate]]], bar: float) -> Figures:
    """Count."""
    served = [(intent, ranked) for intent, ranked in found if intent.servers]
    unserved = [ranked for intent, ranked in found if not intent.servers]
    right = [bool(ranked) and ranked[0].entry.name in intent.servers for intent, ranked in served]
    sure = [bool(ranked) and ranked[0].confidence >= bar for _, ranked in served]
    return Figures(
        served=len(served),
        unserved=len(unserved),
        first=_share(right),
        listed=_share(
            [any(each.entry.name in intent.servers for each in ranked) for intent, ranked in served]
        ),
        right_and_sure=_share([a and b for a, b in zip(right, sure, strict=True)]),
        wrong_and_sure=_share([b and not a for a, b in zip(right, sure, strict=True)]),
        sure_of_nothing=_share([bool(each) and each[0].confidence >= bar for each in unserved]),
    )


def _share(hits: Sequence[bool]) -> float:
    return round(sum(hits) / len(hits), 3) if hits else 0.0


async def measured(gateway: Gateway, asked: Sequence[Intent], bar: float) -> dict[str, Figures]:
    """Rank the bundled list for each of *asked*, and judge the halves."""
    found = [
        (
            intent,
            await rank_servers(
                gateway, bundled_servers(), intent.text, limit=_LISTED, max_ranked=500
            ),
        )
        for intent in asked
    ]
    return {
        name: judged([pair for pair in found if pair[0].even == even], bar)
        for name, even in (("even", True), ("odd", False))
    }


@app.command()
def run(
    *,
    strategy: Annotated[Strategy, typer.Option(help="auto needs the embedded model.")] = "auto",
    bar: Annotated[float, typer.Option(help="From which confidence on a server is sure.")] = (
        ProvisionOptions().min_confidence
    ),
    limit: Annotated[int, typer.Option(help="Requests at most; 0 takes all.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure."""
    gateway = Gateway(strategy=strategy, embedder="local" if strategy != "graph" else None)
    try:
        found = asyncio.run(measured(gateway, tuple(intents())[: limit or None], bar))
    finally:
        gateway.close()
    told = {name: asdict(figures) for name, figures in found.items()}
    if as_json:
        typer.echo(json.dumps({"strategy": strategy, "bar": bar, **told}, indent=2))
        return
    for name, figures in told.items():
        typer.echo(f"{name}: {', '.join(f'{key} {value}' for key, value in figures.items())}")


if __name__ == "__main__":
    app()
