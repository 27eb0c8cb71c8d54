"""Bindings of exposed names to tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path

import pytest

from gateway.discovery import MetaNames, ToolList
from gateway.discovery.call_handler import ToolCall, handle_call
from gateway.embed import MemoryVectorStore
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.options import Options
from gateway.storage import SqlCatalog
from gateway.types import Hints
from tests.fakes import Shelf, tool

NAMES = [f"entity{number}" for number in range(100)]
Start = Callable[..., Gateway]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Function that starts a gateway. Its arguments are lists of tool names, keyed by server
    name.
    """
    gateways: list[Gateway] = []

    def build(store: str = "catalog", **servers: list[str]) -> Gateway:
        options = Options(catalog_store_path=tmp_path / f"{store}.sqlite3")
        gateway = Gateway(strategy="graph", options=options, vector_store=MemoryVectorStore())
        for name, tools in servers.items():
            gateway.add_server(name, server=Shelf(map(tool, tools)).server)
        gateways.append(gateway)
        return gateway

    yield build
    for gateway in gateways:
        gateway.close()


async def names(gateway: Gateway) -> dict[str, str]:
    return {entity.id: entity.exposed_name for entity in await gateway.list_tools()}


async def codes(gateway: Gateway) -> set[str]:
    return {note.code for note in (await gateway.report()).diagnostics}


async def test_server_with_copied_tool_names_renames_no_other_tool(start: Start) -> None:
    """A restart does not change the names. If the other server is removed, its names are not given
    away.
    """
    gateway = start(zeta=NAMES)
    await gateway.report()
    gateway.add_server("alpha", server=Shelf(map(tool, NAMES)).server)
    joined = await names(gateway)
    again = await names(start(alpha=NAMES, zeta=NAMES))
    alone = start(alpha=NAMES)
    remaining = await names(alone)

    assert {f"zeta/{name}": name for name in NAMES}.items() <= joined.items()
    assert joined == again
    assert {f"alpha/{name}": f"alpha_{name}" for name in NAMES} == remaining
    assert {"name_withheld"} == await codes(alone)


async def test_names_of_servers_added_together_do_not_depend_on_their_order(start: Start) -> None:
    """The tool with the lowest id gets the name. Python functions have priority over servers."""
    results = []
    for number, order in enumerate(permutations(["a", "b", "c"])):
        gateway = start(str(number), **{key: ["run", "stop"] for key in order})
        gateway.add_tool(lambda: 1, name="stop", description="Stop.")
        results.append(await names(gateway))

    assert [results[0]] * 6 == results
    assert {"a/run": "run", "b/run": "b_run", "local/stop": "stop"}.items() <= results[0].items()


async def test_name_passes_to_another_tool_after_an_approval(start: Start, tmp_path: Path) -> None:
    """The other tool gets the name at the next start."""
    await start(honest=["pay"]).report()
    await start(other=["pay"]).report()
    store = SqlCatalog.in_files(tmp_path / "catalog.sqlite3")
    pending = store.changed("names:")
    store.approve("names:", ["pay"])
    store.close()

    assert {"pay"} == pending
    assert {"other/pay": "pay"} == await names(start(other=["pay"]))
    assert {"honest/pay": "honest_pay", "other/pay": "pay"} == await names(
        start(other=["pay"], honest=["pay"])
    )


async def test_missing_tool_of_a_connected_server_keeps_its_name(start: Start) -> None:
    await start(a=["pay"], b=["pay"]).report()
    without = start(a=["other"], b=["pay"])

    assert {"a/other": "other", "b/pay": "b_pay"} == await names(without)
    assert {"name_qualified"} == await codes(without)
    assert {"a/pay": "pay", "b/pay": "b_pay"} == await names(start(a=["pay"], b=["pay"]))


async def test_similar_names_are_reported_and_not_changed(start: Start) -> None:
    gateway = start(a=["get_user_role"], b=["get_user_roles"])

    notes = (await gateway.report()).diagnostics

    assert [("name_similar", True)] == [
        (note.code, "a/get_user_role, b/get_user_roles" in note.detail) for note in notes
    ]
    assert {"get_user_role", "get_user_roles"} == {*(await names(gateway)).values()}


async def test_first_seen_order_of_tools_survives_a_restart(start: Start) -> None:
    """Without the stored order, a server with copied tools could appear older than the original."""

    async def generations(gateway: Gateway) -> dict[str, int]:
        return {entity.server: entity.generation for entity in await gateway.list_tools()}

    gateway = start(zeta=NAMES[:3], eta=NAMES[3:5])
    await gateway.report()
    gateway.add_server("alpha", server=Shelf(map(tool, NAMES[:3])).server)

    assert {"zeta": 0, "eta": 0, "alpha": 1} == await generations(gateway)
    again = await generations(start(alpha=NAMES[:3], zeta=NAMES[:3], eta=NAMES[3:5]))
    assert again["alpha"] > again["zeta"] == again["eta"]


async def call(gateway: Gateway, name: str) -> str:
    """Call the tool *name*; return its answer or the error message."""
    try:
        return (await gateway.invoke(name)).text
    except InvalidRequestError as error:
        return str(error)


REFUSED = "'{0}' may name another tool: say which one (b_{1})"


@pytest.mark.parametrize(("own", "exposed"), [("pay", "pay"), ("bank.pay", "bank_pay")])
async def test_call_by_the_name_of_a_removed_tool_does_not_run_another_tool(
    start: Start, own: str, exposed: str
) -> None:
    gateway = start(a=[own], b=[own])
    before = await call(gateway, exposed)
    await gateway.remove_server("a")
    after = [await call(gateway, name) for name in (own, exposed)]
    again = start(b=[own])

    assert before == f"called {own}"
    assert REFUSED.format(own, exposed) == after[0] == await call(again, own)
    assert "called" not in after[1]
    assert f"called {own}" == await call(again, f"b_{exposed}") == await call(again, f"b/{own}")


async def test_call_by_the_name_of_a_disabled_tool_does_not_run_another_tool(
    tmp_path: Path,
) -> None:
    shelves = {name: Shelf([tool("pay"), tool("read")]) for name in ("a", "b")}
    options = Options(catalog_store_path=tmp_path / "catalog.sqlite3")
    async with Gateway(
        strategy="graph", options=options, vector_store=MemoryVectorStore()
    ) as gateway:
        gateway.add_server("a", server=shelves["a"].server, hints={"read": Hints(enabled=False)})
        gateway.add_server("b", server=shelves["b"].server)
        answer = await call(gateway, "read")

    assert REFUSED.format("read", "read") == answer
    assert [[], []] == [shelf.calls for shelf in shelves.values()]


async def test_meta_tool_does_not_run_another_tool_with_the_name_of_a_removed_one(
    start: Start,
) -> None:
    gateway = start(a=["pay"], b=["pay"])
    await gateway.report()
    await gateway.remove_server("a")
    tools = ToolList(names=MetaNames(search="search_tools", call="call_tool"), mode="proxy")
    calls = [("call_tool", '{"name": "pay", "arguments": {}}'), ("pay", "{}")]

    answers = [
        await handle_call(gateway, tools, ToolCall(id="1", name=name, arguments=arguments))
        for name, arguments in calls
    ]

    assert [REFUSED.format("pay", "pay")] * 2 == [answer.error for answer in answers]


async def test_tool_can_be_called_by_its_original_name(start: Start) -> None:
    assert "called bank.pay" == await call(start(a=["bank.pay"], b=["read"]), "bank.pay")


async def test_only_a_trusted_tool_can_be_called_by_a_name_without_ascii_letters(
    start: Start,
) -> None:
    """No name binding protects such a name, so a tool of another server could take it."""
    gateway = start(a=["支付"])
    gateway.add_tool(lambda: "paid", name="付款", description="Pay.")
    (exposed, *_) = (await names(gateway)).values()

    assert f"'支付' may name another tool: say which one ({exposed})" == await call(gateway, "支付")
    assert ("called 支付", "paid") == (await call(gateway, exposed), await call(gateway, "付款"))
