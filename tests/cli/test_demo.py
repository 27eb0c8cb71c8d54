"""`gateway demo`: three real conversations with real servers."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from gateway.chat.events import Called
from gateway.cli.demo import view
from gateway.cli.demo.conversations import REQUESTS, Outcome
from gateway.cli.demo.functions import convert_length, find_invoice, list_open_invoices
from gateway.cli.demo.scripted_model import policy
from gateway.cli.demo.stage import find_servers
from gateway.cli.exit_codes import NOTHING, OK
from gateway.errors import ConfigError, InvalidRequestError
from gateway.testing import Call, Faults, ModelRequest, ScriptedModel, Turn
from tests.cli.running import Place, Ran, child

_EXPECTED = ["excel/create_workbook", "time/get_current_time", "word/create_document"]
_NO_KEY = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The demo in a process of its own, without a key, as a newcomer runs it."""
    folder = tmp_path_factory.mktemp("newcomer")
    env = {"GATEWAY_CACHE_DIR": str(folder / "cache")}
    return child("-m", "gateway", "demo", "--json", "--trace", cwd=folder, env=env)


def test_three_conversations_call_the_right_tools_with_fewer_tokens(newcomer: Ran) -> None:
    data = newcomer.json

    assert (OK, True, True) == (newcomer.code, data["ok"], data["scripted"]), newcomer.err
    assert [True] * 3 == [item["ok"] for item in data["conversations"]]
    assert _EXPECTED == [item["calls"][-1]["tool_id"] for item in data["conversations"]]
    totals = data["totals"]
    assert totals["tools"] == data["index"]["tools"] > 50
    assert totals["sent_schema_tokens"] < totals["all_schema_tokens"] / 5
    assert totals["cache_hits"] >= 3
    names = [span["name"] for span in data["trace"]]
    assert names.count("invoke_agent") == 3


def test_each_found_tool_carries_scores_and_its_reasons(newcomer: Ran) -> None:
    for item in newcomer.json["conversations"]:
        (searched,) = item["searches"]
        assert searched["queries"] == [item["request"]]
        best = searched["result"]["matches"][0]
        assert best["confidence"] > 0.3
        assert best["evidence"]["vector"] > 0.2
        assert item["turns"][0]["found_tools"] == []
        assert best["name"] in item["turns"][1]["found_tools"]
        assert item["calls"][-1]["text"] in item["answer"]


def test_people_see_the_request_the_search_the_tools_the_result_and_the_cost(
    place: Place,
) -> None:
    ran = place.run("demo", "--trace", env=_NO_KEY)

    assert ran.code == OK
    for data in (
        "SCRIPTED",
        "User: Wie spät ist es",
        "Model searches: Wie spät ist es",
        "cosine",
        "tools the model sees: search_tools, call_tool, convert_time",
        "Real result of word/create_document",
        "Answer: ",
        "tokens if every schema were sent (estimate)",
        "cache hits",
        "execute_tool get_current_time",
        "3 of 3 conversations called the right tool.",
    ):
        assert data in ran.out


def test_a_configured_model_is_asked_and_judged_by_what_it_really_called(place: Place) -> None:
    """A model that only claims success, one that fails and one that misuses a tool all fail."""

    def careless(request: ModelRequest) -> Turn:
        if "Tokio" in request.user_text and not request.last_tool_results():
            return Turn(calls=(Call("get_current_time", {}),))
        return Turn("Done, trust me.")

    with ScriptedModel(careless) as model:
        model.fail(Faults(status=401))
        env = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "", "GATEWAY_MODEL": "mine"}
        ran = place.run("demo", "--json", env={**env, "NO_PROXY": "127.0.0.1"})

    faults = [item["faults"] for item in ran.json["conversations"]]
    assert (NOTHING, False, "mine") == (ran.code, ran.json["ok"], ran.json["model"])
    assert "trace" not in ran.json
    assert "AuthenticationError" in faults[0][0]
    assert faults[1] == ["time/get_current_time was not called with success"]
    assert faults[2][1] == "the file meeting-notes.docx does not exist"
    (call,) = ran.json["conversations"][1]["calls"]
    assert (None, True) == (call["tool_id"], call["is_error"])


def test_a_conversation_that_failed_says_so_on_screen() -> None:
    event = Called(call_id="1", tool="x", arguments={}, error="unknown tool 'x'")
    outcome = Outcome(
        request=REQUESTS[0], events=(event,), answer="", duration_s=0.1, faults=("it did not",)
    )
    console = Console(file=StringIO(), width=100)

    console.print(view.conversation(1, outcome), view.verdict([outcome]))

    file = console.file
    assert isinstance(file, StringIO)
    assert "Real result of nothing was sent: unknown tool 'x'" in file.getvalue()
    assert "FAILED: it did not." in file.getvalue()
    assert "0 of 1 conversations" in file.getvalue()


def test_a_server_that_is_not_installed_is_named_with_the_mend(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'mcp-server-time' is not installed.*\[demo\]"):
        find_servers(tmp_path, search_path=str(tmp_path))


def _request(
    *messages: dict[str, object], tools: tuple[dict[str, object], ...] = ()
) -> ModelRequest:
    body = {"model": "m", "messages": list(messages), "tools": list(tools)}
    return ModelRequest(path="/", body=body)


def _after_search(text: str, found: str, parameters: object) -> ModelRequest:
    """The user said *text*; a search found the tool ``t``."""
    call = {"id": "1", "type": "function", "function": {"name": "search_tools", "arguments": "{}"}}
    return _request(
        {"role": "system", "content": [{"type": "text", "text": "No folder is named."}]},
        {"role": "user", "content": text},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": found},
        tools=({"type": "function", "function": {"name": "t", "parameters": parameters}},),
    )


@pytest.mark.parametrize(
    ("text", "parameter", "arguments"),
    [
        ("Make a.xlsx", "filename", {"filename": "a.xlsx"}),
        ("In Europe/Paris", "timezone", {"timezone": "Europe/Paris"}),
        ("Make something", "filename", None),
        ("In Paris", "timezone", None),
        ("Make a.xlsx", "colour", None),
    ],
)
def test_the_policy_fills_in_what_it_was_told_and_never_invents(
    text: str, parameter: str, arguments: dict[str, str] | None
) -> None:
    request = _after_search(text, '{"tools":[{"name":"t"}]}', {"required": [parameter]})

    turn = policy(request)

    assert [arguments] * len(turn.calls) == [call.arguments for call in turn.calls]
    assert bool(turn.calls) == (arguments is not None)
    assert bool(turn.text) == (arguments is None)


@pytest.mark.parametrize(
    ("found", "parameters"),
    [("no JSON", {}), ('{"tools":[{"name":"unseen"}]}', {}), ('{"tools":[{"name":"t"}]}', None)],
)
def test_the_policy_calls_only_what_it_sees_with_a_schema(found: str, parameters: object) -> None:
    turn = policy(_after_search("Make a.xlsx", found, parameters))

    assert ((), True) == (turn.calls, turn.text.startswith("None of the tools"))


def test_the_functions_of_the_demo_do_what_they_say() -> None:
    assert find_invoice("INV-2042")["paid"] is False
    assert [invoice["number"] for invoice in list_open_invoices("Orchard")] == ["INV-2043"]
    assert convert_length(1, "km", "m") == 1000
    with pytest.raises(InvalidRequestError, match="INV-2041"):
        find_invoice("INV-1")
