"""The benchmark of the mixed catalog, over the fixture and some entries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.graded import FIGURES, Answer
from benchmarks.mixed import SLICES, Request, read_mixed
from benchmarks.registry import CHIEF, WAYS, Found, judged, lines, measure
from gateway.testing import HashingEmbedder
from tests.benchmarks.written import write_set

FIXTURE = Path(__file__).parent / "fixture"
AGENT = {
    "name": "Rail Journeys",
    "description": "Plans train journeys.",
    "url": "https://agents.example/rail",
    "skills": [{"name": "Seat", "tags": ["railway"], "examples": ["a window seat to Vienna"]}],
}
SKILL = {"name": "packing-list", "description": "What goes into a suitcase.", "body": "Layers."}
QUERIES = [
    ("agents", "train journeys", {"agent:rail": 2}),
    ("skills", "packing list", {"skill:packing-list": 2, "agent:rail": 1}),
    ("names", "bank", {"server:bank": 2, "tools:bank": 1}),
    ("none", "xyzzy plugh", {}),
]


def data(folder: Path) -> Path:
    """Write the manifests and requests."""
    requests = [
        {"id": f"{slice_}-1", "slice": slice_, "lang": "en", "query": query, "gold": gold}
        for slice_, query, gold in QUERIES
    ]
    servers = [{"name": "bank", "description": "Money."}]
    return write_set(folder, agents=[AGENT], skills=[SKILL], servers=servers, queries=requests)


async def test_requests_of_every_slice_are_ranked_by_every_policy(tmp_path: Path) -> None:
    """The main policy comes first. Unanswerable requests are counted separately."""
    mixed = read_mixed(FIXTURE, data=data(tmp_path))

    report = await measure(mixed, WAYS, embedder=HashingEmbedder())

    policies = report["policies"]
    assert {way.name for way in WAYS} == set(policies)
    chief = policies[CHIEF.name]
    assert {name: chief[name] for name in FIGURES} == {name: report[name] for name in FIGURES}
    assert {"tools": 5, "agents": 1, "skills": 1, "names": 1} == {
        name: result["n"] for name, result in chief["slices"].items()
    }
    assert 1 == chief["none"]["n"]
    assert {"tools": 8, "agents": 1, "skills": 1, "requests": 9} == {
        name: count for name, count in report["catalog"].items() if name != "servers"
    }
    assert {"tools", "agents", "skills"} == set(report["own"])


def test_slices_of_requests_have_equal_weight_in_the_mean() -> None:
    """Three requests of one slice do not outweigh one of another."""
    gold = (Answer(ids=frozenset({"a"}), grade=2),)

    def pair(slice_: str, number: int, *ids: str) -> tuple[Request, Found]:
        request = Request(id=f"{slice_}-{number}", slice=slice_, lang="de", query="q", gold=gold)
        return request, Found(ids=ids, sure=True)

    nothing = Request(id="none-1", slice="none", lang="en", query="q", gold=())
    result = judged(
        [
            *(pair("agents", number, "a") for number in range(3)),
            pair("skills", 1),
            (nothing, Found(ids=("a",), sure=False)),
            (nothing, Found(ids=("a",), sure=True)),
        ]
    )

    assert (0.5, 0.75) == (result["ndcg_at_10"], result["requests"]["ndcg_at_10"])
    assert {"accepted": 0.5, "matched": 1.0, "n": 2} == result["none"]
    assert (0.25, ["other"]) == (result["refused"], list(result["languages"]))


async def test_mixed_catalog_is_ranked_by_words_without_a_model() -> None:
    """Without a folder, agents and skills are searched, with two requests per slice here."""
    mixed = read_mixed(None)
    by_slice = {name: [one for one in mixed.requests if one.slice == name][:2] for name in SLICES}
    few = replace(mixed, requests=tuple(one for request in by_slice.values() for one in request))

    report = await measure(few, [CHIEF], embedder=None)
    (line,) = lines(report)

    assert {"agents", "skills", "names", "mixed"} == set(report["policies"]["hybrid"]["slices"])
    assert (0, 0) == (report["catalog"]["tools"], report["catalog"]["servers"])
    assert 0 < report["ndcg_at_10"] < 1
    assert ("hybrid", "-") == (line["policy"], line["tools"])
