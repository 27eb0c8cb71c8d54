"""The index of a gateway whose catalog may be a part of a larger one; see `gateway.sharding`."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from gateway.index.entity_rows import check_part_rows
from gateway.index.indexer import Indexer
from gateway.index.snapshot import IndexBuild, Snapshot
from gateway.index.statistics import CatalogStatistics
from gateway.runtime.garbage import collection_paused


class PartIndexer(Indexer):
    """An `Indexer` that counts what it holds, and compiles it with the counts of all parts."""

    async def count(self) -> CatalogStatistics:
        """Count what the newest snapshot holds.

        Raises:
            ConfigError: Rows are in a database: the coordinator ranks by those in memory.
        """
        check_part_rows(self.options)
        while (build := await self.current()).saved:
            await self.flights.run("part", partial(self._compile_again, build))
        return await asyncio.to_thread(
            CatalogStatistics.of, build.snapshot, dict(self.entities.claims)
        )

    async def part(self, whole: CatalogStatistics) -> tuple[int, Snapshot]:
        """Return the newest snapshot as a part of the catalog that *whole* counts, and its version.

        From then on its tools leave names to others that have the better claim.
        """
        while True:
            build = await self.current()
            found = await self.flights.run("part", partial(self._part, build, whole))
            if isinstance(found, Snapshot):
                return build.snapshot.version, found

    async def _part(self, build: IndexBuild, whole: CatalogStatistics) -> Snapshot | None:
        names = whole.names_of_others(self.entities.claims)
        if self.entities.reserve(names) or build.saved:
            await self._compile_again(build)
            return None
        with collection_paused():
            return self._compiler.part(build.snapshot, whole)

    async def _compile_again(self, build: IndexBuild) -> None:
        """Compile the catalog with the names that are free now, and with its words at hand."""
        if self._newest is build:
            compiled = await self._load_or_compile(build.generation, build.listed)
            self._publish(compiled, time.perf_counter())
