"""The users' tasks of AgentDojo, as its installed package tells them.

Each suite is a server; a task's gold is what its solution calls, in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.sources.rows import Row, Rows, query

SUITES = "v1.2.2"
"""The version of the suites."""


def tasks(suites: Mapping[str, Any]) -> Rows:
    """Read the users' tasks of *suites*, as the package gives them.

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
                row = query(f"{name}_{key}", task.PROMPT, called)
                queries.append(row | {"sequence": called})
    alike: dict[tuple[str, str], list[str]] = {}
    for key, tool in tools.items():
        alike.setdefault((tool["name"], tool["description"]), []).append(key)
    for row in queries:
        gold = [tools[key] for key in row["relevant"]]
        row["groups"] = [alike[tool["name"], tool["description"]] for tool in gold]
        row["relevant"] = [key for group in row["groups"] for key in group]
    return list(tools.values()), queries
