"""Does the gateway know when nothing that it has will do?

    python -m benchmarks.confidence --data DIR --data DIR --json

* Answerable: the queries of a set against its own catalog.
* Unanswerable: the set's ``nomatch.jsonl``, and the queries of the other sets given.
* The best match's confidence should tell the two apart, and the default threshold should empty
  the results of the second kind. An empty result counts with its nearest tool's confidence.
* ``--embedder first`` takes the first of the local encoders alone and does not say what its
  cosines mean: how well the numbers carry over to a model that nobody tuned anything for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, get_args

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.data import Benchmark, Row, read, rows
from benchmarks.metrics import gold_of
from benchmarks.ranking import STRATEGIES, Way, opened
from benchmarks.retrieval import one_of
from gateway import Embedder, Gateway
from gateway.embed.local.embedder import LocalEmbedder
from gateway.embed.local.encoders import USE
from gateway.embed.protocol import Embedded, EmbedderInfo, Role

NO_MATCH = "nomatch"
GOALS: Mapping[str, float] = {"auroc": 0.90, "emptied": 0.80, "lost": 0.03}
"""At least, at least, and at most."""
_WIDE = 140
"""Columns of a table that goes into a file."""

EncoderModel = Literal["local", "first"]
MODELS: tuple[EncoderModel, ...] = get_args(EncoderModel)

app = typer.Typer(add_completion=False)


class Unknown:
    """A model under another name, which says nothing of its scale."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

    @property
    def info(self) -> EmbedderInfo:
        """The model's, without its scale and what it reads."""
        told = self._inner.info
        return replace(told, model_id=f"{told.model_id}-unknown")

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Embed *texts* by the model."""
        return await self._inner.embed(texts, role=role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a result says of itself."""

    confidence: float
    """Of the best match, or of the nearest tool of an empty result; 0 if there is none."""
    emptied: bool
    flagged: bool
    """Emptied, or marked as not likely to be what was asked for."""
    right: bool = False
    """Whether the best match, or the nearest tool of an empty result, is relevant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Unanswerable requests of one kind, or of all, held against the answerable ones."""

    catalog: str
    asked: str
    """Where the unanswerable requests come from."""
    answerable: int
    unanswerable: int
    auroc: float
    """The chance that an answerable request has more confidence than an unanswerable one."""
    emptied: float
    """Share of the unanswerable that get no match."""
    flagged: float
    lost: float
    """Share of the answerable that get no match."""
    served_lost: float
    """Share of the answerable that get no match though the nearest tool is relevant."""
    doubted: float
    """Share of the answerable that are flagged."""
    reachable: float
    """Share of the unanswerable that a threshold would empty that loses 3 % of the answerable."""
    threshold: float
    """That threshold."""

    @property
    def met(self) -> bool:
        """Whether all three goals are reached."""
        least = self.auroc >= GOALS["auroc"] and self.emptied >= GOALS["emptied"]
        return least and self.lost <= GOALS["lost"]


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Give the chance that a positive is above a negative; equals count half.

    The area under the ROC curve is this chance: Hanley and McNeil (1982). NaN without both.
    """
    if not positive or not negative:
        return float("nan")
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, side="left")
    upto = np.searchsorted(ordered, positive, side="right")
    return float((below + upto).mean() / 2 / len(ordered))


def judge(
    catalog: str, asked: str, answerable: Sequence[Told], unanswerable: Sequence[Told]
) -> Judged:
    """Hold requests that the catalog serves against those that it does not; both not empty."""
    good = [each.confidence for each in answerable]
    bad = [each.confidence for each in unanswerable]
    threshold = float(np.quantile(good, GOALS["lost"], method="lower"))
    return Judged(
        catalog=catalog,
        asked=asked,
        answerable=len(good),
        unanswerable=len(bad),
        auroc=auroc(good, bad),
        emptied=_share(each.emptied for each in unanswerable),
        flagged=_share(each.flagged for each in unanswerable),
        lost=_share(each.emptied for each in answerable),
        served_lost=_share(each.emptied and each.right for each in answerable),
        doubted=_share(each.flagged for each in answerable),
        reachable=_share(each < threshold for each in bad),
        threshold=threshold,
    )


def _share(values: Iterable[bool]) -> float:
    return float(np.mean(list(values)))


async def measure(
    folders: Sequence[Path],
    *,
    strategy: Way,
    limit: int = 0,
    related: Sequence[frozenset[str]] = (),
    embedder: Embedder | Literal["local"] = "local",
) -> list[Judged]:
    """Ask every catalog all requests; judge every pair of a catalog and unanswerable requests.

    Args:
        folders: Sets in the common format.
        strategy: How the gateway searches.
        limit: A fixed sample of so many queries a set; 0 takes all.
        related: Sets of which one may serve the queries of another: they are not paired.
        embedder: Whose vectors are compared, where the strategy takes any.

    Returns:
        One row a pair, and last, if there are any, one of all together.
    """
    sets = [(folder, read(folder, limit=limit)) for folder in folders]
    found: list[Judged] = []
    good: list[Told] = []
    bad: list[Told] = []
    for folder, benchmark in sets:
        others = [one for _, one in sets if not _kin(benchmark.name, one.name, related)]
        unanswerable = dict(_unanswerable(folder, others, limit))
        if not unanswerable:
            continue
        async with opened(benchmark, strategy=strategy, embedder=embedder) as gateway:
            served = [query for query in benchmark.queries if gold_of(query)]
            own = await _told(gateway, served, benchmark.name, benchmark)
            good += own
            for name, queries in unanswerable.items():
                answers = await _told(gateway, queries, f"{benchmark.name}: {name}")
                bad += answers
                found.append(judge(benchmark.name, name, own, answers))
    return [*found, judge("all", "all", good, bad)] if found else []


def _kin(one: str, other: str, related: Sequence[frozenset[str]]) -> bool:
    return one == other or any({one, other} <= group for group in related)


def _unanswerable(
    folder: Path, others: Sequence[Benchmark], limit: int
) -> Iterator[tuple[str, Sequence[Row]]]:
    path = folder / f"{NO_MATCH}.jsonl"
    if path.is_file():
        yield NO_MATCH, list(rows(path))[: limit or None]
    for other in others:
        yield other.name, other.queries


async def _told(
    gateway: Gateway, queries: Sequence[Row], name: str, own: Benchmark | None = None
) -> list[Told]:
    console = Console(stderr=True)
    progress = track(queries, description=name, console=console, transient=True)
    return [
        await told(gateway, str(query["query"]), right=_right(query, own)) for query in progress
    ]


def _right(query: Row, own: Benchmark | None) -> frozenset[str]:
    gold = frozenset[str]().union(*gold_of(query)) if own else frozenset[str]()
    return frozenset(own.entity_ids[tool] for tool in gold & own.entity_ids.keys()) if own else gold


async def told(gateway: Gateway, text: str, *, right: frozenset[str] = frozenset()) -> Told:
    """Ask one request, for which the entities *right* are relevant."""
    result = await gateway.search(text)
    codes = {note.code for note in result.diagnostics}
    found = result.matches or ((result.nearest,) if result.nearest else ())
    return Told(
        confidence=max((match.confidence for match in found), default=0.0),
        emptied=not result.matches,
        flagged=not result.matches or bool(codes & {"no_match", "low_confidence_results"}),
        right=bool(found) and found[0].id in right,
    )


@app.command()
def main(
    *,
    data: Annotated[list[Path], typer.Option(help="A folder; may be repeated.")],
    strategy: Annotated[str, typer.Option(help="auto, graph or embeddings.")] = "auto",
    limit_queries: Annotated[int, typer.Option(help="A fixed sample a set; 0: all.")] = 200,
    related: Annotated[
        list[str] | None, typer.Option(help="Sets not to be paired, with commas; repeatable.")
    ] = None,
    embedder: Annotated[str, typer.Option(help="local, or first: one encoder, unknown.")] = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
) -> None:
    """Tell answerable requests from unanswerable ones."""
    groups = [frozenset(each.split(",")) for each in related or []]
    way: Way = one_of(strategy, STRATEGIES)
    model: Embedder | Literal["local"] = "local"
    if one_of(embedder, MODELS) == "first":
        model = Unknown(LocalEmbedder((USE,)))
    found = asyncio.run(
        measure(data, strategy=way, limit=limit_queries, related=groups, embedder=model)
    )
    if not found:
        raise typer.BadParameter("nothing is unanswerable: give a second folder")
    if as_json:
        pairs = [{**asdict(each), "met": each.met} for each in found]
        told = {
            "strategy": way,
            "embedder": embedder,
            "goals": GOALS,
            "pairs": pairs[:-1],
            "overall": pairs[-1],
        }
        print(json.dumps(told, indent=2))
        return
    console = Console()
    (console if console.is_terminal else Console(width=_WIDE)).print(_table(found))


def _table(found: Sequence[Judged]) -> Table:
    names = ("auroc", "emptied", "flagged", "lost", "served_lost", "doubted", "reachable")
    table = Table("catalog", "requests of", title="confidence")
    for name in ("requests", *names, "threshold"):
        table.add_column(name, justify="right")
    table.add_column("")
    for each in found:
        table.add_row(
            each.catalog,
            each.asked,
            f"{each.answerable} / {each.unanswerable}",
            *(f"{100 * getattr(each, name):.1f}" for name in names),
            f"{each.threshold:.2f}",
            "met" if each.met else "MISSED",
        )
    return table


if __name__ == "__main__":
    app()
