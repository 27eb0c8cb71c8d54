"""Names of tools that policies deny."""

from __future__ import annotations

from pathlib import Path

from gateway.embed import MemoryVectorStore
from gateway.gateway import Gateway
from gateway.options import AccessPolicy, Options
from gateway.types import Hints
from tests.core.sources.test_name_bindings import REFUSED, call
from tests.fakes import Shelf, tool


async def test_call_by_the_name_of_a_denied_or_disabled_tool_reaches_no_other_tool(
    tmp_path: Path,
) -> None:
    shelves = {name: Shelf([tool("pay"), tool("read")]) for name in ("a", "b")}
    policies = (AccessPolicy(tools=("a/pay",), action="deny"),)
    options = Options(catalog_store_path=tmp_path / "catalog.sqlite3", policies=policies)
    async with Gateway(
        strategy="graph", options=options, vector_store=MemoryVectorStore()
    ) as gateway:
        gateway.add_server("a", server=shelves["a"].server, hints={"read": Hints(enabled=False)})
        gateway.add_server("b", server=shelves["b"].server)
        answers = [await call(gateway, name) for name in ("pay", "read")]

    assert [REFUSED.format(name, name) for name in ("pay", "read")] == answers
    assert [[], []] == [shelf.calls for shelf in shelves.values()]
