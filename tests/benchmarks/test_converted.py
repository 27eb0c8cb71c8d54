"""Public function-calling sets as folders of the common format."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from string import Formatter
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
from benchmarks.sources.homeassistant import WORDS, commands
from benchmarks.sources.tau2 import scenarios
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


MADE = '''
import somethingheavy

@tool
def {name}() -> Tool:
    async def execute(user_id: str, seats: int, when) -> str:
        """
        Change a seat.

        Args:
            user_id: Whose.

        Returns:
            Nothing.
        """
    return execute

def inner() -> None:
    """No tool."""
'''
NUMBERED = '''
class Methods:
    def freeze_card_1234(self, card_id: str) -> str:
        """Freeze a card."""

    def freeze_card_5678(self) -> str:
        """Freeze another one."""

    def initialize(self) -> None:
        """No tool."""
'''


def customer(key: str, reason: str, *calls: str) -> dict[str, Any]:
    """A task of the services'."""
    return {
        "id": key,
        "user_scenario": {"instructions": {"reason_for_call": reason}},
        "ticket": f"The user {key}",
        "evaluation_criteria": {"actions": [{"name": call} for call in calls] or None},
    }


@pytest.fixture
def services(tmp_path: Path) -> Path:
    """The folder of a package with a tool or two a service, and some customers."""
    domains = tmp_path / "data" / "domains"
    for folder in ("airline", "retail", "common", "telecom", "banking"):
        (tmp_path / folder).mkdir()
        name = "banking_seat" if folder == "banking" else f"{folder}_seat"
        (tmp_path / folder / "tools.py").write_text(MADE.format(name=name), encoding="utf-8")
    (tmp_path / "telecom" / "user_tools.py").write_text(MADE.format(name="dial"), encoding="utf-8")
    (tmp_path / "banking" / "BankingAgentTools.py").write_text(NUMBERED, encoding="utf-8")
    flying = [customer("1", "Fly", "seat", "unknown", "seat"), customer("2", "Fly", "seat")]
    written(domains / "airline" / "tasks.json", [[*flying, customer("3", "Nothing")]])
    written(domains / "retail" / "tasks.json", [[customer("1", "Buy", "common_seat", "seat")]])
    written(domains / "telecom" / "tasks_small.json", [[customer("[slow]", "Slow", "dial")]])
    tickets = [customer(key, "Slow", "dial", "seat") for key in ("first", "second")]
    packed = gzip.compress(json.dumps(tickets).encode())
    (domains / "telecom" / "tasks.json.gz").write_bytes(packed)
    return tmp_path


def test_tools_of_services_are_read_by_their_source(services: Path) -> None:
    """One of each name a server, as docstring and annotations tell of it."""
    tools, _ = scenarios(services)

    assert [
        "airline.seat",
        "retail.seat",
        "airline.common_seat",
        "retail.common_seat",
        "telecom.common_seat",
        "telecom.seat",
        "telecom.dial",
        "banking.seat",
        "banking.freeze_card",
    ] == [tool["id"] for tool in tools]
    assert "Change a seat." == tools[0]["description"]
    assert "Freeze a card." == tools[-1]["description"]
    assert {
        "user_id": {"type": "string", "description": "Whose."},
        "seats": {"type": "integer"},
        "when": {"type": "string"},
    } == tools[0]["input_schema"]["properties"]
    assert ["card_id"] == list(tools[-1]["input_schema"]["properties"])


def test_why_a_customer_calls_is_a_request(services: Path) -> None:
    """Each reason once and each solution's first ticket; those of telecom come last."""
    _, queries = scenarios(services)

    assert {
        "airline-1": ("Fly", ["airline.seat"]),
        "retail-1": ("Buy", ["retail.common_seat", "retail.seat"]),
        "telecom-[slow]": ("Slow", ["telecom.dial"]),
        "telecom-2456940119": ("The user first", ["telecom.dial", "telecom.seat"]),
    } == {row["id"]: (row["query"], row["relevant"]) for row in queries}
    assert ["telecom", "telecom"] == [row["id"].partition("-")[0] for row in queries[2:]]
    with pytest.raises(ConfigError, match="unpacked package"):
        scenarios(services / "nowhere")


@pytest.mark.parametrize(("source", "package"), [("tooltalk", "talks"), ("tau2", "services")])
def test_a_package_that_is_read_becomes_a_folder(
    source: str, package: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Named as its command is."""
    folder = str(request.getfixturevalue(package))
    told = CliRunner().invoke(app, [source, folder, "--out", str(tmp_path / "sets")])

    assert 0 == told.exit_code, told.output
    assert read(tmp_path / "sets" / source).queries


def said(pattern: str, lists: Mapping[str, Any], rules: Mapping[str, Any]) -> Iterator[str]:
    """Every way to fill in the lists of *pattern*."""
    names = [name for _, name, _, _ in Formatter().parse(pattern) if name]
    for words in product(*(lists[name]["values"] for name in names)):
        yield pattern.format_map(dict(zip(names, words, strict=True)))


def read_language(language: Mapping[str, Any]) -> Any:
    """A language's file, as the sampler is given it."""
    return SimpleNamespace(slot_lists=language["lists"], expansion_rules={})


@pytest.fixture(params=["invented", "installed"])
def hassil(request: pytest.FixtureRequest) -> Any:
    """What says patterns: one that knows lists alone, and the real one where it is."""
    if request.param == "installed":
        return pytest.importorskip(
            "hassil", reason="not a dependency: benchmarks.converted asks it"
        )
    return SimpleNamespace(
        Intents=SimpleNamespace(from_dict=read_language),
        parse_sentence=lambda text: SimpleNamespace(expression=text),
        sample_expression=said,
    )


def block(*patterns: str) -> dict[str, Any]:
    """Some patterns of an intent."""
    return {"sentences": patterns}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of a package that has the same few patterns for each language."""
    told = {"description": "Does it.", "slots": {"name": {"description": "What."}, "area": {}}}
    names = ("HassTurnOn", "HassVacuumStart", "HassSetVolume", "HassListAddItem")
    written(tmp_path / "intents.json", [dict.fromkeys((*names, "HassNevermind"), told)])
    intents = {
        "HassTurnOn": [block("turn on the {name}"), block("on!"), block("light up the {area}")],
        "HassVacuumStart": [block("vacuum with the {name}"), block("vacuum the {floor} floor")],
        "HassSetVolume": [block("set the volume to {volume} in {zone}")],
        "HassListAddItem": [block("remember  to buy {thing}")],
        "HassNevermind": [block("please never mind")],
        "HassUnheardOf": [block("do what is unheard of")],
    }
    lists = {
        "volume": {"range": {"from": 0, "to": 100}},
        "zone": {"wildcard": True},
        "thing": {"wildcard": True},
        "floor": {"values": ["ground"]},
    }
    for tongue in json.loads(WORDS.read_text(encoding="utf-8")):
        data = {name: {"data": blocks} for name, blocks in intents.items()}
        language = {"language": tongue, "intents": data, "lists": lists}
        written(tmp_path / "data" / f"{tongue}.json", [language])
    return tmp_path


def test_patterns_of_commands_are_said_with_words_of_the_language(home: Path, hassil: Any) -> None:
    """Two an intent at most, none too short or of a device that has no part in it."""
    tools, queries = commands(home, hassil)

    assert 4 == len(tools)
    properties = tools[0]["input_schema"]["properties"]
    assert {"type": "string", "description": "What."} == properties["name"]
    english = {row["id"]: row["query"] for row in queries if row["lang"] == "en"}
    lit, turned = english.pop("en-HassTurnOn-0"), english.pop("en-HassTurnOn-1")
    assert lit in {"light up the kitchen", "light up the bedroom"}
    assert turned in {"turn on the lamp", "turn on the TV"}
    assert {
        "en-HassVacuumStart-0": "vacuum the ground floor",
        "en-HassSetVolume-0": "set the volume to 20 in kitchen",
        "en-HassListAddItem-0": "remember to buy milk",
    } == english
    assert {5} == {
        sum(row["id"].startswith(f"{each}-H") for row in queries) for each in ("de", "zh-TW")
    }
    assert {"zh"} == {row["lang"] for row in queries if row["id"].startswith("zh-")}
    assert commands(home, hassil) == (tools, queries)


def test_every_language_has_a_word_for_everything() -> None:
    """A blank one would make a command that nobody says."""
    words = json.loads(WORDS.read_text(encoding="utf-8"))

    assert 39 == len(words)
    assert {("area", "name", "floor", "message", "item", "music")} == set(
        map(tuple, words.values())
    )
    assert all(word.strip() for lists in words.values() for each in lists.values() for word in each)
