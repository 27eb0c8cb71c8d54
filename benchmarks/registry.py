"""The catalog of every kind: how well each ranking policy finds what was asked for.

    python -m benchmarks.registry --data DIR --extra DIR --json

* DIR holds tools in the common format; agents, skills and most requests are our own, see
  ``registrydata``. Without a folder what it would answer is left out.
* One flat list over all kinds. `FIGURES` of `hybrid` stand at the top, the mean over the slices.
* ``own``: the same requests, where only the slice's own kind may be found.
* The other benchmarks of the catalog are called as well: `OTHERS`.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args

import typer
from rich.console import Console
from rich.progress import track

from benchmarks import registryfilters, registryhttp, usage
from benchmarks.data import Row, sources
from benchmarks.graded import FIGURES, interval, score
from benchmarks.mixed import KINDS, NAMESPACE, SLICES, Mixed, Request, read_mixed
from benchmarks.recalled import Recalled
from benchmarks.retrieval import one_of
from benchmarks.tables import percents, print_table
from gateway import Embedder, Gateway, Options
from gateway.catalog.entries import Entry
from gateway.plugins.local.embedder import LocalEmbedder
from gateway.plugins.manifests.agent_cards import read_card
from gateway.plugins.manifests.skills import read_skill
from gateway.plugins.quality.metrics import DEPTH, Figures, mean
from gateway.types import Filters, RankingPolicy, Strategy, ToolDefinition

FLAT = frozenset({"server", "virtual_server", "tool", "agent", "skill"})
"""The kinds of the flat list."""
POLICIES: tuple[RankingPolicy, ...] = get_args(RankingPolicy)
WEAK = frozenset({"low_confidence_results", "no_match"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to ask."""

    ranking: RankingPolicy
    spread: bool = False

    @property
    def name(self) -> str:
        """``hybrid``, or ``hybrid+spread``."""
        return f"{self.ranking}+spread" if self.spread else self.ranking


WAYS = tuple(Way(ranking=each, spread=spread) for each in POLICIES for spread in (False, True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was said to one request."""

    ids: tuple[str, ...]
    """Best first; empty if the gateway says that nothing serves the request."""
    sure: bool
    """There are matches, and no notice that they are weak."""


CHIEF = Way(ranking="hybrid")
OTHERS = ("filters", "http", "usage")
_OWN = {kind: frozenset((kind,)) for kind in set(KINDS.values())}
Json: TypeAlias = dict[str, Any]
Pair: TypeAlias = tuple[Request, Found]

app = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    data: Annotated[Path | None, typer.Option(help="Tools with requests of their own.")] = None,
    extra: Annotated[list[Path] | None, typer.Option(help="More tools; may be repeated.")] = None,
    embedder: Annotated[str, typer.Option(help="local, or none: what needs no model.")] = "local",
    sequences: Annotated[list[Path] | None, typer.Option(help="Tasks for usage.")] = None,
    skip: Annotated[str, typer.Option(help="Of filters,http,usage what is left out.")] = "",
    only: Annotated[str, typer.Option(help="Ways, as hybrid,hybrid+spread; empty is all.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
) -> None:
    """Measure every policy over every slice of the mixed catalog."""
    model = LocalEmbedder() if one_of(embedder, ("local", "none")) == "local" else None
    wanted = only.split(",") if only else [way.name for way in WAYS]
    names = [way.name for way in WAYS]
    ways = [way for way in WAYS if way.name in [one_of(each, names) for each in wanted]]
    left = [one_of(each, OTHERS) for each in skip.split(",") if each]
    results = asyncio.run(measure(read_mixed(data, extra=extra or ()), ways, embedder=model))
    results |= call_others([name for name in OTHERS if name not in left], sequences or ())
    if as_json:
        print(json.dumps(results, indent=2, ensure_ascii=False))
        return
    print_table("NDCG@10, in percent", lines(results))


def call_others(names: Iterable[str], folders: Sequence[Path]) -> Json:
    """Call the other benchmarks of the catalog that are in *names*.

    Args:
        names: Of `OTHERS`.
        folders: Where tasks with a sequence are; without any *usage* is left out.

    Returns:
        What *http* found at the top, the others by their names.
    """
    figures: Json = {}
    if "http" in names:
        figures |= registryhttp.measure()
    if "filters" in names:
        figures["filters"] = registryfilters.measure()
    if "usage" in names and folders:
        figures["usage"] = usage.measure(folders)
    return figures


@asynccontextmanager
async def opened(mixed: Mixed, *, embedder: Embedder | None) -> AsyncIterator[Gateway]:
    """Open a gateway over *mixed*, its index built.

    Args:
        mixed: The catalog.
        embedder: Whose vectors are compared; without one words and graph rank.
    """
    with tempfile.TemporaryDirectory() as folder:
        options = Options(catalog_store_path=Path(folder) / "catalog.sqlite3")
        strategy: Strategy = "graph" if embedder is None else "auto"
        async with Gateway(strategy=strategy, embedder=embedder, options=options) as gateway:
            for source in sources(mixed.benchmark):
                itself = ToolDefinition(
                    name=source.server,
                    description=mixed.servers.get(source.server, ""),
                    kind="server",
                )
                gateway.add_source(source, itself=itself)
            await gateway.catalog.put(*map(_agent, mixed.agents), *map(_skill, mixed.skills))
            await gateway.report()
            yield gateway


async def ask(gateway: Gateway, query: str, way: Way, *, kinds: frozenset[str] = FLAT) -> Found:
    """Ask for the best ten of *kinds*."""
    result = await gateway.search(
        query, limit=DEPTH, filters=Filters(kinds=kinds), ranking=way.ranking, diversify=way.spread
    )
    weak = any(note.code in WEAK for note in result.diagnostics)
    return Found(
        ids=tuple(match.id for match in result.matches), sure=bool(result.matches) and not weak
    )


def _agent(card: Row) -> Entry:
    return read_card(card, where="agents.jsonl", namespace=NAMESPACE)


def _skill(skill: Row) -> Entry:
    fields = {key: skill[key] for key in ("name", "description", "tags") if key in skill}
    text = f"---\n{json.dumps(fields)}\n---\n{skill.get('body', '')}"
    return read_skill(text, where="skills.jsonl", namespace=NAMESPACE)


async def measure(mixed: Mixed, ways: Sequence[Way], *, embedder: Embedder | None) -> Json:
    """Ask everything in each way, and judge it.

    Returns:
        JSON values: the chief figures at the top, ``policies`` by the name of the way.
    """
    recalled = Recalled(embedder) if embedder else None
    async with opened(mixed, embedder=recalled) as gateway:
        found = {way.name: await _answers(gateway, mixed.requests, way) for way in ways}
        own = [
            (each, await ask(gateway, each.query, CHIEF, kinds=_OWN[KINDS[each.slice]]))
            for each in mixed.requests
            if each.slice in KINDS
        ]
        servers = await gateway.catalog.list(Filters(kinds=frozenset({"server"})), limit=1000)
    policies = {name: judged(pairs) for name, pairs in found.items()}
    chief = policies.get(CHIEF.name, next(iter(policies.values())))
    return {
        **{name: chief[name] for name in FIGURES},
        "interval": chief["interval"],
        "catalog": {
            "tools": len(mixed.benchmark.tools),
            "servers": len(servers.entities),
            "agents": len(mixed.agents),
            "skills": len(mixed.skills),
            "requests": len(mixed.requests),
        },
        "policies": policies,
        "own": judged(own)["slices"],
    }


async def _answers(gateway: Gateway, requests: Iterable[Request], way: Way) -> list[Pair]:
    progress = track(
        list(requests), description=way.name, console=Console(stderr=True), transient=True
    )
    return [(each, await ask(gateway, each.query, way)) for each in progress]


def judged(pairs: Sequence[Pair]) -> Json:
    """Judge what one way found.

    Returns:
        JSON values: the means over the slices and their interval, ``requests`` the means over the
        requests, ``slices``, ``languages``, ``halves`` by the hash of the id, and of ``none`` how
        many were accepted falsely; ``refused`` is the share of answerable ones without a match.
    """
    scored: defaultdict[str, list[Figures]] = defaultdict(list)
    languages: defaultdict[str, list[Figures]] = defaultdict(list)
    halves: defaultdict[str, defaultdict[str, list[Figures]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for request, found in pairs:
        if request.gold:
            figures = score(found.ids, request.gold)
            scored[request.slice].append(figures)
            languages["en" if request.lang == "en" else "other"].append(figures)
            halves[half(request.id)][request.slice].append(figures)
    slices = {name: _slice(scored[name]) for name in SLICES if name in scored}
    every = [figures for rows in scored.values() for figures in rows]
    return {
        **_overall(scored),
        "interval": list(interval([_column(rows) for rows in scored.values()])),
        "requests": mean(every),
        "slices": slices,
        "languages": {name: _slice(rows) for name, rows in sorted(languages.items())},
        "halves": {name: _overall(rows) for name, rows in sorted(halves.items())},
        "none": _none([found for request, found in pairs if not request.gold]),
        "refused": _share([not found.ids for request, found in pairs if request.gold]),
    }


def half(key: str) -> str:
    """Say in which half a request is: constants are chosen on the even one."""
    return "odd" if int(sha256(key.encode()).hexdigest(), 16) % 2 else "even"


def _overall(scored: Mapping[str, Sequence[Figures]]) -> Figures:
    return mean([mean(rows) for rows in scored.values()])


def _slice(rows: Sequence[Figures]) -> Json:
    return {**mean(rows), "interval": list(interval([_column(rows)])), "n": len(rows)}


def _column(rows: Sequence[Figures]) -> list[float]:
    return [row["ndcg_at_10"] for row in rows]


def _none(found: Sequence[Found]) -> Json:
    return {
        "accepted": _share([each.sure for each in found]),
        "matched": _share([bool(each.ids) for each in found]),
        "n": len(found),
    }


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0


def lines(figures: Json) -> list[dict[str, object]]:
    """Return NDCG@10 of every way and slice, and its other figures, as percentages."""
    found = []
    for name, policy in figures["policies"].items():
        slices = {each: policy["slices"].get(each, {}).get("ndcg_at_10") for each in SLICES}
        shares = {
            "all": policy["ndcg_at_10"],
            **slices,
            "other languages": policy["languages"].get("other", {}).get("ndcg_at_10"),
            "MRR": policy["mrr"],
            "recall@10": policy["recall_at_10"],
            "accepted": policy["none"]["accepted"],
            "refused": policy["refused"],
        }
        found.append({"policy": name, **percents(shares, list(shares))})
    return found


if __name__ == "__main__":
    app()
