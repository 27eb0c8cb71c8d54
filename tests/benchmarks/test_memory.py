"""Memory of an entity, with a limit."""

from __future__ import annotations

from pathlib import Path

from benchmarks.memory import ClusteredEmbedder, gateway_of, sizes_of, sources

_ENTITIES = 1000
_DIMENSIONS = 64


async def test_entity_needs_memory_for_its_vectors_and_few_kilobytes(tmp_path: Path) -> None:
    """A million entities with rows of 1,280 numbers then fit into one process."""
    async with gateway_of(ClusteredEmbedder(_DIMENSIONS), tmp_path) as gateway:
        async for source in sources(_ENTITIES):
            gateway.add_source(source)
        report = await gateway.report()

        sizes = sizes_of(gateway)

    assert (_ENTITIES, ()) == (report.vectors, report.diagnostics)
    rows = sizes.pop("rows") / _ENTITIES
    assert 4 * _DIMENSIONS <= rows < 4 * _DIMENSIONS + 1
    assert sum(sizes.values()) / _ENTITIES < 9000, dict(sizes)
