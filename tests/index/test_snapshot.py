"""What stands beside the tools of a catalog must not move them."""

from __future__ import annotations

import numpy as np

from gateway.catalog.entries import Entry, entity_of
from gateway.embed.cache import text_key
from gateway.index.snapshot import Snapshot
from gateway.index.snapshots import compile_snapshot
from gateway.index.texts import embedding_text, name_text
from gateway.runtime.vectors import Vector
from gateway.types import Entity
from tests.fakes import definitions, entity

TOOLS = [entity(each, server=f"srv{number % 3}") for number, each in enumerate(definitions(30))]
BESIDE = [
    entity_of(Entry(kind=kind, name=f"{kind}{number}", namespace=f"srv{number % 3}"))
    for kind in ("server", "agent", "dataset")
    for number in range(5)
]


def compiled(entities: list[Entity]) -> Snapshot:
    """Compile with a vector for each text that depends on the text alone."""
    texts = [text for each in entities for text in (embedding_text(each), name_text(each))]
    return compile_snapshot(entities, rows={text_key(text): vector(text) for text in texts})


def vector(text: str) -> Vector:
    drawn = np.random.default_rng(int(text_key(text)[:12], 16)).normal(size=16)
    return np.asarray(drawn / np.linalg.norm(drawn), dtype=np.float32)


def test_the_mean_of_a_catalog_is_that_of_what_servers_list() -> None:
    """To the last bit; where there is nothing else, that of all."""
    alone, together, others = map(compiled, (TOOLS, [*TOOLS, *BESIDE], BESIDE))

    assert alone.common is not None
    assert together.common is not None
    assert alone.common.tolist() == together.common.tolist()
    assert others.common is not None
    assert others.common.any()
    assert compile_snapshot(TOOLS, rows={}).common is None


def test_only_tools_share_the_number_of_a_server() -> None:
    """Tools of one server serve together; what describes the server is none of them."""
    together = compiled([*TOOLS, *BESIDE])

    servers = {
        (each.server if each.kind == "tool" else each.id): number
        for each, number in zip(together.entities, together.server_ids.tolist(), strict=True)
    }
    assert 3 + len(BESIDE) == len(servers) == len({*servers.values()})
