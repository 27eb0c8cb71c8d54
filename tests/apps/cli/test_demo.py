"""`gateway demo`: three conversations with real servers."""

from __future__ import annotations

import json
import signal

import httpx2
import pytest

from gateway.cli import NOTHING, OK
from gateway.cli.commands.demo import find_program, policy
from gateway.errors import ConfigError
from gateway.testing import Call, Faults, ModelRequest, ScriptedModel, Turn
from tests.apps.cli.running import Place, Ran, start_python

_FOUND = '{"tools":[{"name":"t"}]}'
_EXPECTED = ["excel/create_workbook", "time/get_current_time", "word/create_document"]
_NO_KEY = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Folder in which all tests of this module run commands, so that the catalog is embedded
    once.
    """
    return Place(folder=tmp_path_factory.mktemp("demo"))


def run_with_console(place: Place) -> tuple[Ran, str]:
    """Run the demo until its console is served, open the console, and stop the demo."""
    env = {"GATEWAY_CACHE_DIR": str(place.cache)}
    arguments = ("-m", "gateway", "demo", "--json", "--trace", "--console")
    output = place.folder / "demo.json"
    started = start_python(*arguments, cwd=place.folder, env=env, output=output)
    with started as (process, messages):
        line = next(line for line in messages if "console: " in line)
        url = httpx2.URL(line.split("console: ")[1].strip())
        with httpx2.Client(follow_redirects=True) as client:
            client.get(url).raise_for_status()
            activity = client.get(url.join("/console/activity?kind=call&format=json")).text
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    return Ran(code=process.returncode, out=output.read_text("utf-8"), err=err), activity


def test_demo_conversations_call_the_right_tools_with_fewer_tokens(place: Place) -> None:
    """The demo runs in a child process without a key of a model service. At the end, its console is
    opened.
    """
    ran, activity = run_with_console(place)
    data = ran.json

    assert "create_workbook" in activity
    assert (OK, True, True) == (ran.code, data["ok"], data["scripted"]), ran.err
    assert [True] * 3 == [item["ok"] for item in data["conversations"]]
    assert _EXPECTED == [item["calls"][-1]["result"]["tool_id"] for item in data["conversations"]]
    result = data["eval"]
    assert (data["index"]["tools"], 26) == (result["tools"], result["requests"]["hand"])
    assert result["requests"]["rules"] > 90
    assert result["recall@5"]["rules"] >= 0.95
    assert result["recall@5"]["hand"] >= 0.7
    assert len(result["never_found"]) <= 2
    totals = data["totals"]
    assert data["index"]["tools"] > 50
    assert (3, 9) == (totals["calls"], totals["turns"])
    assert totals["definition_tokens"] < totals["catalog_tokens"] / 5
    conversations = [each for each in data["trace"] if each["name"] == "invoke_agent gateway"]
    turns = [
        turn["attributes"]["gen_ai.usage.input_tokens"]
        for each in conversations
        for turn in each["children"]
        if turn["name"] == "chat scripted"
    ]
    assert (3, 9, totals["prompt_tokens"]) == (len(conversations), len(turns), sum(turns))
    for item in data["conversations"]:
        (searched,) = item["searches"]
        assert searched["queries"] == [item["request"]]
        best = searched["result"]["matches"][0]
        assert best["confidence"] > 0.3
        assert best["evidence"]["vector"] > 0.15
        assert item["turns"][0]["proxies"] == []
        assert best["name"] in item["turns"][1]["proxies"]
        assert item["calls"][-1]["result"]["content"][0]["text"] in item["answer"]


def test_demo_prints_request_search_tools_result_and_cost(place: Place) -> None:
    ran = place.run("demo", "--trace", env=_NO_KEY)

    assert ran.code == OK
    assert "SCRIPTED" in ran.err
    for data in (
        "request  Wie spät ist es in Tokio? \n",
        "confidence",
        "search_tools, call_tool, convert_time",
        "create_document",
        "The tool answered: ",
        "catalog_tokens",
        "  execute_tool get_current_time",
        "3 of 3 conversations called the right tool.",
        "% of 26 requests by hand, ",
    ):
        assert data in ran.out


def test_demo_judges_a_configured_model_by_its_real_calls(place: Place) -> None:
    """A conversation fails if the model only claims success, raises an error or misuses a tool."""
    elsewhere = place.folder / "meeting-notes.docx"

    def careless(request: ModelRequest) -> Turn:
        if "Tokio" in request.user_text and not request.last_tool_results():
            return Turn(calls=(Call("get_current_time", {}),))
        if "Wrod" in request.user_text and not request.last_tool_results():
            return Turn(calls=(Call("create_document", {"filename": str(elsewhere)}),))
        return Turn("Done, trust me.")

    with ScriptedModel(careless) as model:
        model.fail(Faults(status=401))
        env = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "", "GATEWAY_MODEL": "mine"}
        ran = place.run("demo", "--json", env={**env, "NO_PROXY": "127.0.0.1"})

    faults = [item["faults"] for item in ran.json["conversations"]]
    assert (NOTHING, False, "mine") == (ran.code, ran.json["ok"], ran.json["model"])
    assert "trace" not in ran.json
    assert "AuthenticationError" in faults[0][0]
    assert faults[1] == ["time/get_current_time was not called successfully"]
    assert faults[2][1] == "the file meeting-notes.docx does not exist"
    (call,) = ran.json["conversations"][1]["calls"]
    assert call["result"] is None
    assert "timezone" in call["error"]
    assert "was not approved" in ran.json["conversations"][2]["calls"][0]["error"]
    assert not elsewhere.exists()


def test_demo_names_a_server_that_is_not_installed_with_a_remedy() -> None:
    with pytest.raises(ConfigError, match=r"'no-such-program' is not installed.*\[demo\]"):
        find_program("no-such-program")


@pytest.mark.parametrize(
    ("text", "content", "parameters", "arguments"),
    [
        ("Make a.xlsx", _FOUND, {"required": ["filename"]}, ["a.xlsx"]),
        ("In Europe/Paris", _FOUND, {"required": ["timezone"]}, ["Europe/Paris"]),
        ("Ist es in Tokio spät?", _FOUND, {"required": ["timezone"]}, ["Asia/Tokyo"]),
        ("Make something", _FOUND, {"required": ["filename"]}, None),
        ("In Paris", _FOUND, {"required": ["timezone"]}, None),
        ("Make a.xlsx", _FOUND, {"required": ["colour"]}, None),
        ("Make a.xlsx", "no JSON", {}, None),
        ("Make a.xlsx", '{"tools":[{"name":"unseen"}]}', {}, None),
        ("Make a.xlsx", _FOUND, None, None),
    ],
)
def test_scripted_model_of_the_demo_calls_a_match_without_inventing_arguments(
    text: str, content: str, parameters: object, arguments: list[str] | None
) -> None:
    """The user's request is *text*, and *content* is the result of the model's search."""
    call = {"id": "1", "type": "function", "function": {"name": "search_tools", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": text},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": content},
    ]
    tools = [{"type": "function", "function": {"name": "t", "parameters": parameters}}]
    body = {"model": "m", "messages": messages, "tools": tools}

    turn = policy(ModelRequest(path="/", body=body))

    called = [json.loads(call.raw).values() for call in turn.calls]
    assert ([] if arguments is None else [arguments]) == [list(values) for values in called]
    assert turn.text.startswith("None of the tools") == (arguments is None)
