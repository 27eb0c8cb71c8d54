"""Public function-calling sets, made into folders of the common format.

    python -m benchmarks.converted bfcl PACKAGE/data --out DIR
    python -m benchmarks.converted agentdojo --out DIR

* They come out of packages (``bfcl-eval``, ``agentdojo``), each in an environment of its own: the
  first is read from its unpacked ``data`` folder, the second is asked, so that command runs where
  it is installed.
* Written to call one of a few functions at hand, they make catalogs here: all functions of a set
  together, one of each name; a request's gold is what its answer calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gateway.errors import ConfigError

FUNCTIONS: Mapping[str, Sequence[str]] = {
    "bfcl_live": ("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"),
    "bfcl_calls": ("simple_python", "multiple", "parallel", "parallel_multiple"),
}
"""Sets of requests that come with their functions, and the categories that each is made of."""
TURNS = "bfcl_turns"
"""The set of the first turns of conversations with systems of many functions."""
SYSTEMS: Mapping[str, str] = {
    "gorilla_file_system": "GorillaFileSystem",
    "math_api": "MathAPI",
    "message_api": "MessageAPI",
    "posting_api": "TwitterAPI",
    "ticket_api": "TicketAPI",
    "trading_bot": "TradingBot",
    "travel_booking": "TravelAPI",
    "vehicle_control": "VehicleControlAPI",
}
"""The files that describe those systems, and what conversations call them."""
DOJO = "agentdojo"
_SUITES = "v1.2.2"
_TYPES = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "any": "string",
    "int": "integer",
}
_SCRIPTS = (("zh", "[\u4e00-\u9fff]"), ("ko", "[\uac00-\ud7af]"), ("th", "[\u0e00-\u0e7f]"))

Row = dict[str, Any]
app = typer.Typer(add_completion=False, help=__doc__)


@app.command()
def bfcl(
    data: Annotated[Path, typer.Argument(help="The package's data folder.")],
    out: Annotated[Path, typer.Option(help="Where a folder a set goes.")],
) -> None:
    """Write the Berkeley Function Calling Leaderboard's sets."""
    for name, categories in FUNCTIONS.items():
        _write(out / name, *functions(data, categories))
    _write(out / TURNS, *turns(data))


@app.command()
def agentdojo(out: Annotated[Path, typer.Option(help="Where the folder goes.")]) -> None:
    """Write the tasks of AgentDojo, as its installed package tells them."""
    try:
        suites = import_module("agentdojo.task_suite.load_suites").get_suites(_SUITES)
    except ImportError:
        raise typer.BadParameter("agentdojo is not installed in this environment") from None
    _write(out / DOJO, *tasks(suites))


def functions(data: Path, categories: Sequence[str]) -> tuple[list[Row], list[Row]]:
    """Read requests that come with the functions that may serve them.

    Returns:
        Tools, one of each name, and queries, each text once.

    Raises:
        ConfigError: If *data* has no such categories.
    """
    tools: dict[str, Row] = {}
    queries: dict[str, Row] = {}
    for category in categories:
        answers = _answers(data, category)
        for row in _rows(data / f"BFCL_v4_{category}.json"):
            for function in row["function"]:
                tools.setdefault(function["name"], _tool(function, function["name"], ""))
            called = dict.fromkeys(name for call in answers[row["id"]] for name in call)
            text = _text(row)
            if text.strip():
                queries.setdefault(text, _query(row["id"], text, list(called)))
    return list(tools.values()), list(queries.values())


def turns(data: Path) -> tuple[list[Row], list[Row]]:
    """Read the first turn of each conversation.

    Returns:
        The functions of all systems, and queries whose gold is what the turn calls, in order.

    Raises:
        ConfigError: If *data* has no conversations.
    """
    tools: dict[str, Row] = {}
    for file, system in SYSTEMS.items():
        for function in _rows(data / "multi_turn_func_doc" / f"{file}.json"):
            key = f"{system}.{function['name']}"
            tools[key] = _tool(function, key, system)
    answers = _answers(data, "multi_turn_base")
    queries = []
    for row in _rows(data / "BFCL_v4_multi_turn_base.json"):
        calls = [str(call).partition("(")[0].strip() for call in answers[row["id"]][0]]
        names = [f"{system}.{call}" for call in calls for system in row["involved_classes"]]
        called = [name for name in dict.fromkeys(names) if name in tools]
        if called:
            queries.append(_query(row["id"], _text(row), called) | {"sequence": called})
    return list(tools.values()), queries


def tasks(suites: Mapping[str, Any]) -> tuple[list[Row], list[Row]]:
    """Read the users' tasks of *suites*, as the package gives them; each is a server.

    Returns:
        Tools and queries; a tool that several suites have serves the requests of each.
    """
    tools: dict[str, Row] = {}
    queries = []
    for name, suite in suites.items():
        for each in suite.tools:
            tools[f"{name}.{each.name}"] = {
                "id": f"{name}.{each.name}",
                "name": each.name,
                "server": name,
                "description": each.description,
                "input_schema": each.parameters.model_json_schema(),
            }
        environment = suite.load_and_inject_default_environment({})
        for key, task in suite.user_tasks.items():
            calls = [f"{name}.{call.function}" for call in task.ground_truth(environment)]
            called = [call for call in dict.fromkeys(calls) if call in tools]
            if called:
                row = _query(f"{name}_{key}", task.PROMPT, called)
                queries.append(row | {"sequence": called})
    alike: dict[tuple[str, str], list[str]] = {}
    for key, tool in tools.items():
        alike.setdefault((tool["name"], tool["description"]), []).append(key)
    for query in queries:
        gold = [tools[key] for key in query["relevant"]]
        query["groups"] = [alike[tool["name"], tool["description"]] for tool in gold]
        query["relevant"] = [key for group in query["groups"] for key in group]
    return list(tools.values()), queries


def _answers(data: Path, category: str) -> Mapping[str, Sequence[Any]]:
    rows = _rows(data / "possible_answer" / f"BFCL_v4_{category}.json")
    return {row["id"]: row["ground_truth"] for row in rows}


def _tool(function: Row, key: str, server: str) -> Row:
    return {
        "id": key,
        "name": function["name"],
        "server": server,
        "description": function["description"],
        "input_schema": _schema(function.get("parameters") or {"type": "dict", "properties": {}}),
    }


def _schema(value: Any) -> Any:
    """Give a JSON Schema for one whose types are Python's."""
    if isinstance(value, dict):
        found = {name: _schema(each) for name, each in value.items()}
        kind = found.get("type")
        return found | {"type": _TYPES.get(kind, kind)} if isinstance(kind, str) else found
    return [_schema(each) for each in value] if isinstance(value, list) else value


def _text(row: Row) -> str:
    """Give what the user says in the first turn."""
    return "\n".join(said["content"] for said in row["question"][0] if said["role"] == "user")


def _query(key: str, text: str, called: list[str]) -> Row:
    tongue = next((name for name, script in _SCRIPTS if re.search(script, text)), "en")
    return {"id": key, "query": text, "lang": tongue, "relevant": called}


def _rows(path: Path) -> Iterator[Row]:
    if not path.is_file():
        raise ConfigError(f"{path} is missing: give the data folder of the unpacked package")
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def _write(folder: Path, tools: Sequence[Row], queries: Sequence[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _lines(folder / "catalog.jsonl", tools)
    _lines(folder / "queries.jsonl", queries)
    Console().print(f"{folder.name}: {len(tools)} tools, {len(queries)} queries")


def _lines(path: Path, rows: Iterable[Row]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    app()
