"""Conversion of public function-calling data sets to the common format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from pydantic import BaseModel
from typer.testing import CliRunner

from benchmarks.converted import app, import_installed
from benchmarks.data import origin_of, read
from benchmarks.sources import bfcl, tooltalk
from benchmarks.sources.agentdojo import convert_tasks
from gateway.errors import ConfigError
from tests.benchmarks.written import write_lines


def request(key: str, text: str, *names: str) -> dict[str, object]:
    """Return a request with functions called *names*."""
    schema = {"type": "dict", "properties": {"n": {"type": "float"}, "all": {"type": "array"}}}
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    functions = [{"name": name, "description": name, "parameters": schema} for name in names]
    return {"id": key, "question": [messages], "function": functions}


@pytest.fixture
def leaderboard(tmp_path: Path) -> Path:
    """Data folder of the Berkeley leaderboard, with one text per category and one conversation with
    a call.
    """
    folder = tmp_path / "data"
    for category in (item for result in bfcl.FUNCTION_SETS.values() for item in result):
        row = request(f"{category}_0", f"Please {category}", "add", category)
        write_lines(folder / f"BFCL_v4_{category}.json", [row, row | {"id": "again"}])
        answers = [{"id": key, "ground_truth": [{category: {}}]} for key in (row["id"], "again")]
        write_lines(folder / "possible_answer" / f"BFCL_v4_{category}.json", answers)
    for file in bfcl.SYSTEMS:
        function = {"name": "cd", "description": file, "parameters": {"type": "dict"}}
        write_lines(folder / "multi_turn_func_doc" / f"{file}.json", [function])
    talk = request("talk_0", "\u6211\u60f3") | {"involved_classes": ["MathAPI", "TradingBot"]}
    write_lines(folder / "BFCL_v4_multi_turn_base.json", [talk, talk | {"id": "idle"}])
    calls = [
        {"id": "talk_0", "ground_truth": [["cd(folder='a')", "cd()", "ls()"], ["rm()"]]},
        {"id": "idle", "ground_truth": [[]]},
    ]
    write_lines(folder / "possible_answer" / "BFCL_v4_multi_turn_base.json", calls)
    return folder


def test_functions_of_all_requests_become_one_catalog(leaderboard: Path) -> None:
    """Names and texts are unique, and types are converted to JSON Schema."""
    converted = bfcl.convert_functions(leaderboard, ("multiple", "parallel"))

    assert ["add", "multiple", "parallel"] == [tool["id"] for tool in converted.tools]
    schema = converted.tools[0]["input_schema"]
    assert ("object", "number") == (schema["type"], schema["properties"]["n"]["type"])
    assert [
        ("multiple_0", "Please multiple", ["multiple"]),
        ("parallel_0", "Please parallel", ["parallel"]),
    ] == [(query["id"], query["query"], query["relevant"]) for query in converted.queries]


def test_first_turn_of_a_conversation_becomes_a_query(leaderboard: Path) -> None:
    """A turn without calls is omitted."""
    converted = bfcl.convert_conversations(leaderboard)

    assert {"MathAPI", "TradingBot"} < {tool["server"] for tool in converted.tools}
    assert len(bfcl.SYSTEMS) == len(converted.tools)
    (query,) = converted.queries
    assert ["MathAPI.cd", "TradingBot.cd"] == query["relevant"] == query["sequence"]
    assert "zh" == query["lang"]


def test_conversion_command_writes_a_folder_for_each_set(leaderboard: Path, tmp_path: Path) -> None:
    """The folders have one origin. Missing data is named in the error."""
    out = tmp_path / "sets"
    result = CliRunner().invoke(app, ["bfcl", str(leaderboard), "--out", str(out)])

    assert 0 == result.exit_code, result.output
    assert {*bfcl.FUNCTION_SETS, bfcl.CONVERSATION_SET} == {path.name for path in out.iterdir()}
    assert all(read(folder).queries for folder in out.iterdir())
    assert {"bfcl"} == {origin_of(folder) for folder in out.iterdir()}
    with pytest.raises(ConfigError, match="unpacked package"):
        bfcl.convert_functions(tmp_path / "nowhere", ("multiple",))


class CityArguments(BaseModel):
    """Arguments of a tool."""

    city: str


@dataclass(frozen=True, kw_only=True)
class FakeTask:
    """A user task that *calls* solve."""

    PROMPT: str
    calls: tuple[str, ...]

    def ground_truth(self, environment: Any) -> Sequence[Any]:
        """Return the calls."""
        assert "environment" == environment
        return [SimpleNamespace(function=name) for name in self.calls]


@dataclass(frozen=True, kw_only=True)
class FakeSuite:
    """A suite of tasks."""

    tools: Sequence[Any]
    user_tasks: Mapping[str, FakeTask]

    def load_and_inject_default_environment(self, injected: Mapping[str, str]) -> str:
        """Return the environment of the tasks."""
        assert not injected
        return "environment"


def test_tool_of_two_suites_is_relevant_for_the_tasks_of_both() -> None:
    """A task without calls is omitted."""
    mail = SimpleNamespace(name="send", description="Send an e-mail.", parameters=CityArguments)
    rooms = SimpleNamespace(name="rooms", description="List rooms.", parameters=CityArguments)
    idle = FakeTask(PROMPT="Hm.", calls=())
    write = FakeTask(PROMPT="Write.", calls=("send", "send", "unknown"))

    converted = convert_tasks(
        {
            "office": FakeSuite(tools=[mail], user_tasks={"task_0": idle, "task_1": write}),
            "travel": FakeSuite(tools=[mail, rooms], user_tasks={}),
        }
    )

    ids = [tool["id"] for tool in converted.tools]
    assert ["office.send", "travel.send", "travel.rooms"] == ids
    assert ["city"] == converted.tools[0]["input_schema"]["required"]
    (query,) = converted.queries
    assert ("office_task_1", ["office.send"]) == (query["id"], query["sequence"])
    assert [["office.send", "travel.send"]] == query["groups"]
    assert ["office.send", "travel.send"] == query["relevant"]


def test_package_of_a_data_set_that_is_not_installed_is_named() -> None:
    """The message contains the name of the package, not of the module."""
    with pytest.raises(typer.BadParameter, match="nosuchpackage is not installed"):
        import_installed("nosuchpackage.suites")


ALARMS = """
import somethingheavy

class Suite:
    description = "No function: it has no parameters."

class AddAlarm(API):
    description = "Sets an alarm."
    parameters = {
        "time": {"type": "string", "description": "When.", "required": True},
        "note": {"type": "string", "required": False},
    }
    is_action = True
"""


@pytest.fixture
def assistant(tmp_path: Path) -> Path:
    """Folder of a package with one function, and one conversation in two files."""
    folder = tmp_path / "tooltalk"
    call = {"request": {"api_name": "AddAlarm"}}
    other = {"request": {"api_name": "Unknown"}}
    turns = [
        {"role": "user", "text": "Hello"},
        {"role": "assistant", "text": "Yes?"},
        {"role": "user", "text": "Wake me at six and at seven"},
        {"role": "assistant", "text": "Done.", "apis": [call, other, call]},
        {"role": "user", "text": "Who won?"},
        {"role": "assistant", "text": "I cannot tell.", "apis": [other]},
    ]
    (folder / "apis").mkdir(parents=True)
    (folder / "apis" / "alarm.py").write_text(ALARMS, encoding="utf-8")
    for file in ("easy/Alarm-easy", "tooltalk/Alarm-again"):
        write_lines(folder / "data" / f"{file}.json", [{"conversation": turns}])
    return folder


def test_user_messages_before_calls_become_queries(assistant: Path) -> None:
    """Texts are unique, and nothing of the package is imported."""
    converted = tooltalk.convert_conversations(assistant)

    (tool,) = converted.tools
    assert ("AddAlarm", "alarm", "Sets an alarm.") == (
        tool["id"],
        tool["server"],
        tool["description"],
    )
    assert {
        "type": "object",
        "properties": {
            "time": {"type": "string", "description": "When."},
            "note": {"type": "string"},
        },
        "required": ["time"],
    } == tool["input_schema"]
    (query,) = converted.queries
    assert ("Alarm-easy-3", ["AddAlarm"]) == (query["id"], query["relevant"])
    assert "Wake me at six and at seven" == query["query"]
    with pytest.raises(ConfigError, match="unpacked package"):
        tooltalk.convert_conversations(assistant / "nowhere")
