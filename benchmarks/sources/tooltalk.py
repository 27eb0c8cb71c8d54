"""Talks with ToolTalk's assistant, out of the unpacked ``tooltalk`` folder of ``nvidia-tooltalk``.

* Its functions are read as source: to import them takes a language model's libraries.
* A file of functions is a server. A request is what the user said right before functions were
  called, without what was said earlier; its gold is what was called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from benchmarks.sources.rows import Row, Rows, loaded, needed, query

_TALKS = ("easy", "tooltalk")
"""Folders of conversations."""
_TOLD = {"description", "parameters"}
"""What a function says of itself."""


def utterances(package: Path) -> Rows:
    """Read the conversations in *package*.

    Returns:
        Tools and queries, each text once.

    Raises:
        ConfigError: If *package* has no functions or no conversations.
    """
    files = sorted(needed(package / "apis").glob("*.py"))
    tools = {tool["id"]: tool for file in files for tool in _tools(file)}
    queries: dict[str, Row] = {}
    for folder in _TALKS:
        for file in sorted(needed(package / "data" / folder).glob("*.json")):
            turns = loaded(file)["conversation"]
            for place, (said, reply) in enumerate(pairwise(turns), start=1):
                calls = [call["request"]["api_name"] for call in reply.get("apis", ())]
                called = [name for name in calls if name in tools]
                if called:
                    row = query(f"{file.stem}-{place}", said["text"], called)
                    queries.setdefault(said["text"], row)
    return list(tools.values()), list(queries.values())


def _tools(file: Path) -> Iterator[Row]:
    """Give the classes that say of themselves what they do and take."""
    for step in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(step, ast.ClassDef):
            told = {
                name.id: ast.literal_eval(each.value)
                for each in step.body
                if isinstance(each, ast.Assign)
                for name in each.targets
                if isinstance(name, ast.Name) and name.id in _TOLD
            }
            if told.keys() == _TOLD:
                yield _tool(step.name, file.stem, told["description"], told["parameters"])


def _tool(name: str, server: str, description: str, parameters: dict[str, Row]) -> Row:
    return {
        "id": name,
        "name": name,
        "server": server,
        "description": description,
        "input_schema": {
            "type": "object",
            "properties": {
                key: {part: value for part, value in each.items() if part != "required"}
                for key, each in parameters.items()
            },
            "required": [key for key, each in parameters.items() if each.get("required")],
        },
    }
