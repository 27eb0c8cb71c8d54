"""Public function-calling sets as folders of the common format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from pydantic import BaseModel
from typer.testing import CliRunner

from benchmarks.converted import app, installed
from benchmarks.data import read
from benchmarks.sources.agentdojo import tasks
from benchmarks.sources.bfcl import FUNCTIONS, SYSTEMS, TURNS, functions, turns
from benchmarks.sources.tooltalk import utterances
from gateway.errors import ConfigError


def written(path: Path, rows: Sequence[object]) -> None:
    """*rows* as JSON Lines at *path*."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")


def asked(key: str, text: str, *names: str) -> dict[str, object]:
    """A request with its functions."""
    schema = {"type": "dict", "properties": {"n": {"type": "float"}, "all": {"type": "array"}}}
    return {
        "id": key,
        "question": [
            [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
        ],
        "function": [
            {"name": name, "description": f"Do {name}.", "parameters": schema} for name in names
        ],
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The folder of the package, with one request a category and one conversation."""
    for category in (each for categories in FUNCTIONS.values() for each in categories):
        row = asked(f"{category}_0", f"Please {category}", "add", category)
        written(tmp_path / f"BFCL_v4_{category}.json", [row, row | {"id": "again"}])
        answers = [{"id": key, "ground_truth": [{category: {}}]} for key in (row["id"], "again")]
        written(tmp_path / "possible_answer" / f"BFCL_v4_{category}.json", answers)
    for file in SYSTEMS:
        each = {"name": "cd", "description": file, "parameters": {"type": "dict"}}
        written(tmp_path / "multi_turn_func_doc" / f"{file}.json", [each])
    talk = asked("talk_0", "\u6211\u60f3") | {"involved_classes": ["MathAPI", "TradingBot"]}
    written(tmp_path / "BFCL_v4_multi_turn_base.json", [talk, talk | {"id": "idle"}])
    calls = [
        {"id": "talk_0", "ground_truth": [["cd(folder='a')", "cd()", "ls()"], ["rm()"]]},
        {"id": "idle", "ground_truth": [[]]},
    ]
    written(tmp_path / "possible_answer" / "BFCL_v4_multi_turn_base.json", calls)
    return tmp_path


def test_functions_of_all_requests_make_one_catalog(data: Path) -> None:
    """One of each name, with types that JSON Schema knows, and each text asked once."""
    tools, queries = functions(data, ("multiple", "parallel"))

    assert ["add", "multiple", "parallel"] == [tool["id"] for tool in tools]
    assert "object" == tools[0]["input_schema"]["type"]
    assert "number" == tools[0]["input_schema"]["properties"]["n"]["type"]
    assert [
        ("multiple_0", "Please multiple", ["multiple"]),
        ("parallel_0", "Please parallel", ["parallel"]),
    ] == [(query["id"], query["query"], query["relevant"]) for query in queries]


def test_the_first_turn_of_a_conversation_is_a_request(data: Path) -> None:
    """For what it calls of the systems that are involved, and one that calls nothing is none."""
    tools, queries = turns(data)

    assert {"MathAPI", "TradingBot"} < {tool["server"] for tool in tools}
    assert len(SYSTEMS) == len(tools)
    (query,) = queries
    assert ["MathAPI.cd", "TradingBot.cd"] == query["relevant"] == query["sequence"]
    assert "zh" == query["lang"]


def test_the_command_writes_folders_that_can_be_read(data: Path, tmp_path: Path) -> None:
    """A folder a set; without the data it says what is missing."""
    out = tmp_path / "sets"
    told = CliRunner().invoke(app, ["bfcl", str(data), "--out", str(out)])

    assert 0 == told.exit_code, told.output
    names = {*FUNCTIONS, TURNS}
    assert names == {folder.name for folder in out.iterdir()}
    assert all(read(out / name).queries for name in names)
    with pytest.raises(ConfigError, match="unpacked package"):
        functions(tmp_path / "nowhere", ("multiple",))


class Where(BaseModel):
    """What a tool is given."""

    city: str


@dataclass(frozen=True, kw_only=True)
class Errand:
    """A user's task, solved by calls of these names."""

    PROMPT: str
    calls: tuple[str, ...]

    def ground_truth(self, environment: Any) -> Sequence[Any]:
        """The calls."""
        assert "environment" == environment
        return [SimpleNamespace(function=name) for name in self.calls]


@dataclass(frozen=True, kw_only=True)
class Errands:
    """A suite of such."""

    tools: Sequence[Any]
    user_tasks: Mapping[str, Errand]

    def load_and_inject_default_environment(self, injected: Mapping[str, str]) -> str:
        """Whatever tasks are solved in."""
        assert not injected
        return "environment"


def test_a_tool_that_two_suites_have_serves_the_tasks_of_both() -> None:
    """And a task that calls nothing is left out."""
    mail = SimpleNamespace(name="send", description="Send an e-mail.", parameters=Where)
    rooms = SimpleNamespace(name="rooms", description="List rooms.", parameters=Where)
    idle, busy = Errand(PROMPT="Hm.", calls=()), Errand(PROMPT="Write.", calls=("send", "send"))

    found, queries = tasks(
        {
            "office": Errands(tools=[mail], user_tasks={"task_0": idle, "task_1": busy}),
            "travel": Errands(tools=[mail, rooms], user_tasks={}),
        }
    )

    assert ["office.send", "travel.send", "travel.rooms"] == [tool["id"] for tool in found]
    assert ["city"] == found[0]["input_schema"]["required"]
    (query,) = queries
    assert ("office_task_1", ["office.send"]) == (query["id"], query["sequence"])
    assert [["office.send", "travel.send"]] == query["groups"]
    assert ["office.send", "travel.send"] == query["relevant"]


def test_a_package_that_is_not_installed_is_named() -> None:
    """What is asked instead of read stands in another environment."""
    with pytest.raises(typer.BadParameter, match="nosuchpackage is not installed"):
        installed("nosuchpackage.suites")


ALARMS = """
import somethingheavy

class Suite:
    description = "No function: it takes nothing."

class AddAlarm(API):
    description = "Sets an alarm."
    parameters = {
        "time": {"type": "string", "description": "When.", "required": True},
        "note": {"type": "string", "required": False},
    }
    is_action = True
"""


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    """The folder of a package with one function and one conversation."""
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
    for folder in ("apis", "data/easy", "data/tooltalk", "data/databases"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "apis" / "alarm.py").write_text(ALARMS, encoding="utf-8")
    for file in ("easy/Alarm-easy", "tooltalk/Alarm-again"):
        written(tmp_path / "data" / f"{file}.json", [{"conversation": turns}])
    written(tmp_path / "data" / "databases" / "Alarm.json", [{}])
    return tmp_path


def test_what_the_user_said_before_a_call_is_a_request(talks: Path) -> None:
    """Each text once, for the functions that are known; nothing of the package is imported."""
    tools, queries = utterances(talks)

    (tool,) = tools
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
    (query,) = queries
    assert ("Alarm-easy-3", ["AddAlarm"]) == (query["id"], query["relevant"])
    assert "Wake me at six and at seven" == query["query"]
    with pytest.raises(ConfigError, match="unpacked package"):
        utterances(talks / "nowhere")


def test_a_package_that_is_read_becomes_a_folder(talks: Path, tmp_path: Path) -> None:
    """It has the name of its command."""
    result = CliRunner().invoke(app, ["tooltalk", str(talks), "--out", str(tmp_path / "sets")])

    assert 0 == result.exit_code, result.output
    assert read(tmp_path / "sets" / "tooltalk").queries
