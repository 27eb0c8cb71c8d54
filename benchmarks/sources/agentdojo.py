"""The user tasks of AgentDojo, as its installed package returns them.

Each suite is a server. The relevant tools of a task are those that its reference solution calls,
in order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.sources.rows import ConvertedSet, Row, query_row, tool_row

SUITES_VERSION = "v1.2.2"


def convert_tasks(suites: Mapping[str, Any]) -> ConvertedSet:
    """Convert *suites*, as the package returns them by name.

    A tool that several suites have may serve the requests of each. A task that calls nothing is
    left out.
    """
    tools = {row["id"]: row for name, suite in suites.items() for row in _tools(name, suite)}
    queries = [
        row for name, suite in suites.items() for row in _queries(name, suite) if row["relevant"]
    ]
    alike: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for key, tool in tools.items():
        alike[tool["name"], tool["description"]].append(key)
    for row in queries:
        relevant = [tools[key] for key in row["relevant"]]
        row["groups"] = [alike[tool["name"], tool["description"]] for tool in relevant]
        row["relevant"] = [key for group in row["groups"] for key in group]
    return ConvertedSet(tools=tuple(tools.values()), queries=tuple(queries))


def _tools(server: str, suite: Any) -> Sequence[Row]:
    return [
        tool_row(
            tool.name,
            server,
            tool.description,
            tool.parameters.model_json_schema(),
            key=f"{server}.{tool.name}",
        )
        for tool in suite.tools
    ]


def _queries(server: str, suite: Any) -> Sequence[Row]:
    environment = suite.load_and_inject_default_environment({})
    known = {f"{server}.{tool.name}" for tool in suite.tools}
    rows = []
    for key, task in suite.user_tasks.items():
        calls = [f"{server}.{call.function}" for call in task.ground_truth(environment)]
        row = query_row(f"{server}_{key}", task.PROMPT, [call for call in calls if call in known])
        rows.append(row | {"sequence": row["relevant"]})
    return rows
