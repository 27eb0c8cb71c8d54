"""Conversion of tau2-bench to tools and queries, over a small copy of the package's folder."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.sources.tau2 import convert_customers
from gateway.errors import ConfigError
from tests.benchmarks.written import write_json

TOOLS = '''
import framework

def {name}() -> object:
    async def execute(user_id: str, seats: int, when: "date") -> str:
        """
        Change a seat.

        Args:
            user_id: The customer.

        Returns:
            Nothing.
        """
    return execute

def helper() -> None:
    """No tool."""
'''
METHODS = '''
class Methods:
    def freeze_card_1234(self, card_id: str) -> str:
        """Freeze a card."""

    def freeze_card_5678(self) -> str:
        """Freeze another one."""

    def initialize(self) -> None:
        """No tool."""
'''


def task(key: str, reason: str, *calls: str) -> dict[str, Any]:
    """Return a task of the services."""
    return {
        "id": key,
        "user_scenario": {"instructions": {"reason_for_call": reason}},
        "ticket": f"The user {key}",
        "evaluation_criteria": {"actions": [{"name": call} for call in calls] or None},
    }


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Folder of a package with one or two tools per service, and some customers."""
    folder = tmp_path / "tau2"
    domains = folder / "data" / "domains"
    for service in ("airline", "retail", "common", "telecom", "banking"):
        (folder / service).mkdir(parents=True)
        name = "banking_seat" if service == "banking" else f"{service}_seat"
        (folder / service / "tools.py").write_text(TOOLS.format(name=name), encoding="utf-8")
    (folder / "telecom" / "user_tools.py").write_text(TOOLS.format(name="dial"), encoding="utf-8")
    (folder / "banking" / "BankingAgentTools.py").write_text(METHODS, encoding="utf-8")
    flights = [task("1", "Fly", "seat", "unknown", "seat"), task("2", "Fly", "seat")]
    write_json(domains / "airline" / "tasks.json", [*flights, task("3", "Nothing")])
    write_json(domains / "retail" / "tasks.json", [task("1", "Buy", "common_seat", "seat")])
    write_json(domains / "telecom" / "tasks_small.json", [task("[slow]", "Slow", "dial")])
    tickets = [task(key, "Slow", "dial", "seat") for key in ("first", "second")]
    packed = gzip.compress(json.dumps(tickets).encode())
    (domains / "telecom" / "tasks.json.gz").write_bytes(packed)
    return folder


def test_tools_are_read_from_the_source_code_of_the_package(package: Path) -> None:
    """Docstrings and annotations are parsed, and nothing is imported."""
    tools = convert_customers(package).tools

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
        "user_id": {"type": "string", "description": "The customer."},
        "seats": {"type": "integer"},
        "when": {"type": "string"},
    } == tools[0]["input_schema"]["properties"]
    assert ["card_id"] == list(tools[-1]["input_schema"]["properties"])


def test_reasons_for_which_customers_call_become_queries(package: Path) -> None:
    """Equal reasons and later tickets of a solution are omitted. Telecom comes last."""
    queries = convert_customers(package).queries

    assert {
        "airline-1": ("Fly", ["airline.seat"]),
        "retail-1": ("Buy", ["retail.common_seat", "retail.seat"]),
        "telecom-[slow]": ("Slow", ["telecom.dial"]),
        "telecom-2456940119": ("The user first", ["telecom.dial", "telecom.seat"]),
    } == {row["id"]: (row["query"], row["relevant"]) for row in queries}
    assert ["telecom", "telecom"] == [row["id"].partition("-")[0] for row in queries[2:]]
    with pytest.raises(ConfigError, match="unpacked package"):
        convert_customers(package / "nowhere")
