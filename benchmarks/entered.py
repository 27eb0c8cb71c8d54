"""A gateway over a mixed catalog, and what it ranks, through the public API."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from benchmarks.data import Row, sources
from benchmarks.metrics import DEPTH
from benchmarks.mixed import NAMESPACE, Mixed
from gateway import Embedder, Filters, Gateway, Options
from gateway.catalog.entries import Entry
from gateway.manifests.agent_cards import read_card
from gateway.manifests.skills import read_skill
from gateway.options import SearchOptions
from gateway.types import RankingPolicy, Strategy, ToolDefinition

FLAT = frozenset({"server", "virtual_server", "tool", "agent", "skill"})
"""The kinds of the flat list."""
POLICIES: tuple[RankingPolicy, ...] = get_args(RankingPolicy)
_WEAK = frozenset({"low_confidence_results", "no_match"})


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


@asynccontextmanager
async def entered(
    mixed: Mixed, *, embedder: Embedder | None, empties: bool = True
) -> AsyncIterator[Gateway]:
    """Open a gateway over *mixed*, its index built.

    Args:
        mixed: The catalog.
        embedder: Whose vectors are compared; without one words and graph rank.
        empties: Whether what nothing serves has no matches, as by default, or weak ones.
    """
    with tempfile.TemporaryDirectory() as folder:
        options = Options(
            catalog_store_path=Path(folder) / "catalog.sqlite3",
            search=SearchOptions() if empties else SearchOptions(no_match_confidence=0),
        )
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
        query,
        limit=DEPTH,
        filters=Filters(kinds=kinds),
        ranking=way.ranking,
        diversify=way.spread,
    )
    weak = any(note.code in _WEAK for note in result.diagnostics)
    return Found(
        ids=tuple(match.id for match in result.matches), sure=bool(result.matches) and not weak
    )


def _agent(card: Row) -> Entry:
    return read_card(card, where="agents.jsonl", namespace=NAMESPACE)


def _skill(skill: Row) -> Entry:
    told = {key: skill[key] for key in ("name", "description", "tags") if key in skill}
    text = f"---\n{json.dumps(told)}\n---\n{skill.get('body', '')}"
    return read_skill(text, where="skills.jsonl", namespace=NAMESPACE)
