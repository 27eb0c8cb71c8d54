"""All systems over one catalog, one after the other, in one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.peering import host
from benchmarks.peering.environments import Environments
from benchmarks.peering.judged import SYNTHETIC
from benchmarks.peering.runs import Failure, Kept, Run, Task, sample, unique
from benchmarks.peering.table import OURS, Peer
from benchmarks.peering.vectors import Vectors
from benchmarks.synthetic import queries, servers


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """How systems are run."""

    environments: Environments
    kept: Kept
    vectors: Vectors
    fresh: bool = False
    """Run peers again whose run was kept. Ours always runs."""
    timeout_s: float = 3600.0
    slow_queries: int = 40
    """How many queries a slow peer is asked."""

    async def run(self, peer: Peer, task: Task) -> Run | Failure:
        """Run one system, or give the run that was kept."""
        if peer.slow:
            task = sample(task, min(self.slow_queries, len(task.queries)))
        version = self.environments.version(peer) if peer.package else ""
        if peer.package and not version:
            return Failure(reason="not installed: call again with --install")
        if peer.vectors and not self.vectors.model_id:
            return Failure(reason="it needs vectors: call again with --embedder local")
        model_id = self.vectors.model_id
        kept = self.kept.get(peer, task, version=version, model_id=model_id)
        if kept and peer.package and not self.fresh:
            return kept
        python = self.environments.python(peer)
        run = await host.run(
            peer, task, python=python, vectors=self.vectors, timeout_s=self.timeout_s
        )
        if isinstance(run, Run) and peer.package:
            run = replace(run, version=version)
            self.kept.put(peer, task, run, model_id=model_id)
        return run


def ours(strategy: str, *, hashing: int = 0) -> Peer:
    """Give ours with a strategy.

    Args:
        strategy: One of the gateway's.
        hashing: The length of vectors that need no model, where meaning plays no part; 0 takes
            the local model.
    """
    return replace(
        OURS, how=f"{OURS.how}, {strategy}", options={"strategy": strategy, "hashing": hashing}
    )


async def invented(tools: int, asked: int) -> Task:
    """Make a catalog that nobody wrote, the same at every run, and questions to it."""
    listed = [
        (source.server, tool)
        for source in servers(tools)
        for tool in (await source.list_tools()).tools
    ]
    names = unique([tool.name for _, tool in listed])
    return Task(
        name=f"{SYNTHETIC} {tools}",
        tools=tuple(
            {
                "name": name,
                "plain": tool.name,
                "server": server,
                "title": tool.title,
                "description": tool.description,
                "input_schema": dict(tool.input_schema),
                "output_schema": None,
            }
            for name, (server, tool) in zip(names, listed, strict=True)
        ),
        ids={name: name for name in names},
        queries=tuple({"id": f"q{n}", "query": text} for n, text in enumerate(queries(asked))),
    )


def told(peers: Sequence[Peer]) -> Iterator[str]:
    """Say what of each system is measured."""
    for peer in peers:
        given = "; given our vectors" if peer.vectors else ""
        yield f"{peer.name}: {peer.how}{given}"
