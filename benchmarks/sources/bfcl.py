"""The sets of the Berkeley Function Calling Leaderboard, from the data folder of ``bfcl-eval``.

* Requests that come with a few functions, and the first turns of conversations with systems of
  many functions.
* All functions of a set make one catalog, one of each name. The relevant tools of a request are
  those that its answer calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.sources.rows import ConvertedSet, Row, query_row, require, tool_row

FUNCTION_SETS: Mapping[str, Sequence[str]] = {
    "bfcl_live": ("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"),
    "bfcl_calls": ("simple_python", "multiple", "parallel", "parallel_multiple"),
}
"""Sets of requests that come with their functions, and the categories of each."""
CONVERSATION_SET = "bfcl_turns"
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
"""The files that describe the systems, and their names in conversations."""
_JSON_TYPES = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "any": "string",
    "int": "integer",
}
"""JSON Schema's types by those of Python."""
_NO_PARAMETERS: Row = {"type": "dict", "properties": {}}
_SCRIPTS = (("zh", "[\u4e00-\u9fff]"), ("ko", "[\uac00-\ud7af]"), ("th", "[\u0e00-\u0e7f]"))


def convert_functions(data: Path, categories: Sequence[str]) -> ConvertedSet:
    """Convert requests that come with the functions that may serve them.

    Returns:
        Tools, one of each name, and queries, one of each text.

    Raises:
        ConfigError: *data* has no such categories.
    """
    tools: dict[str, Row] = {}
    queries: dict[str, Row] = {}
    for category in categories:
        answers = _answers(data, category)
        for row in _rows(data / f"BFCL_v4_{category}.json"):
            for function in row["function"]:
                tools.setdefault(function["name"], _tool(function, function["name"], ""))
            called = [name for call in answers[row["id"]] for name in call]
            text = _first_turn(row)
            if text.strip():
                queries.setdefault(text, query_row(row["id"], text, called, lang=_language(text)))
    return ConvertedSet(tools=tuple(tools.values()), queries=tuple(queries.values()))


def convert_conversations(data: Path) -> ConvertedSet:
    """Convert the first turn of each conversation.

    Returns:
        The functions of all systems, and queries with the calls of the turn, in order. A turn that
        calls nothing is left out.

    Raises:
        ConfigError: *data* has no conversations.
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
            text = _first_turn(row)
            query = query_row(row["id"], text, called, lang=_language(text))
            queries.append(query | {"sequence": called})
    return ConvertedSet(tools=tuple(tools.values()), queries=tuple(queries))


def _answers(data: Path, category: str) -> Mapping[str, Sequence[Any]]:
    rows = _rows(data / "possible_answer" / f"BFCL_v4_{category}.json")
    return {row["id"]: row["ground_truth"] for row in rows}


def _tool(function: Row, key: str, server: str) -> Row:
    schema = _json_schema(function.get("parameters") or _NO_PARAMETERS)
    return tool_row(function["name"], server, function["description"], schema, key=key)


def _json_schema(value: Any) -> Any:
    """Return a JSON Schema for one that has Python's types."""
    if isinstance(value, dict):
        converted = {name: _json_schema(each) for name, each in value.items()}
        kind = converted.get("type")
        if isinstance(kind, str):
            converted["type"] = _JSON_TYPES.get(kind, kind)
        return converted
    return [_json_schema(each) for each in value] if isinstance(value, list) else value


def _first_turn(row: Row) -> str:
    """Return what the user says in the first turn."""
    messages = row["question"][0]
    return "\n".join(message["content"] for message in messages if message["role"] == "user")


def _language(text: str) -> str:
    return next((name for name, script in _SCRIPTS if re.search(script, text)), "en")


def _rows(path: Path) -> Iterator[Row]:
    with require(path).open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())
