"""The mixed catalog and its frozen requests."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.data import rows
from benchmarks.graded import Answer
from benchmarks.mixed import DATA, agent_key, read_mixed
from tests.benchmarks.written import write_set

FIXTURE = Path(__file__).parent / "fixture"
FROZEN = {
    "agents.jsonl": "9d217acd45037c727c6559a76e4c9f2930fe07442c2d968ce6254dd0d7bebc91",
    "queries.jsonl": "3a1e1a93039c417c103fb681c61605195fd75f906eac21c957eaf92ce679fdfb",
    "servers.jsonl": "8f65ca16b176e201abe28b01538af9a7f496df826ff93f3bffe03eb1b1e78e2c",
    "skills.jsonl": "4254ece1f8470a2bf5fb41544d988ea48976b8b4e00462e9b8c3413796e0258f",
}
"""SHA-256 of files that were written before any ranking was inspected."""


@pytest.mark.parametrize("name", sorted(FROZEN))
def test_frozen_files_of_requests_are_unchanged(name: str) -> None:
    """Requests that are corrected after a ranking was inspected would measure nothing."""
    assert FROZEN[name] == hashlib.sha256((DATA / name).read_bytes()).hexdigest()


def test_mixed_catalog_has_the_documented_size() -> None:
    """At least 100 agents and skills, 30 graded requests per slice, 40 unanswerable requests."""
    queries = list(rows(DATA / "queries.jsonl"))
    slices = Counter(str(query["slice"]) for query in queries)
    unanswered = {query["slice"] for query in queries if not query.get("gold")}
    keys = [agent_key(card) for card in rows(DATA / "agents.jsonl")]
    skills = [str(skill["name"]) for skill in rows(DATA / "skills.jsonl")]

    assert min(len(set(keys)), len(set(skills))) >= 100
    assert (len(keys), len(skills)) == (len(set(keys)), len(set(skills)))
    assert {"none"} == unanswered
    assert slices.pop("none") >= 40
    assert min(slices.values()) >= 30
    assert len(queries) == len({query["query"] for query in queries})
    assert sum(query["lang"] != "en" for query in queries) > 0.18 * len(queries)


def tiny(folder: Path, gold: object) -> Path:
    """Write an agent, a skill, a server and one request."""
    return write_set(
        folder,
        agents=[{"name": "Rail", "url": "https://agents.example/rail"}],
        skills=[{"name": "pack"}],
        servers=[{"name": "bank", "description": "Money."}, {"name": "none", "description": "-"}],
        queries=[{"id": "m-1", "slice": "mixed", "lang": "en", "query": "go", "gold": gold}],
    )


def test_relevant_answers_are_read_as_ids_of_the_gateway(tmp_path: Path) -> None:
    """The tools of a server are one answer. Public requests come first and have one grade."""
    gold = {"agent:rail": 2, "skill:pack": 1, "server:bank": 2, "tool:t1": 2, "tools:home": 1}

    mixed = read_mixed(FIXTURE, data=tiny(tmp_path, gold))

    ids = {key: answer.grade for answer in mixed.requests[-1].gold for key in answer.ids}
    assert ids == {
        "agent:catalog/Rail": 2,
        "skill:catalog/pack": 1,
        "server:bank": 2,
        "bank/sign_in": 2,
        "home/play_music": 1,
        "home-2/play_music": 1,
    }
    assert {"bank": "Money."} == mixed.servers
    assert Answer(ids=frozenset({"bank/sign_in"}), grade=1) in mixed.requests[0].gold
