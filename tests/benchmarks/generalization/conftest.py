"""Three small data sets, and their evidence: scores of every query and tool."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from benchmarks.generalization.evidence import Evidence, load_evidence
from gateway.testing import HashingEmbedder
from tests.benchmarks.written import write_set

VERBS = ("create", "delete", "list", "update", "send", "archive", "share", "find")
NOUNS = (
    *("invoice", "customer", "meeting", "email", "ticket", "photo", "folder", "payment", "order"),
    *("parcel", "flight", "hotel", "recipe", "song", "playlist", "contract", "device", "alarm"),
    *("branch", "release", "survey", "report", "budget", "lesson", "patient", "vehicle", "garden"),
)
JOBS = (
    "create an invoice for the customer, and then send the invoice by email, and then archive the "
    "old report of the budget; find a flight to Rome. find a hotel near the station; share the "
    "photo with the family! list all songs of the playlist; update the alarm of the device"
)


def write_tools(folder: Path, nouns: Sequence[str], *, origin: str) -> Path:
    """Write a data set with a tool for each verb and noun, and a server for each noun."""
    tools = [
        {
            "id": f"{verb}-{noun}",
            "name": f"{verb}_{noun}",
            "server": noun,
            "description": f"{verb.title()} any {noun} of the account.",
            "input_schema": {"type": "object", "properties": {f"{noun}_id": {"type": "string"}}},
        }
        for verb, noun in product(VERBS, nouns)
    ]
    queries = [
        {"id": f"q{number}", "query": f"please {verb} my {noun}s", "relevant": [f"{verb}-{noun}"]}
        for number, (verb, noun) in enumerate(product(VERBS[::3], nouns[:6]))
    ]
    queries += [
        {"id": "named", "query": f"use list_{nouns[0]} now", "relevant": [f"list-{nouns[0]}"]},
        {"id": "misspelt", "query": f"delte the {nouns[1]}", "relevant": [f"delete-{nouns[1]}"]},
        {"id": "long", "query": JOBS, "relevant": [f"create-{nouns[0]}", f"send-{nouns[0]}"]},
        {"id": "none", "query": "nothing of this", "relevant": []},
    ]
    write_set(folder, catalog=tools, queries=queries)
    (folder / "origin.txt").write_text(origin, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders of three data sets. The first has more tools than the gateway ranks."""
    root = tmp_path_factory.mktemp("sets")
    return [
        write_tools(root / "large", NOUNS, origin="ours"),
        write_tools(root / "small", NOUNS[5:14], origin="ours"),
        write_tools(root / "other", NOUNS[9:20], origin="theirs"),
    ]


@pytest.fixture(scope="session")
def embedder() -> HashingEmbedder:
    return HashingEmbedder(48)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evidence")


@pytest.fixture(scope="session")
def sets(folders: list[Path], embedder: HashingEmbedder, cache: Path) -> list[Evidence]:
    return [load_evidence(folder, embedder=embedder, cache=cache, origin="") for folder in folders]
