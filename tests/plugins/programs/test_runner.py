"""Programs over the tools of a gateway, as a model runs them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.discovery import ToolListBuilder, ToolListRequest
from gateway.discovery.approval import Approve
from gateway.discovery.call_handler import ToolAnswer, ToolCall, handle_call
from gateway.errors import ConfigError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.options import AccessPolicy, DiscoveryOptions, Options, ProgramsOptions, UsageOptions
from gateway.plugins.postgres import PostgresStore
from gateway.plugins.programs import (
    AnswerCall,
    PendingCall,
    Program,
    ProgramResult,
    ProgramRunner,
    ProgramSnapshot,
    program_tool,
)
from gateway.plugins.usage import call_log_of
from gateway.types import ANYONE, Access, Caller, Hints
from tests.conftest import OpenGateway
from tests.metrics import Watch
from tests.postgres_server import PostgresServer

LIMITS = ProgramsOptions(seconds=20, wall_s=120, destructive=True)
ADA, BOB = Caller(user="ada", tenant="acme"), Caller(user="bob", tenant="acme")


def list_orders(customer: str, limit: int = 3) -> list[dict[str, Any]]:
    """List the orders of a customer."""
    return [{"id": number, "total": 10.5 * number} for number in range(limit)]


def get_order(order_id: int) -> dict[str, Any]:
    """Get an order."""
    if order_id < 0:
        raise ValueError("no such order")
    return {"id": order_id, "state": "open"}


def refund_order(order_id: int) -> str:
    """Refund an order."""
    return f"refunded {order_id}"


def filled(gateway: Gateway) -> Gateway:
    gateway.add_tool(list_orders)
    gateway.add_tool(get_order)
    gateway.add_tool(refund_order, hints=Hints(destructive=True))
    return gateway


def options(tmp_path: Path, **more: Any) -> Options:
    more.setdefault("programs", LIMITS)
    return Options(
        discovery=DiscoveryOptions(programs=True),
        catalog_store_path=tmp_path / "catalog.sqlite3",
        **more,
    )


@pytest.fixture
def gateway(open_gateway: OpenGateway, tmp_path: Path) -> Gateway:
    return filled(open_gateway(options=options(tmp_path)))


class Chat:
    """A conversation that has found some tools."""

    def __init__(
        self, gateway: Gateway, *found: str, caller: Caller = ANYONE, approve: Approve | None = None
    ) -> None:
        self.gateway, self.found, self.caller, self.approve = gateway, found, caller, approve
        self.programs = ProgramRunner(gateway)

    async def answer(self, code: str = "", *, task: str = "", **arguments: Any) -> ToolAnswer:
        request = ToolListRequest(messages=(), recalled=self.found, caller=self.caller)
        tools = await ToolListBuilder(self.gateway).build(request)
        added = {"run_program": program_tool(self.programs, "run_program")}
        tools = replace(tools, names=replace(tools.names, added=added))
        call = ToolCall(
            id="c1", name="run_program", arguments=json.dumps({"code": code, **arguments})
        )
        return await handle_call(self.gateway, tools, call, approve=self.approve, task=task)

    async def run(self, code: str = "", **arguments: Any) -> dict[str, Any]:
        body: dict[str, Any] = json.loads((await self.answer(code, **arguments)).text)
        return body


async def test_a_loop_over_tools_is_one_turn_with_one_value(gateway: Gateway) -> None:
    """What lies between stays in the box."""
    code = (
        "import asyncio\n"
        "orders = await list_orders(customer='Ada', limit=4)\n"
        "full = await asyncio.gather(*[get_order(order_id=order['id']) for order in orders])\n"
        "{order['id']: order['state'] for order in full}"
    )

    body = await Chat(gateway, "list_orders", "get_order").run(code)

    assert body == {"result": {str(number): "open" for number in range(4)}, "calls": 5}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "more = {'parameters': {}}\nawait call_tool('list_orders', **more)",
            "call_tool takes a name and an object of arguments",
        ),
        (
            "more = {'most': 3}\nawait search_tools('orders', **more)",
            "search_tools takes a query (text) and a limit",
        ),
    ],
)
async def test_program_cannot_pass_unknown_keys(gateway: Gateway, code: str, message: str) -> None:
    """Types do not show the keys of a dictionary."""
    body = await Chat(gateway, "list_orders").run(code)

    assert message in body["error"]


async def test_only_what_the_conversation_has_found_is_there(gateway: Gateway) -> None:
    chat = Chat(gateway, "list_orders")

    direct = await chat.run("await get_order(order_id=1)")
    by_name = await chat.run("await call_tool('get_order', {'order_id': 1})")
    searched = await chat.run(
        "found = await search_tools('get an order')\n"
        "await call_tool(found[0]['name'], {'order_id': 1})"
    )

    assert "a search of this conversation" in direct["problems"][0]["hint"]
    assert "unknown tool 'get_order'" in by_name["error"]
    assert searched == {"result": {"id": 1, "state": "open"}, "calls": 2}


async def test_wrong_types_cost_no_call_and_are_told_with_lines_and_near_names(
    gateway: Gateway,
) -> None:
    """One turn is enough to mend them."""
    chat = Chat(gateway, "list_orders", "get_order")

    answer = await chat.answer("await list_orders(custmer='Ada')\nawait get_ordr(order_id=1)")
    body = json.loads(answer.text)

    near = {row["line"]: row["near"] for row in body["problems"] if "near" in row}
    assert answer.failed
    assert body["calls"] == 0
    assert near[1] == ["customer"]
    assert near[2][0] == "get_order"
    assert "async def get_order(*, order_id: int) -> dict[str, Any]:" in body["functions"]


async def test_results_without_a_schema_get_the_type_that_they_have_shown(gateway: Gateway) -> None:
    chat = Chat(gateway, "list_orders")
    code = "orders = await list_orders(customer='Ada')\norders[0]['totl']"

    unknown = await chat.run(code)
    known = await chat.run(code)

    assert "KeyError" in unknown["error"]
    assert known["problems"][0]["line"] == 2
    assert '"total": float' in (await chat.run())["functions"]


async def test_a_failing_tool_is_an_exception_of_the_program(gateway: Gateway) -> None:
    code = "try:\n    await get_order(order_id=-1)\nexcept RuntimeError as e:\n    x = str(e)\nx"

    assert "no such order" in (await Chat(gateway, "get_order").run(code))["result"]


async def test_calls_are_for_the_same_caller_and_what_it_may_not_see_is_not_there(
    gateway: Gateway,
) -> None:
    def open_vault() -> str:
        """Open the vault."""
        return "gold"

    gateway.add_tool(open_vault, access=Access(scopes=frozenset({"vault"})))
    mayor = Caller(scopes=frozenset({"vault"}))

    hidden = await Chat(gateway, "open_vault").run("await open_vault()")
    by_name = await Chat(gateway, "open_vault").run("await call_tool('open_vault')")
    seen = await Chat(gateway, "open_vault", caller=mayor).run("await open_vault()")

    assert "open_vault" not in hidden.get("functions", "")
    assert "unknown tool" in by_name["error"]
    assert seen["result"] == "gold"


async def test_what_destroys_is_refused_unless_the_host_allows_it(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    careful = filled(open_gateway(options=options(tmp_path, programs=ProgramsOptions(seconds=20))))

    body = await Chat(careful, "refund_order", approve=lambda _: True).run(
        "await refund_order(order_id=1)"
    )

    assert "call it directly" in body["error"]


@pytest.mark.parametrize(("decision", "expected"), [(True, "refunded 1"), (False, "not approved")])
async def test_the_host_is_asked_and_no_other_call_waits_for_it(
    gateway: Gateway, *, decision: bool, expected: str
) -> None:
    asked: list[tuple[str, object]] = []

    def approve(approval: Any) -> bool:
        asked.append((approval.entity.id, approval.arguments))
        return decision

    code = (
        "import asyncio\n"
        "both = await asyncio.gather(get_order(order_id=1), refund_order(order_id=1))\n"
        "both[1]"
    )

    body = await Chat(gateway, "get_order", "refund_order", approve=approve).run(code)

    assert asked == [("local/refund_order", {"order_id": 1})]
    assert expected in str(body)


async def test_a_program_waits_where_a_policy_asks(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Also for a tool that says nothing of itself; once it is approved the call goes out."""
    policies = (AccessPolicy(action="ask", tools=("local/get_order",)),)
    chat = Chat(filled(open_gateway(options=options(tmp_path, policies=policies))), "get_order")
    code = "(await get_order(order_id=1))['state']"

    waiting = await chat.run(code)
    await chat.programs.decide(waiting["waiting"], approved=True)
    done = await chat.run(resume=waiting["waiting"])

    assert "open" == done["result"]


async def test_a_program_that_waits_goes_on_in_another_process_once_it_is_approved(
    open_gateway: OpenGateway, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Two gateways over one store stand for two processes: they share nothing else."""
    stores = [PostgresStore(postgres.url, schema=tmp_path.name) for _ in range(2)]
    here, there = (
        filled(
            Gateway(
                store=store,
                options=Options(discovery=DiscoveryOptions(programs=True), programs=LIMITS),
            )
        )
        for store in stores
    )
    code = (
        "print('began')\norder = await get_order(order_id=7)\n"
        "done = await refund_order(order_id=order['id'])\nf'{done}: {order}'"
    )

    waiting = await Chat(here, "get_order", "refund_order", caller=ADA).run(code)
    key = waiting["waiting"]
    undecided = await Chat(there, caller=ADA).run(resume=key)
    listed = await ProgramRunner(there).waiting()
    await ProgramRunner(there).decide(key, approved=True)
    foreign = await Chat(there, caller=BOB).run(resume=key)
    done = await Chat(there, caller=ADA).run(resume=key)
    again = await Chat(here, caller=ADA).run(resume=key)
    for gateway, store in zip((here, there), stores, strict=True):
        await gateway.aclose()
        store.close()

    assert waiting["waits_for"] == [{"tool": "local/refund_order", "arguments": {"order_id": 7}}]
    assert undecided == waiting
    assert [each.caller["user"] for each in listed.values()] == ["ada"]
    assert "unknown or expired" in foreign["error"]
    assert done["result"] == "refunded 7: {'id': 7, 'state': 'open'}"
    assert (done["printed"], done["calls"]) == ("began\n", 2)
    assert "unknown or expired" in again["error"]


async def test_a_decision_is_for_the_tool_that_was_seen_and_comes_once(gateway: Gateway) -> None:
    """A definition that changes while somebody thinks is not what was approved."""
    chat = Chat(gateway, "refund_order")
    first = (await chat.run("await refund_order(order_id=1)"))["waiting"]
    second = (await chat.run("await refund_order(order_id=2)"))["waiting"]
    await chat.programs.decide(first, approved=False)
    with pytest.raises(InvalidRequestError, match="waits for a decision"):
        await chat.programs.decide(first, approved=True)
    refused = await chat.run(resume=first)
    await chat.programs.decide(second, approved=True)
    gateway.remove_tool("refund_order")
    gateway.add_tool(other_refund, name="refund_order", hints=Hints(destructive=True))

    changed = await chat.run(resume=second)

    assert "not approved" in refused["error"]
    assert "changed after it was approved" in changed["error"]


def other_refund(order_id: int, to: str = "somebody else") -> str:
    """Refund an order."""
    return f"refunded {order_id} to {to}"


class Forging:
    """A sandbox whose worker claims the number of an approved call for another one."""

    async def run(
        self, program: Program, *, call: AnswerCall, limits: ProgramsOptions
    ) -> ProgramResult:
        wanted = PendingCall(id=1, name="refund_order", named={"order_id": 1})
        assert (await call(wanted)).waits
        return ProgramResult(snapshot=ProgramSnapshot(state=b"", waiting=(wanted,), calls=1))

    async def resume(
        self,
        program: Program,
        snapshot: ProgramSnapshot,
        *,
        call: AnswerCall,
        limits: ProgramsOptions,
    ) -> ProgramResult:
        (wanted,) = snapshot.waiting
        approved = await call(wanted)
        forged = await call(replace(wanted, named={"order_id": 2}))
        return ProgramResult(value=[approved.value, forged.value, forged.waits])


async def test_an_approval_is_for_one_call_whatever_number_another_claims(gateway: Gateway) -> None:
    """The worker is the first thing that an attacker would hold."""
    chat = Chat(gateway, "refund_order", approve=lambda _: True)
    chat.programs = ProgramRunner(gateway, Forging())

    assert (await chat.run("x"))["result"] == ["refunded 1", None, True]


@pytest.mark.parametrize(
    ("code", "key"),
    [
        ("raise ValueError('x' * 1_000_000)", "error"),
        ("print('\\0' * 15_000)", "printed"),
        ("'\"' * 15_000", "result"),
        (
            "for i in range(9):\n    print('z' * 15_000)\n    await refund_order(order_id=i)",
            "printed",
        ),
    ],
)
async def test_no_answer_takes_more_of_the_conversation_than_it_may(
    gateway: Gateway, code: str, key: str
) -> None:
    """Not by an error, by signs that JSON writes long, or by each of many approvals."""
    answer = await Chat(gateway, "refund_order", approve=lambda _: True).answer(code)

    assert len(answer.text) <= LIMITS.output_chars
    assert len(answer.error) <= LIMITS.output_chars
    assert len(json.loads(answer.text)[key]) > 1000


class Renaming(Forging):
    """A sandbox that goes on when the name of the approved tool means another one."""

    async def resume(
        self,
        program: Program,
        snapshot: ProgramSnapshot,
        *,
        call: AnswerCall,
        limits: ProgramsOptions,
    ) -> ProgramResult:
        (wanted,) = snapshot.waiting
        return ProgramResult(error=(await call(replace(wanted, name="get_order"))).error)


async def test_an_approval_is_for_one_tool_whatever_its_name_means_later(gateway: Gateway) -> None:
    chat = Chat(gateway, "refund_order", "get_order", approve=lambda _: True)
    chat.programs = ProgramRunner(gateway, Renaming())

    assert "not the tool that was approved" in (await chat.run("x"))["error"]


async def test_what_a_program_has_found_is_there_when_it_goes_on(gateway: Gateway) -> None:
    chat = Chat(gateway, "list_orders")
    code = (
        "found = await search_tools('refund an order')\n"
        "[await call_tool('refund_order', {'order_id': number}) for number in range(2)]"
    )

    first = (await chat.run(code))["waiting"]
    await chat.programs.decide(first, approved=True)
    second = (await chat.run(resume=first))["waiting"]
    await chat.programs.decide(second, approved=True)

    assert (await chat.run(resume=second))["result"] == ["refunded 0", "refunded 1"]


async def test_a_refusal_holds_when_nobody_would_be_asked_any_more(gateway: Gateway) -> None:
    chat, ask = Chat(gateway, "get_order"), AccessPolicy(action="ask", tools=("*/get_order",))
    gateway.set_policies([ask])
    key = (await chat.run("await get_order(order_id=1)"))["waiting"]
    await chat.programs.decide(key, approved=False)
    gateway.set_policies([])

    assert "was not approved" in (await chat.run(resume=key))["error"]


async def test_a_store_that_keeps_no_programs_lets_none_wait(open_gateway: OpenGateway) -> None:
    class Small:
        """A host's own store, from before there were programs."""

        def __init__(self, store: Any) -> None:
            self.vectors, self.entries = store.vectors, store.entries
            self.listings, self.close = store.listings, store.close
            self.call_log = call_log_of(store)

    plain = open_gateway()
    gateway = filled(
        Gateway(
            store=Small(plain.store),
            options=Options(discovery=DiscoveryOptions(programs=True), programs=LIMITS),
        )
    )

    body = await Chat(gateway, "refund_order").run("await refund_order(order_id=1)")

    await gateway.aclose()
    assert "cannot store programs" in body["error"]
    with pytest.raises(ConfigError):
        await ProgramRunner(gateway).waiting()


async def test_what_results_look_like_is_told_to_their_own_caller_alone(gateway: Gateway) -> None:
    """The keys of a result may be data."""

    def balances() -> Any:
        """Return the balance of each customer."""
        return {"alice": 1}

    gateway.add_tool(balances)
    chat = Chat(gateway, "balances", caller=ADA)
    await chat.run("await balances()")

    own = await chat.run()
    chat.caller = replace(ADA, tenant="other")
    foreign = await chat.run()

    assert "alice" in own["functions"]
    assert "alice" not in foreign["functions"]


async def test_a_value_is_kept_only_if_it_is_asked_for_and_only_for_its_caller(
    gateway: Gateway,
) -> None:
    chat = Chat(gateway, "list_orders", caller=ADA)
    code = "await list_orders(customer='Ada', limit=900)"

    long = await chat.run(code)
    kept = await chat.run(code, keep=True)
    later = await chat.run("len(previous)", previous=kept["kept"])
    none = await chat.run("previous is None")
    foreign = await Chat(gateway, caller=BOB).run("previous", previous=kept["kept"])

    assert "keep it" in long["cut"]
    assert len(json.dumps(long)) < 1.2 * LIMITS.output_chars
    assert kept == {"kept": kept["kept"], "calls": 1}
    assert later["result"] == 900
    assert none["result"] is True
    assert "unknown or expired" in foreign["error"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"code": 1}, "code must be a text"),
        ({"keep": "yes"}, "keep must be true or false"),
        ({"code": "#" * 30_000}, "at most 20000 characters"),
        ({"resume": "x"}, "unknown or expired"),
    ],
)
async def test_what_is_no_program_is_answered(
    gateway: Gateway, arguments: dict[str, Any], said: str
) -> None:
    answer = await Chat(gateway).answer(**arguments)

    assert answer.failed
    assert said in answer.error


async def test_calls_are_spans_below_the_program(open_gateway: OpenGateway, tmp_path: Path) -> None:
    watch = Watch()
    gateway = filled(open_gateway(options=options(tmp_path), tracer_provider=watch.tracer))
    code = "import asyncio\nawait asyncio.gather(get_order(order_id=1), list_orders(customer='a'))"

    await Chat(gateway, "get_order", "list_orders").run(code)

    program = watch.of("execute_tool run_program")
    for name in ("get_order", "list_orders"):
        span = watch.of(f"execute_tool {name}")
        assert span.parent is not None
        assert program.context is not None
        assert span.parent.span_id == program.context.span_id


async def test_what_programs_call_in_turn_becomes_next_steps(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Each program is a task, as each conversation is."""
    usage = UsageOptions(record=True, learn="on", refresh_s=0)
    gateway = filled(open_gateway(options=options(tmp_path, usage=usage)))
    chat = Chat(gateway, "list_orders", "get_order")
    code = "await list_orders(customer='a')\nawait get_order(order_id={})"

    for number in range(3):
        await chat.run(code.format(number))

    tasks = gateway.usage.call_log.tasks()
    assert [each.tools for each in tasks] == [("local/list_orders", "local/get_order")] * 3


async def test_searches_are_answered_while_ten_programs_spin(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """A runaway takes a worker until its time is up, never the gateway."""
    limits = ProgramsOptions(seconds=0.2, wall_s=60)
    gateway = filled(open_gateway(options=options(tmp_path, programs=limits)))
    chat = Chat(gateway)
    programs = [asyncio.create_task(chat.run("while True:\n    pass")) for _ in range(10)]

    result = await gateway.search("refund an order")
    unfinished = [task for task in programs if not task.done()]
    bodies = await asyncio.gather(*programs)

    assert result.matches[0].name == "refund_order"
    assert unfinished
    assert all("TimeoutError" in body["error"] or "too long" in body["error"] for body in bodies)
