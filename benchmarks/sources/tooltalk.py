"""Conversations with ToolTalk's assistant, from the ``tooltalk`` folder of ``nvidia-tooltalk``.

* Its functions are read as source: to import them takes the libraries of language models.
* A file of functions is a server. A query is what the user says directly before functions are
  called, without what was said earlier. Its relevant tools are the functions that are called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from benchmarks.sources.rows import ConvertedSet, Row, query_row, read_json, require, tool_row

_FOLDERS = ("easy", "tooltalk")
"""Folders of conversations."""
_ATTRIBUTES = {"description", "parameters"}
"""What the class of a function must have."""


def convert_conversations(package: Path) -> ConvertedSet:
    """Convert the conversations in *package*.

    Returns:
        Tools and queries, one of each text.

    Raises:
        ConfigError: *package* has no functions or no conversations.
    """
    files = sorted(require(package / "apis").glob("*.py"))
    tools = {tool["id"]: tool for file in files for tool in _tools(file)}
    queries: dict[str, Row] = {}
    for folder in _FOLDERS:
        for file in sorted(require(package / "data" / folder).glob("*.json")):
            for place, text, names in _calls(file):
                called = [name for name in names if name in tools]
                if called:
                    queries.setdefault(text, query_row(f"{file.stem}-{place}", text, called))
    return ConvertedSet(tools=tuple(tools.values()), queries=tuple(queries.values()))


def _calls(file: Path) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the place of each turn from 1, what was said before it, and the functions it calls."""
    turns = read_json(file)["conversation"]
    for place, (request, reply) in enumerate(pairwise(turns), start=1):
        yield (
            place,
            request["text"],
            [call["request"]["api_name"] for call in reply.get("apis", ())],
        )


def _tools(file: Path) -> Iterator[Row]:
    """Yield a tool for each class with a description and parameters."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            attributes = {
                name.id: ast.literal_eval(statement.value)
                for statement in node.body
                if isinstance(statement, ast.Assign)
                for name in statement.targets
                if isinstance(name, ast.Name) and name.id in _ATTRIBUTES
            }
            if attributes.keys() == _ATTRIBUTES:
                schema = _json_schema(attributes["parameters"])
                yield tool_row(node.name, file.stem, attributes["description"], schema)


def _json_schema(parameters: dict[str, Row]) -> Row:
    return {
        "type": "object",
        "properties": {
            name: {key: value for key, value in each.items() if key != "required"}
            for name, each in parameters.items()
        },
        "required": [name for name, each in parameters.items() if each.get("required")],
    }
