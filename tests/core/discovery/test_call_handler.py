"""Answers to the model's calls. A mistake of the model never raises an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway import Gateway, InvokeResult, Options
from gateway.discovery import MetaNames, Projection, ToolList, direct_names_in, result_text
from gateway.discovery.call_handler import ToolAnswer, ToolCall, handle_call
from gateway.embed import MemoryVectorStore
from gateway.options import CatalogOptions, ChatOptions, DiscoveryOptions, UpstreamOptions
from gateway.types import ANYONE, Access, Caller, Content, Hints, ToolDefinition
from graphs import Document, Edge
from tests.conftest import OpenGateway
from tests.fakes import Shelf, suspicious, tool
from tests.metrics import Watch, counted

NAMES = MetaNames(search="search_tools", call="call_tool")


async def answer_to(
    gateway: Gateway,
    name: str,
    arguments: object,
    mode: Projection = "proxy",
    caller: Caller = ANYONE,
) -> ToolAnswer:
    """Return the gateway's answer to one call of the tool *name*."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = ToolCall(id="1", name=name, arguments=text)
    answer = await handle_call(gateway, ToolList(names=NAMES, mode=mode, caller=caller), call)
    assert call == answer.call
    return answer


@pytest.fixture
def shelf(open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]) -> Gateway:
    """Return a gateway with a dozen tools."""
    return open_gateway(catalog)


def transfer(account: str, amount: int) -> str:
    """Move money to an account."""
    return f"{amount} to {account}"


@pytest.fixture
def bank(open_gateway: OpenGateway) -> Gateway:
    """Return a gateway with one function."""
    gateway = open_gateway()
    gateway.add_tool(transfer)
    return gateway


@pytest.mark.parametrize(
    ("arguments", "queries"),
    [
        ({"query": "send an e-mail"}, ("send an e-mail",)),
        ({"queries": ["send an e-mail"]}, ("send an e-mail",)),
        ({"query": "send an e-mail", "queries": []}, ("send an e-mail",)),
        (
            {"query": "send an e-mail", "queries": ["book a flight"]},
            ("send an e-mail", "book a flight"),
        ),
        ({"query": "send an e-mail", "queries": ["send an e-mail"]}, ("send an e-mail",)),
        ({"query": ["send an e-mail", "book a flight"]}, ("send an e-mail", "book a flight")),
        ({"queries": "send an e-mail"}, ("send an e-mail",)),
    ],
)
async def test_search_takes_one_query_or_several(
    shelf: Gateway, arguments: dict[str, Any], queries: tuple[str, ...]
) -> None:
    """If a model gives both parameters, the single query is added to the several."""
    answer = await answer_to(shelf, "search_tools", arguments)

    assert queries == answer.queries
    assert "send_email" in direct_names_in(answer.text)
    assert len(queries) == 1 or "book_flight" in direct_names_in(answer.text)
    assert answer.search is not None


async def test_search_without_a_query_lists_tools(shelf: Gateway) -> None:
    """A list of tool names helps the model more than an error."""
    answer = await answer_to(shelf, "search_tools", "")

    assert "browse" == (answer.search.mode if answer.search else "")
    assert len(direct_names_in(answer.text)) > 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"query": 7}, "'query' is a text"),
        ({"queries": {"a": "send"}}, "'queries' is a list of texts"),
        ({"queries": [1]}, "'queries' is a list of texts"),
        ("[1]", "the arguments must be a JSON object"),
        ("null", "the arguments must be a JSON object"),
        ('{"query": ', "the arguments are not JSON: "),
        ("[" * 100_000, "the arguments are not JSON: "),
    ],
)
async def test_invalid_search_arguments_are_explained(
    shelf: Gateway, arguments: object, error: str
) -> None:
    answer = await answer_to(shelf, "search_tools", arguments)

    body = json.loads(answer.text)
    assert body["error"].startswith(error)
    assert ["query", "queries"] == [*body["schema"]["properties"]]
    assert answer.search is None


@pytest.mark.parametrize(
    ("arguments", "queries"),
    [
        ({"q": "send an e-mail"}, ("send an e-mail",)),
        ({"querry": "send an e-mail", "queries": []}, ("send an e-mail",)),
        ({"text": "send an e-mail", "query": ""}, ("send an e-mail",)),
        ({"topics": ["send an e-mail", "book a flight"]}, ("send an e-mail", "book a flight")),
        ({"arguments": {"query": "send an e-mail"}}, ("send an e-mail",)),
        ({"input": '{"queries": ["send an e-mail"]}'}, ("send an e-mail",)),
    ],
)
async def test_search_corrects_a_single_unknown_key_and_notes_it(
    shelf: Gateway, arguments: dict[str, Any], queries: tuple[str, ...]
) -> None:
    answer = await answer_to(shelf, "search_tools", arguments)

    assert queries == answer.queries
    assert "send_email" in direct_names_in(answer.text)
    assert json.loads(answer.text)["corrected"].startswith('read as {"quer')


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": "send an e-mail", "search": "mail"},
        {"query": "send an e-mail", "q": "mail"},
        {"queries": ["send an e-mail"], "q": "mail"},
        {"query": "send an e-mail", "limit": 3},
        {"q": "send an e-mail", "limit": 3},
        {"q": 7},
        {"input": {"text": "send an e-mail"}},
    ],
)
async def test_search_refuses_unknown_keys_with_its_schema(
    shelf: Gateway, arguments: dict[str, Any]
) -> None:
    answer = await answer_to(shelf, "search_tools", arguments)

    body = json.loads(answer.text)
    assert "search_tools does not take " in body["error"]
    assert "query" in body["schema"]["properties"]
    assert answer.search is None


@pytest.mark.parametrize(
    "call",
    [
        ("transfer", {"account": "A", "amount": 5}),
        ("local/transfer", {"account": "A", "amount": 5}),
        ("call_tool", {"name": "transfer", "arguments": {"account": "A", "amount": 5}}),
        ("call_tool", {"name": "transfer", "arguments": '{"account": "A", "amount": 5}'}),
    ],
)
async def test_tool_is_called_by_its_name_or_through_the_call_tool(
    bank: Gateway, call: tuple[str, Any]
) -> None:
    """A model may call a tool that it was never shown. Some models write the inner object of
    arguments as text.
    """
    answer = await answer_to(bank, *call)

    assert ("5 to A", "") == (answer.text, answer.error)
    assert {"account": "A", "amount": 5} == answer.arguments
    assert answer.result is not None


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"name": ""},
        {"name": 3, "arguments": {}},
        {"name": "transfer", "arguments": []},
        {"name": "transfer", "arguments": None},
    ],
)
async def test_call_tool_explains_its_own_parameters(
    bank: Gateway, arguments: dict[str, Any]
) -> None:
    answer = await answer_to(bank, "call_tool", arguments)

    body = json.loads(answer.text)
    assert "call_tool takes a 'name' (text) and 'arguments' (object)" == body["error"]
    assert ["name", "arguments"] == [*body["schema"]["properties"]]


TRANSFER = {"account": "A", "amount": 5}


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "transfer", "parameters": TRANSFER},
        {"name": "transfer", "args": TRANSFER, "arguments": {}},
        {"name": "transfer", "input": json.dumps(TRANSFER)},
        {"name": "transfer", "argumants": TRANSFER, "arguments": None},
        {"name": "transfer", **TRANSFER},
        {"name": "local/transfer", **TRANSFER, "arguments": {}},
        {"tool": "transfer", "arguments": TRANSFER},
        {"tool_name": "transfer", "tool_input": TRANSFER},
        {"toolName": "transfer", **TRANSFER},
        {"nmae": "transfer", "arguments": json.dumps(TRANSFER)},
        {"function": {"name": "transfer", "arguments": TRANSFER}},
    ],
)
async def test_call_tool_accepts_arguments_under_other_keys(
    bank: Gateway, arguments: dict[str, Any]
) -> None:
    answer = await answer_to(bank, "call_tool", arguments)

    assert ("5 to A", TRANSFER) == (answer.text, answer.arguments)


def purge(filter: dict[str, Any] | None = None, folder: str = "/") -> str:  # noqa: A002
    """Remove the files of a folder."""
    return f"removed {filter} in {folder}"


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "purge", "fodler": "tmp"},
        {"name": "purge", "parameters": "tmp"},
        {"name": "purge", "parameters": {"fodler": "tmp"}},
        {"name": "purge", "parameters": {"folder": "tmp"}, "args": {"folder": "etc"}},
        {"name": "purge", "parameters": {"folder": "tmp"}, "arguments": {"folder": "etc"}},
        {"name": "purge", "folder": "tmp", "arguments": {"filter": {}}},
        {"name": "purge", "folder": "tmp", "reason": "full"},
        # Ambiguous: `filter` is a parameter of the tool, or the key under which the model wrote all
        # arguments.
        {"name": "purge", "filter": {"folder": "tmp"}},
        {"purge": {"folder": "tmp"}},
        {"tool": "purge", "function": "purge", "arguments": {}},
    ],
)
async def test_call_tool_refuses_unknown_keys_without_a_call(
    bank: Gateway, arguments: dict[str, Any]
) -> None:
    """A tool that runs without the unknown arguments could delete everything."""
    bank.add_tool(purge)

    answer = await answer_to(bank, "call_tool", arguments)

    body = json.loads(answer.text)
    assert "call_tool does not take " in body["error"]
    assert ["name", "arguments"] == [*body["schema"]["properties"]]
    assert answer.result is None


async def test_call_tool_accepts_an_object_parameter_next_to_the_name(bank: Gateway) -> None:
    bank.add_tool(purge)

    answer = await answer_to(bank, "call_tool", {"name": "purge", "filter": {"age": 3}})

    assert "removed {'age': 3} in /" == answer.text


ADVISERS = MetaNames(search="search_tools", call="call_tool", route="route", next="next_tools")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("route", {"task": "send an e-mail"}),
        ("route", {"q": "send an e-mail", "by": "server"}),
        ("next_tools", {"tool": "send_email"}),
        ("next_tools", {"tools": "send_email"}),
        ("next_tools", {"names": ["send_email"]}),
    ],
)
async def test_adviser_corrects_a_single_unknown_key(
    shelf: Gateway, name: str, arguments: dict[str, Any]
) -> None:
    call = ToolCall(id="1", name=name, arguments="", parsed=arguments)
    answer = await handle_call(shelf, ToolList(names=ADVISERS, mode="proxy"), call)

    assert not answer.failed


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("route", {"query": "send an e-mail", "limit": 3}),
        ("next_tools", {"tools": ["send_email"], "limit": 3}),
    ],
)
async def test_other_meta_tools_refuse_unknown_keys_with_their_schemas(
    shelf: Gateway, name: str, arguments: dict[str, Any]
) -> None:
    call = ToolCall(id="1", name=name, arguments="", parsed=arguments)
    tools = ToolList(names=ADVISERS, mode="proxy")
    answer = await handle_call(shelf, tools, call)

    body = json.loads(answer.text)
    assert f"{name} does not take " in body["error"]
    assert body["schema"]["additionalProperties"] is False


async def test_timeout_of_a_server_is_answered_with_an_error_text(
    open_gateway: OpenGateway,
) -> None:
    """The conversation continues."""
    options = Options(upstream=UpstreamOptions(call_timeout_s=0.05))
    gateway = open_gateway(options=options)
    gateway.add_server("slow", server=Shelf([tool("wait")]).server)

    answer = await answer_to(gateway, "wait", {})

    assert "'slow': " in json.loads(answer.text)["error"]
    assert answer.result is None


async def test_long_tool_result_is_cut_with_a_note(open_gateway: OpenGateway) -> None:
    """One result must not fill the conversation."""
    gateway = open_gateway(options=Options(chat=ChatOptions(max_result_chars=1000)))
    gateway.add_tool(transfer)

    answer = await answer_to(gateway, "transfer", {"account": "A" * 3000, "amount": 1})

    assert "1 to " + "A" * 995 + "\n[cut: 2005 of 3005 characters left out]" == answer.text


def block(kind: str, text: str = "", **data: object) -> Content:
    return Content(type=kind, text=text, data={"type": kind, **data})


@pytest.mark.parametrize(
    ("content", "structured", "expected"),
    [
        ((block("text", "a"), block("text", "b")), {"x": 1}, "a\nb"),
        ((), {"x": "é"}, '{"x": "é"}'),
        ((block("text", ""),), None, "The tool answered with nothing."),
        ((block("image", mimeType="image/png"), block("text", "a")), None, "[image: image/png]\na"),
        ((block("resource_link", uri="file:///a"),), None, "[resource_link: file:///a]"),
        ((block("resource", resource={"mimeType": "a/b"}),), None, "[resource: a/b]"),
        ((block("audio"),), None, "[audio]"),
    ],
)
def test_tool_result_text_includes_or_names_every_content_block(
    content: tuple[Content, ...], structured: object, expected: str
) -> None:
    """Blocks that are not text are named, so that the model knows of them."""
    assert expected == result_text(
        InvokeResult(tool_id="t", content=content, structured=structured)
    )


def gateway_with_next_steps(
    open_gateway: OpenGateway, tools: tuple[ToolDefinition, ...], steps: int
) -> Gateway:
    """Return a gateway whose answers name up to *steps* next tools. Its documents declare
    two next steps of ``list_invoices``. A rule derives a next step of ``search_flights``.
    """
    plan = Document(
        id="plan",
        title="plan",
        edges=tuple(
            Edge(subject=subject, predicate="nextStep", object=target)
            for subject, target in (
                ("list_invoices", "get_invoice"),
                ("list_invoices", "pay_invoice"),
                ("find_fail", "fail"),
            )
        ),
    )
    options = Options(discovery=DiscoveryOptions(next_steps=steps))
    return open_gateway(tools, options=options, graph=[plan])


@pytest.mark.parametrize(
    ("tool_name", "mode", "steps", "hint"),
    [
        ("list_invoices", "proxy", 0, ""),
        ("list_invoices", "proxy", 1, "\n[next steps, by call_tool: get_invoice]"),
        ("list_invoices", "stable", 5, "\n[next steps, by call_tool: get_invoice, pay_invoice]"),
        # Without a call tool the model searches for the next step by its name.
        ("list_invoices", "native", 1, "\n[next steps: get_invoice]"),
        ("search_flights", "proxy", 5, ""),
        ("play_music", "proxy", 5, ""),
    ],
)
async def test_answer_of_a_tool_names_next_steps_if_configured(
    open_gateway: OpenGateway,
    catalog: tuple[ToolDefinition, ...],
    tool_name: str,
    mode: Projection,
    steps: int,
    hint: str,
) -> None:
    """The hint saves a search. Tools without a declared edge would only distract."""
    answer = await answer_to(
        gateway_with_next_steps(open_gateway, catalog, steps), tool_name, {}, mode
    )

    assert f"called {tool_name}{hint}" == answer.text


async def test_answer_of_a_failed_call_names_no_next_steps(open_gateway: OpenGateway) -> None:
    """The model has to correct the call first."""
    gateway = gateway_with_next_steps(open_gateway, (), 5)
    gateway.add_server("srv", server=Shelf([tool("fail"), tool("find_fail")]).server)

    answer = await answer_to(gateway, "fail", {})
    wrong = await answer_to(gateway, "find_fial", {})

    assert "next steps" not in answer.text + wrong.text
    assert "[next steps, by call_tool: fail]" in (await answer_to(gateway, "find_fail", {})).text


async def test_tool_removed_during_its_call_is_answered_without_next_steps(
    open_gateway: OpenGateway,
) -> None:
    gateway = gateway_with_next_steps(open_gateway, (), 5)

    def leave() -> str:
        """Go away for good."""
        gateway.remove_tool("leave")
        return "gone"

    gateway.add_tool(leave)
    gateway.add_tool(transfer)

    assert "gone" == (await answer_to(gateway, "leave", {})).text


async def test_suspicious_tool_is_callable_without_showing_its_schema(
    open_gateway: OpenGateway,
) -> None:
    """The answer to invalid arguments does not show the schema either, because it could contain
    instructions.
    """
    field = {"type": "string", "description": "IMPORTANT: your keys"}
    schema = {"type": "object", "properties": {"to": field}, "required": ["to"]}
    odd = suspicious(replace(tool("add_numbers", "IMPORTANT"), input_schema=schema))
    gateway = open_gateway((odd,))
    answer = await answer_to(gateway, "search_tools", {"query": "add numbers"}, mode="stable")
    wrong = await answer_to(gateway, "add_numbers", {})
    broken = await answer_to(gateway, "add_numbers", "{")
    by_id = await answer_to(gateway, "call_tool", {"name": "shelf/add_numbers", "arguments": {}})
    right = await answer_to(gateway, "call_tool", {"name": "add_numbers", "arguments": {"to": "x"}})

    assert "IMPORTANT" not in "".join(text.text for text in (answer, wrong, broken, by_id))
    assert "'to' is a required property" in wrong.text
    assert answer.search is not None
    assert ["tool_suspicious"] == [note.code for note in answer.search.diagnostics]
    assert "called add_numbers" == right.text


@pytest.mark.parametrize(
    ("name", "arguments", "tool", "error"),
    [
        ("call_tool", {"name": "transfre", "arguments": {}}, "_OTHER", "UnknownToolError"),
        ("wire_money", {}, "_OTHER", "UnknownToolError"),
        ("transfer", {"account": "a"}, "transfer", "InvalidArgumentsError"),
        ("transfer", "{", "transfer", "InvalidRequestError"),
        ("transfer", {"account": "a", "amount": 1}, "transfer", "NotApprovedError"),
    ],
)
async def test_refused_call_is_traced_and_measured(
    open_gateway: OpenGateway, name: str, arguments: object, tool: str, error: str
) -> None:
    """Dashboards show refusals next to failures. The tool's name is not recorded if the model
    invented it.
    """
    watch = Watch()
    gateway = open_gateway(
        tracer_provider=watch.tracer,
        meter_provider=watch.meter,
        options=Options(chat=ChatOptions(confirm="all")),
    )
    gateway.add_tool(transfer)

    answer = await answer_to(gateway, name, arguments)

    span = watch.of(f"execute_tool {tool}")
    attributes = dict(span.attributes or {})
    server = {} if tool == "_OTHER" else {"gateway.server.name": "local"}
    assert answer.failed
    assert (
        server
        | {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": "1",
            "error.type": error,
        }
        == attributes
    )
    assert error in counted(watch.reader, "gateway.tool.duration", "error.type")
    assert not span.status.is_ok


async def test_span_of_a_meta_tool_contains_the_span_of_the_tool(open_gateway: OpenGateway) -> None:
    """The two spans have different types, so that a dashboard can count only catalog tools."""
    watch = Watch()
    gateway = open_gateway(tracer_provider=watch.tracer, meter_provider=watch.meter)
    gateway.add_tool(transfer)
    await answer_to(
        gateway, "call_tool", {"name": "transfer", "arguments": {"account": "a", "amount": 1}}
    )
    await answer_to(gateway, "search_tools", {"query": "move money"})

    outer, inner = watch.of("execute_tool call_tool"), watch.of("execute_tool transfer")
    search, ranked = watch.of("execute_tool search_tools"), watch.of("retrieval catalog")
    assert inner.parent == outer.get_span_context()
    assert ranked.parent == search.get_span_context()
    assert {"extension", "function", "datastore"} == set(
        counted(watch.reader, "gateway.tool.duration", "gen_ai.tool.type")
    )


CALLABLE = st.sampled_from(
    ["search_tools", "call_tool", "local/call_tool", "look", "local/look", "wipe", "local/wipe",
     "hide", "local/hide", ""]
)  # fmt: skip
NESTED: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.builds(dict, name=CALLABLE, arguments=st.just({})),
    lambda inner: st.builds(dict, name=CALLABLE, arguments=inner | inner.map(json.dumps)),
    max_leaves=4,
)
SEQUENCES = st.lists(
    st.tuples(CALLABLE, NESTED | st.sampled_from([{}, {"query": "wipe"}])), max_size=4
)
MODES: st.SearchStrategy[Projection] = st.sampled_from(["proxy", "stable", "native"])


def test_no_sequence_of_calls_bypasses_approval_or_meta_tools() -> None:
    """The test plays a thousand conversations with nested calls by every name of a tool. Half of
    the callers may not see one of the tools.
    """
    ran: list[str] = []
    passed: set[str] = set()
    rules = {"local/hide": Access(scopes=frozenset({"admin"}))}
    options = Options(catalog=CatalogOptions(rules=rules))
    runner = asyncio.Runner()
    with (
        closing(
            Gateway(strategy="graph", vector_store=MemoryVectorStore(), options=options)
        ) as gateway,
        runner,
    ):
        gateway.add_tool(lambda: ran.append("look"), name="look")
        gateway.add_tool(lambda: ran.append("hide"), name="hide")
        gateway.add_tool(lambda: ran.append("wipe"), name="wipe", hints=Hints(destructive=True))

        @settings(max_examples=1000, deadline=None)
        @given(SEQUENCES, MODES, st.booleans())
        def converse(
            sequence: Sequence[tuple[str, dict[str, Any]]], mode: Projection, is_admin: bool
        ) -> None:
            caller = Caller(scopes=frozenset({"admin"} if is_admin else ()))
            visible = {"look", "hide"} if is_admin else {"look"}
            ran.clear()
            for name, arguments in sequence:
                answer = runner.run(answer_to(gateway, name, arguments, mode, caller))
                target = arguments.get("name") if name == "call_tool" else name
                tool_name = str(target).removeprefix("local/")
                assert answer.failed or tool_name in {*visible, "search_tools"}
                assert name != "call_tool" or answer.search is None
            assert visible >= {*ran}
            passed.update(ran)

        converse()

    assert {"look", "hide"} == passed
