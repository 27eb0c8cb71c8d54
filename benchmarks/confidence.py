"""Does the gateway know when nothing that it has will do?

    python -m benchmarks.confidence measure --data DIR --data DIR --json
    python -m benchmarks.confidence fit --data DIR --data DIR

* Answerable: the queries of a set against its own catalog.
* Unanswerable: the set's ``nomatch.jsonl``, and the queries of the other sets given; or the
  requests of a text file (``--unserved``), a language, a tab and a text a line.
* ``measure``: the best match's confidence should tell the two apart. Results may be flagged as
  weak; none is emptied unless the host asks.
* ``fit``: the coefficients of `gateway.search.confidence`, by a logistic regression over the best
  match of each request. Each catalog counts the same, and three of four requests are answerable.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.data import Benchmark, Row, read, rows
from benchmarks.metrics import gold_of
from benchmarks.ranking import STRATEGIES, Way, opened
from benchmarks.recalled import Recalled
from benchmarks.retrieval import one_of
from benchmarks.tables import percents, print_table
from gateway import Embedder, Gateway, LocalEmbedder
from gateway.index.snapshot import Snapshot
from gateway.options import SearchOptions
from gateway.runtime.vectors import top
from gateway.search.confidence import ANY_MODEL, COEFFICIENTS, LOCAL_MODEL, WORDS, Coefficients
from gateway.search.query import Query
from gateway.search.rank.fusion import fuse
from gateway.search.rank.parameters import MAX_LOG_ODDS
from gateway.search.results import Ranking
from gateway.search.retrieve import score_lexical
from gateway.search.signals.every import all_signals
from gateway.search.signals.signal import Pool
from gateway.types import Filters

NO_MATCH = "nomatch"
ANSWERABLE_SHARE = 0.75
"""Share of the requests that are answerable, as confidence assumes."""
_HEAD = 5
"""Matches of which the best stands for the result."""
_RIDGE = 1.0
_ROUNDS = 6
"""How often the best match is chosen anew, by the coefficients of the round before."""
_STEPS = 30
_FLAT = 1e-9
"""A feature that varies less is the same in all samples."""
Numbers = NDArray[np.float64]

app = typer.Typer(no_args_is_help=True, add_completion=False)
DATA = Annotated[list[Path], typer.Option(help="A folder; may be repeated.")]
RELATED = Annotated[
    list[str] | None, typer.Option(help="Sets not to be paired, with commas; repeatable.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The unanswerable requests of one catalog, or of all, held against the answerable ones."""

    catalog: str
    answerable: int
    unanswerable: int
    auroc: float
    """The chance that an answerable request has more confidence than an unanswerable one."""
    flagged: float
    """Share of the unanswerable that are flagged as weak."""
    flagged_answerable: float


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return the chance that a positive is above a negative; equals count half.

    The area under the ROC curve is this chance: Hanley and McNeil (1982). NaN without both.
    """
    if not positive or not negative:
        return float("nan")
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, side="left")
    up_to = np.searchsorted(ordered, positive, side="right")
    return float((below + up_to).mean() / 2 / len(ordered))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A catalog with requests that it serves, and others."""

    benchmark: Benchmark
    answerable: Sequence[Row]
    unanswerable: Sequence[Row]


def pairings(
    folders: Sequence[Path], *, limit: int, others: int, related: Sequence[frozenset[str]] = ()
) -> Iterator[Pairing]:
    """Yield each set with its own requests, and those of the sets that it does not serve.

    Args:
        folders: Sets in the common format.
        limit: A fixed sample of so many queries a set; 0 takes all.
        others: How many of each other set are asked; 0 takes all of the sample.
        related: Sets of which one may serve the queries of another: they are not paired.
    """
    sets = [(folder, read(folder, limit=limit)) for folder in folders]
    for folder, benchmark in sets:
        unanswerable: list[Row] = []
        path = folder / f"{NO_MATCH}.jsonl"
        if path.is_file():
            unanswerable += rows(path)
        for _, other in sets:
            names = {benchmark.name, other.name}
            if len(names) > 1 and not any(names <= group for group in related):
                unanswerable += other.queries[: others or None]
        own = [query for query in benchmark.queries if gold_of(query)]
        yield Pairing(benchmark=benchmark, answerable=own, unanswerable=unanswerable)


# -- measure ---------------------------------------------------------------------------------------


async def evaluate(
    pairs: Sequence[Pairing], *, strategy: Way, embedder: Embedder | None
) -> list[Judged]:
    """Ask each catalog its requests and the others; the last row is of all together."""
    results: list[Judged] = []
    positive: list[float] = []
    negative: list[float] = []
    for pair in pairs:
        name = pair.benchmark.name
        async with opened(
            pair.benchmark, strategy=strategy, embedder=embedder or "local"
        ) as gateway:
            own = [await _confidence(gateway, query) for query in pair.answerable]
            other = [await _confidence(gateway, query) for query in pair.unanswerable]
        results.append(judge(name, own, other))
        positive += own
        negative += other
    return [*results, judge("all", positive, negative)]


async def _confidence(gateway: Gateway, query: Row) -> float:
    result = await gateway.search(str(query["query"]))
    return max((match.confidence for match in result.matches), default=0.0)


def judge(catalog: str, answerable: Sequence[float], unanswerable: Sequence[float]) -> Judged:
    """Hold the confidence of answerable requests against that of unanswerable ones."""
    threshold = SearchOptions().min_confidence
    return Judged(
        catalog=catalog,
        answerable=len(answerable),
        unanswerable=len(unanswerable),
        auroc=auroc(answerable, unanswerable),
        flagged=float(np.mean([each < threshold for each in unanswerable])),
        flagged_answerable=float(np.mean([each < threshold for each in answerable])),
    )


# -- fit -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One request: the features of its first matches by each row of the table."""

    features: Mapping[str, Numbers]
    """By row: a column of ones and `Features.values`, shape (matches, 5)."""
    answerable: bool
    weight: float


async def collect(pairs: Sequence[Pairing], embedder: Embedder) -> list[Sample]:
    """Rank every request of every pairing, and take the features of its first matches."""
    samples: list[Sample] = []
    for pair in pairs:
        async with opened(pair.benchmark, strategy="auto", embedder=embedder) as gateway:
            snapshot = await gateway.snapshot(vectors=True)
            for answerable in (True, False):
                queries = pair.answerable if answerable else pair.unanswerable
                share = ANSWERABLE_SHARE if answerable else 1 - ANSWERABLE_SHARE
                for query in queries:
                    ranking = await _rank(snapshot, str(query["query"]), embedder)
                    samples.append(
                        Sample(
                            features={key: _features(ranking, key) for key in COEFFICIENTS},
                            answerable=answerable,
                            weight=share / len(queries),
                        )
                    )
    return samples


async def _rank(snapshot: Snapshot, text: str, embedder: Embedder) -> Ranking:
    query, options, mask = Query(text=text).split(), SearchOptions(), snapshot.mask(Filters())
    texts = query.texts_to_embed
    vectors = (await embedder.embed(texts, role="query")).vectors
    query = query.with_vectors(dict(zip(texts, vectors, strict=True)))
    if snapshot.vectors is None:
        raise typer.BadParameter("the catalog has no vectors")
    candidates = snapshot.vectors.search(query.vectors, mask=mask, count=options.pool(_HEAD))
    lexical = score_lexical(snapshot.lexical, query)
    pool = Pool(snapshot=snapshot, query=query, candidates=candidates, mask=mask, words=lexical)
    ranked, _ = fuse(pool, all_signals(options))
    return Ranking(
        query=query,
        ranked=ranked,
        lexical=snapshot.lexical,
        reading=lexical,
        eligible=int(mask.sum()),
        candidates=candidates,
    )


def _features(ranking: Ranking, key: str) -> Numbers:
    """Return the features of the first matches by one row of the table."""
    positions = ranking.ranked.positions[:_HEAD].tolist()
    cosines: Sequence[float | None] = [None] * _HEAD
    if key == WORDS:
        scores = ranking.lexical.match(ranking.reading).scores
        positions = [at for at in top(scores, _HEAD).tolist() if scores[at] > 0]
    elif ranking.candidates:
        cosines = ranking.candidates.cosines_at(positions)
    held = ranking.lexical.document_matches(ranking.reading, positions)
    named = replace(ranking, model=LOCAL_MODEL if key == LOCAL_MODEL else "")
    found = zip(cosines, held.scores, held.words, strict=False)
    rows = [(1.0, *named.features(*match).values()) for match in found]
    return np.array(rows, dtype=np.float64).reshape(-1, 5)


def fit_row(samples: Sequence[Sample], key: str) -> Coefficients:
    """Fit one row of the table; what would count against a match does not count."""
    samples = [sample for sample in samples if len(sample.features[key])]
    features = [sample.features[key] for sample in samples]
    used = np.array([key != WORDS, True, True, True])
    solution = _solve(samples, features, used)
    if (solution[1:4] < 0).any():
        used[:3] &= solution[1:4] > 0
        solution = _solve(samples, features, used)
    bias, similarity, coverage, strength, count = (round(float(each), 3) for each in solution)
    return Coefficients(
        bias=bias, similarity=similarity, coverage=coverage, strength=strength, count=count
    )


def _solve(samples: Sequence[Sample], features: Sequence[Numbers], used: Numbers) -> Numbers:
    """Fit a ridge logistic regression by Newton's method, over the features that are *used*."""
    answers = np.array([sample.answerable for sample in samples], dtype=float)
    weights = np.array([sample.weight for sample in samples])
    weights *= len(samples) / weights.sum()
    pooled = np.concatenate(features)
    means, scales = pooled.mean(axis=0), pooled.std(axis=0)
    means[0], scales[0] = 0.0, 1.0
    scales[scales < _FLAT] = 1.0
    kept = np.append(1.0, used)
    ridge = _RIDGE * np.diag([0.0, 1.0, 1.0, 1.0, 1.0])
    solution = np.array([0.0, 1.0, 1.0, 1.0, 0.0])
    for _ in range(_ROUNDS):
        best = np.array([_scaled(each, means, scales, kept, solution) for each in features])
        solution = np.zeros(5)
        for _ in range(_STEPS):
            odds = 1 / (1 + np.exp(-np.clip(best @ solution, -MAX_LOG_ODDS, MAX_LOG_ODDS)))
            slope = best.T @ (weights * (answers - odds)) - ridge @ solution
            curve = (best * (weights * odds * (1 - odds))[:, None]).T @ best + ridge
            step = np.linalg.solve(curve + 1e-6 * np.eye(5), slope)
            solution = solution + step / max(1.0, float(np.abs(step).max()))
    found: Numbers = solution * kept / scales
    found[0] -= float(found[1:] @ means[1:])
    return found


def _scaled(
    each: Numbers, means: Numbers, scales: Numbers, kept: Numbers, solution: Numbers
) -> Numbers:
    """Return the features of the best of a request's matches, in deviations."""
    scaled = (each - means) / scales * kept
    best: Numbers = scaled[np.argmax(scaled @ solution)]
    return best


def read_unserved(path: Path) -> list[Row]:
    """Read the requests of a text file; ``#`` begins a comment."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    return [{"query": line.partition("\t")[2]} for line in lines]


def _groups(related: Sequence[str] | None) -> list[frozenset[str]]:
    return [frozenset(each.split(",")) for each in related or []]


@app.command()
def fit(
    *,
    data: DATA,
    limit_queries: Annotated[int, typer.Option(help="A fixed sample a set; 0: all.")] = 200,
    others: Annotated[int, typer.Option(help="Requests of each other set.")] = 60,
    related: RELATED = None,
) -> None:
    """Print the table of coefficients."""
    groups = _groups(related)
    pairs = list(pairings(data, limit=limit_queries, others=others, related=groups))
    samples = asyncio.run(collect(pairs, Recalled(LocalEmbedder())))
    for key in (LOCAL_MODEL, ANY_MODEL, WORDS):
        print(f"{key}: {fit_row(samples, key)}")


@app.command()
def measure(
    *,
    data: DATA,
    strategy: Annotated[str, typer.Option(help="auto, graph or embeddings.")] = "auto",
    limit_queries: Annotated[int, typer.Option(help="A fixed sample a set; 0: all.")] = 200,
    others: Annotated[int, typer.Option(help="Requests of each other set; 0: all.")] = 60,
    related: RELATED = None,
    unserved: Annotated[
        Path | None, typer.Option(help="Unanswerable requests, instead of all others.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
) -> None:
    """Tell answerable requests from unanswerable ones."""
    way: Way = one_of(strategy, STRATEGIES)
    pairs = list(pairings(data, limit=limit_queries, others=others, related=_groups(related)))
    if unserved is not None:
        pairs = [replace(pair, unanswerable=read_unserved(unserved)) for pair in pairs]
    if not any(pair.unanswerable for pair in pairs):
        raise typer.BadParameter("nothing is unanswerable: give a second folder")
    embedder = None if way == "graph" else Recalled(LocalEmbedder())
    found = asyncio.run(evaluate(pairs, strategy=way, embedder=embedder))
    if as_json:
        sets = [asdict(each) for each in found]
        print(json.dumps({"strategy": way, "sets": sets[:-1], "overall": sets[-1]}, indent=2))
        return
    names = ("auroc", "flagged", "flagged_answerable")
    lines = [
        {
            "catalog": row.catalog,
            "requests": f"{row.answerable} / {row.unanswerable}",
            **percents(asdict(row), names),
        }
        for row in found
    ]
    print_table("Confidence, in percent", lines)


if __name__ == "__main__":
    app()
