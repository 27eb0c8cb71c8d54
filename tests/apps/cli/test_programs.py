"""`gateway programs`."""

from __future__ import annotations

import asyncio

from mcp import Client, types

from gateway.gateway import Gateway
from gateway.options import DiscoveryOptions, Options, ProgramsOptions
from gateway.serve.mcp_server import mcp_server
from gateway.types import Hints
from tests.apps.cli.running import Place


def refund_order(order_id: int) -> str:
    """Refund an order."""
    return f"refunded {order_id}"


async def run(gateway: Gateway, **arguments: str) -> str:
    """Run a program through the meta-tool, like a client that cannot ask its user."""
    async with Client(mcp_server(gateway)) as client:
        (block,) = (await client.call_tool("run_program", arguments)).content
    assert isinstance(block, types.TextContent)
    return block.text


def test_program_waits_for_a_decision_if_its_client_cannot_ask(place: Place) -> None:
    """The model gets a key, with which it continues the program after the decision."""
    config = place.config({})
    nothing = place.run("programs", "list", "-c", config)
    gateway = Gateway(
        strategy="graph",
        options=Options(
            discovery=DiscoveryOptions(programs=True),
            catalog_store_path=place.cache / "catalog.sqlite3",
            programs=ProgramsOptions(seconds=20, wall_s=120, destructive=True),
        ),
    )
    gateway.add_tool(refund_order, hints=Hints(destructive=True))
    asyncio.run(run(gateway, code="await refund_order(order_id=1)"))
    asyncio.run(run(gateway, code="await refund_order(order_id=2)"))
    listed = place.run("programs", "list", "-c", config, "--json")
    first, second = (row["key"] for row in listed.json["programs"])
    approved = place.run("programs", "approve", first, "-c", config)
    refused = place.run("programs", "refuse", second, "-c", config, "--json")
    twice = place.run("programs", "approve", second, "-c", config)
    audited = place.run("audit", "list", "-c", config, "--json").json
    texts = [asyncio.run(run(gateway, resume=key)) for key in (first, second)]
    gateway.close()

    assert nothing.out == "no program waits for an approval\n"
    assert listed.json["programs"][0]["arguments"] == '{"order_id": 1}'
    assert approved.out == "approved: local/refund_order\n"
    assert refused.json["refused"] == ["local/refund_order"]
    assert "waits for a decision" in twice.err
    assert "refunded 1" in texts[0]
    assert "was not approved" in texts[1]
    decided = [(row["action"], row["decision"], row["detail"]) for row in audited]
    tool = "local/refund_order"
    assert [("program.approve", "allowed", tool), ("program.approve", "ok", "")] == decided[:2]
    assert [("program.refuse", "allowed", tool), ("program.refuse", "ok", "")] == decided[2:4]
    assert {"command line"} == {row["token"] for row in audited}
