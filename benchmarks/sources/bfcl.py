"""The Berkeley Function Calling Leaderboard's sets, out of the data folder of ``bfcl-eval``.

* Requests that come with a few functions, and the first turns of conversations with systems of
  many functions.
* All functions of a set make one catalog, one of each name; a request's gold is what its answer
  calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.sources.rows import Row, Rows, needed, query

FUNCTIONS: Mapping[str, Sequence[str]] = {
    "bfcl_live": ("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"),
    "bfcl_calls": ("simple_python", "multiple", "parallel", "parallel_multiple"),
}
"""Sets of requests that come with their functions, and the categories that each is made of."""
TURNS = "bfcl_turns"
"""The set of the first turns."""
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
_TYPES = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "any": "string",
    "int": "integer",
}
_SCRIPTS = (("zh", "[\u4e00-\u9fff]"), ("ko", "[\uac00-\ud7af]"), ("th", "[\u0e00-\u0e7f]"))


def functions(data: Path, categories: Sequence[str]) -> Rows:
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
            called = [name for call in answers[row["id"]] for name in call]
            text = _text(row)
            if text.strip():
                queries.setdefault(text, query(row["id"], text, called, lang=_tongue(text)))
    return list(tools.values()), list(queries.values())


def turns(data: Path) -> Rows:
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
            text = _text(row)
            asked = query(row["id"], text, called, lang=_tongue(text))
            queries.append(asked | {"sequence": called})
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


def _tongue(text: str) -> str:
    return next((name for name, script in _SCRIPTS if re.search(script, text)), "en")


def _rows(path: Path) -> Iterator[Row]:
    with needed(path).open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())
