"""Customers of four services (τ²-bench), from the ``tau2`` folder of ``inspect-evals``.

* Tools are read as source: to import them takes the framework of the evaluation.
* A service is a server, with the tools of the agent and those of the customer's phone. A query is
  why the customer calls, or a ticket about it; its relevant tools are those of the solution.
* Banking has tools alone: what its solutions call, the agent first reads in documents.
* Telecom combines a few troubles in a thousand ways: one ticket a solution, and of those a sample.
"""

from __future__ import annotations

import ast
import gzip
import json
import random
import re
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

import docstring_parser

from benchmarks.sources.rows import ConvertedSet, Row, query_row, read_json, require, tool_row

Node = TypeVar("Node", bound=ast.stmt)

_TOOL_FILES: Sequence[tuple[str, str]] = (
    ("airline", "airline/tools.py"),
    ("retail", "retail/tools.py"),
    ("airline", "common/tools.py"),
    ("retail", "common/tools.py"),
    ("telecom", "common/tools.py"),
    ("telecom", "telecom/tools.py"),
    ("telecom", "telecom/user_tools.py"),
    ("banking", "banking/tools.py"),
)
"""Servers, and the files of their tools."""
_BANKING_METHODS = "banking/BankingAgentTools.py"
"""Methods that the banking agent reads of in documents, each with a number at its end."""
_REASON_FILES = {
    "airline": "airline/tasks.json",
    "retail": "retail/tasks.json",
    "telecom": "telecom/tasks_small.json",
}
"""Servers, and the files that say why their customers call."""
_TICKETS_FILE = "telecom/tasks.json.gz"
_SAMPLE = 80
"""Queries of telecom."""
_SEED = 7
_JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def convert_customers(package: Path) -> ConvertedSet:
    """Convert the tools and the customers in *package*.

    Returns:
        Tools, one of each name a server; and queries in a random order that is always the same,
        those of telecom last.

    Raises:
        ConfigError: *package* has no such files.
    """
    tools: dict[str, Row] = {}
    for tool in _tools(package):
        tools.setdefault(tool["id"], tool)
    domains = package / "data" / "domains"
    queries = list(chain(_reasons(domains, tools), _tickets(domains, tools)))
    random.Random(_SEED).shuffle(queries)
    telecom = [row for row in queries if row["id"].startswith("telecom-")]
    others = [row for row in queries if not row["id"].startswith("telecom-")]
    return ConvertedSet(tools=tuple(tools.values()), queries=(*others, *telecom[:_SAMPLE]))


def _tools(package: Path) -> Iterator[Row]:
    for server, file in _TOOL_FILES:
        # A tool is the inner function of a function of its name.
        for name, function in _members(package / file, ast.FunctionDef, ast.AsyncFunctionDef):
            yield _tool(name.removeprefix(f"{server}_"), server, function)
    for _, method in _members(package / _BANKING_METHODS, ast.ClassDef, ast.FunctionDef):
        numbered = re.fullmatch(r"(\w+)_\d{4}", method.name)
        if numbered:
            yield _tool(numbered[1], "banking", method)


def _members(
    file: Path, outer: type[ast.FunctionDef | ast.ClassDef], inner: type[Node]
) -> Iterator[tuple[str, Node]]:
    """Yield what stands directly in the functions or classes of a file, with their names."""
    for owner in ast.parse(require(file).read_text(encoding="utf-8")).body:
        if isinstance(owner, outer):
            yield from ((owner.name, node) for node in owner.body if isinstance(node, inner))


def _tool(name: str, server: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Row:
    """Return the row of a function by its docstring and its annotations."""
    docstring = docstring_parser.parse(ast.get_docstring(function) or "")
    texts = {param.arg_name: param.description for param in docstring.params}
    arguments = {each.arg: each for each in function.args.args if each.arg != "self"}
    properties = {key: _property(each, texts.get(key)) for key, each in arguments.items()}
    parts = filter(None, (docstring.short_description, docstring.long_description))
    schema = {"type": "object", "properties": properties}
    return tool_row(name, server, " ".join(parts), schema, key=f"{server}.{name}")


def _property(argument: ast.arg, description: str | None) -> Row:
    annotation = ast.unparse(argument.annotation) if argument.annotation else ""
    row = {"type": _JSON_TYPES.get(annotation, "string")}
    return row | {"description": description} if description else row


def _reasons(domains: Path, tools: Container[str]) -> Iterable[Row]:
    """Return a query for each reason to call."""
    queries: dict[str, Row] = {}
    for server, file in _REASON_FILES.items():
        for task in read_json(domains / file):
            called = _called(task, server, tools)
            text = task["user_scenario"]["instructions"]["reason_for_call"]
            if called:
                queries.setdefault(text, query_row(f"{server}-{task['id']}", text, called))
    return queries.values()


def _tickets(domains: Path, tools: Container[str]) -> Iterable[Row]:
    """Return a query for each solution: its first ticket."""
    queries: dict[tuple[str, ...], Row] = {}
    for task in json.loads(gzip.decompress(require(domains / _TICKETS_FILE).read_bytes())):
        called = _called(task, "telecom", tools)
        if called:
            # The package's own id is as long as a sentence.
            key = f"telecom-{zlib.crc32(task['id'].encode())}"
            queries.setdefault(tuple(called), query_row(key, task["ticket"], called))
    return queries.values()


def _called(task: Row, server: str, tools: Container[str]) -> list[str]:
    actions = task["evaluation_criteria"].get("actions") or ()
    called = dict.fromkeys(f"{server}.{action['name']}" for action in actions)
    return [key for key in called if key in tools]
