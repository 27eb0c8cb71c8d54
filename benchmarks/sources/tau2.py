"""Customers of four services (τ²-bench), out of the ``tau2`` folder of ``inspect-evals``.

* Tools are read as source: to import them takes the framework of the evaluation.
* A service is a server, with the tools of the agent and those of the customer's phone. A request
  is why the customer calls, or a ticket about it; its gold is what the solution calls.
* Banking has tools only: of what its solutions call the agent first reads in documents.
* Telecom mixes a few troubles in a thousand ways: one ticket a solution, and of those a sample.
"""

from __future__ import annotations

import ast
import gzip
import json
import random
import re
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import docstring_parser

from benchmarks.sources.rows import Row, Rows, loaded, needed, query

T = TypeVar("T", bound=ast.stmt)

_FILES: Sequence[tuple[str, str]] = (
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
_DOCUMENTED = "banking/BankingAgentTools.py"
"""Methods that the banking agent reads of in documents, each with a number at its end."""
_REASONS = {
    "airline": "airline/tasks.json",
    "retail": "retail/tasks.json",
    "telecom": "telecom/tasks_small.json",
}
"""Servers, and the files that say why their customers call."""
_TICKETS = "telecom/tasks.json.gz"
_SAMPLE = 80
"""How many requests of telecom are kept."""
_SEED = 7
_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def scenarios(package: Path) -> Rows:
    """Read the tools and the customers in *package*.

    Returns:
        Tools, one of each name a server; and queries in an order of chance that is always the
        same, telecom's last.

    Raises:
        ConfigError: If *package* has no such files.
    """
    tools: dict[str, Row] = {}
    for tool in _tools(package):
        tools.setdefault(tool["id"], tool)
    domains = package / "data" / "domains"
    queries = [*_reasons(domains, tools), *_tickets(domains, tools)]
    random.Random(_SEED).shuffle(queries)  # noqa: S311  (nothing secret: it must repeat)
    telecom = [row for row in queries if row["id"].startswith("telecom-")]
    others = [row for row in queries if not row["id"].startswith("telecom-")]
    return list(tools.values()), others + telecom[:_SAMPLE]


def _tools(package: Path) -> Iterator[Row]:
    for server, file in _FILES:
        # A tool is what a function of its name makes.
        for name, made in _within(package / file, ast.FunctionDef, ast.AsyncFunctionDef):
            yield _tool(name.removeprefix(f"{server}_"), server, made)
    for _, method in _within(package / _DOCUMENTED, ast.ClassDef, ast.FunctionDef):
        numbered = re.fullmatch(r"(\w+)_\d{4}", method.name)
        if numbered:
            yield _tool(numbered[1], "banking", method)


def _within(
    file: Path, outer: type[ast.FunctionDef | ast.ClassDef], inner: type[T]
) -> Iterator[tuple[str, T]]:
    """Give what stands directly in the functions or classes of a file, with their names."""
    for holder in ast.parse(needed(file).read_text(encoding="utf-8")).body:
        if isinstance(holder, outer):
            yield from ((holder.name, step) for step in holder.body if isinstance(step, inner))


def _tool(name: str, server: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Row:
    """Describe a function by its docstring and its annotations."""
    told = docstring_parser.parse(ast.get_docstring(function) or "")
    texts = {param.arg_name: param.description for param in told.params}
    taken = {each.arg: each for each in function.args.args if each.arg != "self"}
    properties = {key: _property(each, texts.get(key)) for key, each in taken.items()}
    return {
        "id": f"{server}.{name}",
        "name": name,
        "server": server,
        "description": " ".join(filter(None, (told.short_description, told.long_description))),
        "input_schema": {"type": "object", "properties": properties},
    }


def _property(argument: ast.arg, text: str | None) -> Row:
    kind = ast.unparse(argument.annotation) if argument.annotation else ""
    row = {"type": _TYPES.get(kind, "string")}
    return row | {"description": text} if text else row


def _reasons(domains: Path, tools: Container[str]) -> Iterable[Row]:
    """Give a request for each reason to call."""
    queries: dict[str, Row] = {}
    for server, file in _REASONS.items():
        for task in loaded(domains / file):
            called = _called(task, server, tools)
            text = task["user_scenario"]["instructions"]["reason_for_call"]
            if called:
                queries.setdefault(text, query(f"{server}-{task['id']}", text, called))
    return queries.values()


def _tickets(domains: Path, tools: Container[str]) -> Iterable[Row]:
    """Give a request for each solution: its first ticket."""
    queries: dict[tuple[str, ...], Row] = {}
    for task in json.loads(gzip.decompress(needed(domains / _TICKETS).read_bytes())):
        called = _called(task, "telecom", tools)
        if called:
            # What the package calls a ticket is as long as a sentence.
            key = f"telecom-{zlib.crc32(task['id'].encode())}"
            queries.setdefault(tuple(called), query(key, task["ticket"], called))
    return queries.values()


def _called(task: Row, server: str, tools: Container[str]) -> list[str]:
    actions = task["evaluation_criteria"].get("actions") or ()
    called = dict.fromkeys(f"{server}.{action['name']}" for action in actions)
    return [key for key in called if key in tools]
