"""Runs systems over one catalog, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.peering import host
from benchmarks.peering.environments import Environments
from benchmarks.peering.runs import Failure, Run, Task, sample
from benchmarks.peering.systems import OURS, Peer
from benchmarks.peering.vectors import Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """How systems are run."""

    environments: Environments
    vectors: Vectors
    timeout_s: float = 3600.0
    slow_queries: int = 40
    """How many queries a slow peer gets."""

    async def run(self, peer: Peer, task: Task) -> Run | Failure:
        """Run one system."""
        if peer.slow:
            task = sample(task, min(self.slow_queries, len(task.queries)))
        version = self.environments.version(peer) if peer.package else ""
        if peer.package and not version:
            return Failure(reason="not installed: call again with --install")
        if peer.vectors and not self.vectors.model_id:
            return Failure(reason="it needs vectors: call again with --embedder local")
        python = self.environments.python(peer)
        run = await host.run(
            peer, task, python=python, vectors=self.vectors, timeout_s=self.timeout_s
        )
        return replace(run, version=version) if isinstance(run, Run) and version else run


def ours(strategy: str) -> Peer:
    """Return the gateway with one of its strategies."""
    return replace(OURS, how=f"{OURS.how}, {strategy}", options={"strategy": strategy})


def describe(peers: Sequence[Peer]) -> Iterator[str]:
    """Yield what is measured of each system."""
    for peer in peers:
        given = "; given our vectors" if peer.vectors else ""
        yield f"{peer.name}: {peer.how}{given}"
