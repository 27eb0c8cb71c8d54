"""Search over HTTP: the list, the groups, and what is not shown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from httpx2 import AsyncClient

from gateway.catalog import Entry
from gateway.embed import Embedded, Role
from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.options import SearchOptions
from gateway.serve.api.search_routes import default_ranking
from gateway.testing import HashingEmbedder
from gateway.types import ALL_SCOPES, RankingPolicy
from tests.apps.serve.api.client import open_client
from tests.apps.serve.api.conftest import ENTRIES, Mixed
from tests.conftest import PATIENT
from tests.fakes import ListSource, tool

SEARCH = "/api/search/semantic"
QUERY = "flowers measured by hand in gardens of Italy"
GROUPS = ("servers", "tools", "agents", "skills", "virtual_servers", "custom")


async def found(
    gateway: Gateway, body: Mapping[str, object], *, scopes: tuple[str, ...] | None = None
) -> Any:
    """The answer to a search; with *scopes*, for the bearer of a token with these."""
    async with open_client(gateway, scopes=scopes) as client:
        answer = await client.post(SEARCH, json=body)
    assert 200 == answer.status_code, answer.text
    return answer.json()


def ids(answer: Any, group: str = "results") -> list[str]:
    """The ids of one group of an answer."""
    return [each["id"] for each in answer[group]]


async def test_groups_hold_what_the_list_ranks(full: Gateway) -> None:
    """One ranking, best first, by scores that fall; each entity in the group of its kind."""
    answer = await found(full, {"query": "send an e-mail"})

    assert "mail/send_email" == ids(answer)[0]
    assert {"agent:catalog/courier", "server:mail"} <= set(ids(answer))
    assert list(range(1, len(answer["results"]) + 1)) == [
        each["rank"] for each in answer["results"]
    ]
    scores = [each["score"] for each in answer["results"]]
    assert sorted(scores, reverse=True) == scores
    assert 1.0 == answer["results"][0]["relevance_score"]
    assert answer["confidence"] == max(each["confidence"] for each in answer["results"])
    grouped = [key for group in GROUPS for key in ids(answer, group)]
    assert set(ids(answer)) <= set(grouped)
    assert all(answer[f"total_{group}"] == len(answer[group]) for group in GROUPS)
    assert ("hybrid", "hybrid") == (answer["search_mode"], answer["ranking"])


async def test_rows_say_what_registries_say(full: Gateway) -> None:
    """Names of fields that their clients know."""
    answer = await found(full, {"query": "e-mail courier letter writing server"})
    courier = next(each for each in answer["agents"] if each["agent_name"] == "Courier")
    letter = answer["skills"][0]

    assert "/agents/courier-one" == courier["path"]
    assert ["Mail", "prod"] == courier["tags"]
    assert courier["description"] == courier["match_context"]
    assert -1 <= courier["similarity_score"] <= 1
    assert ("Ada", "1.2", "https://a.example/SKILL.md") == (
        letter["author"],
        letter["version"],
        letter["skill_md_url"],
    )
    assert {"type": "object"} == answer["tools"][0]["inputSchema"]
    assert "/mail" == answer["tools"][0]["server_path"]


async def test_an_agent_that_has_a_card_shows_it(full: Gateway) -> None:
    """Whole, as agents exchange it."""
    answer = await found(full, {"query": "rail planner", "entity_types": ["a2a_agent"]})
    cards = {each["agent_name"]: each["agent_card"] for each in answer["agents"]}

    assert cards["Rail Planner"] == {
        "name": "Rail Planner",
        "description": "Plans journeys by train.",
        "url": "https://agents.example/rail",
        "skills": [{"id": "plan"}],
    }
    assert cards.get("Courier") is None


async def test_a_matched_server_brings_the_tools_that_the_query_speaks_of(full: Gateway) -> None:
    """In its row, and behind the tools that were found themselves; none without a word."""
    answer = await found(full, {"query": "mail server: read e-mail", "max_results": 3})
    server = answer["servers"][0]

    assert ("server:mail", "mail", 3) == (server["id"], server["server_name"], server["num_tools"])
    named = [each["tool_name"] for each in server["matching_tools"]]
    assert {"read_email", "send_email"} == set(named)
    scores = [each["relevance_score"] for each in server["matching_tools"]]
    assert sorted(scores, reverse=True) == scores
    lifted = [each for each in answer["tools"] if each["lifted"]]
    assert all(each["confidence"] is None for each in lifted)
    assert len({each["id"] for each in answer["tools"]}) == len(answer["tools"])


async def test_a_server_that_is_only_described_brings_its_tools(full: Gateway) -> None:
    """By its entry, with their schemas; they can be searched for on their own, too."""
    create = {"name": "open_issue", "description": "Open an issue.", "schema": {"type": "object"}}
    await full.catalog.put(
        Entry(kind="server", name="hub", description="Issues.", metadata={"tools": [create]})
    )
    servers = await found(full, {"query": "open issue", "entity_types": ["mcp_server"]})
    tools = await found(full, {"query": "open issue", "entity_types": ["tool"]})

    row = servers["servers"][0]
    assert ("server:catalog/hub", 1) == (row["id"], row["num_tools"])
    assert ["open_issue"] == [each["tool_name"] for each in row["matching_tools"]]
    assert "hub/open_issue" == ids(tools)[0]
    assert ({"type": "object"}, "/hub") == (
        tools["tools"][0]["inputSchema"],
        tools["tools"][0]["server_path"],
    )


async def put_datasets(gateway: Gateway, count: int) -> None:
    """Add data sets; the second one has fewer words of the query than the first, and so on."""
    words = QUERY.split()
    for number in range(count):
        text = " ".join(words[: max(len(words) - number, 0)]) or "Numbers."
        entry = Entry(kind="dataset", name=f"set{number:02}", description=text)
        await gateway.catalog.put(entry)


@pytest.mark.parametrize("ranking", get_args(RankingPolicy))
@pytest.mark.parametrize("count", [1, 2, 3])
async def test_search_drops_nothing_while_all_eligible_entities_fit(
    full: Gateway, ranking: str, count: int
) -> None:
    await put_datasets(full, count)

    answer = await found(
        full, {"query": QUERY, "entity_types": ["dataset"], "max_results": 3, "ranking": ranking}
    )

    assert count == answer["discovery_receipt"]["eligible"] == len(answer["results"])
    scores = {each["relevance_score"] for each in answer["results"]}
    assert 0.0 in scores or {1.0} == scores


async def test_legacy_search_drops_nothing_of_its_candidates(full: Gateway) -> None:
    """It has three candidates of a kind."""
    await put_datasets(full, 6)

    answer = await found(
        full,
        {"query": "gardens", "entity_types": ["dataset"], "max_results": 4, "ranking": "legacy"},
    )

    assert (6, 3) == (answer["discovery_receipt"]["eligible"], len(answer["results"]))
    assert 0.0 == answer["results"][-1]["relevance_score"]


@pytest.mark.parametrize(("least", "is_full"), [(0.0, True), (1.0, False)])
async def test_search_drops_no_candidate_of_enough_confidence(
    mixed: Mixed, tmp_path: Path, least: float, is_full: bool
) -> None:
    """There are more eligible entities than places."""
    search = SearchOptions(min_confidence=least, no_match_confidence=0)
    store = tmp_path / "catalog.sqlite3"
    gateway = mixed(options=replace(PATIENT, search=search, catalog_store_path=store))
    await put_datasets(gateway, 10)
    body = {"query": QUERY, "entity_types": ["dataset"], "max_results": 9, "ranking": "weighted"}

    answer = await found(gateway, body)

    scores = [each["relevance_score"] for each in answer["results"]]
    assert is_full == (9 == len(scores))
    assert is_full == (scores[-1] < 0.2)


async def test_servers_alone_come_without_other_tools(full: Gateway) -> None:
    """A filter by kind holds; a server's row still says why."""
    answer = await found(full, {"query": "mail", "entity_types": ["mcp_server"]})

    assert ["server:mail"] == ids(answer)
    assert [] == answer["tools"]
    assert answer["servers"][0]["matching_tools"]


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["a2a_agent"], {"agent"}),
        (["skill", "agent"], {"skill", "agent"}),
        (["tool"], {"tool"}),
        (["recipe"], {"recipe"}),
        (["prompt"], set()),
    ],
)
async def test_kinds_are_filtered_by_either_name(
    full: Gateway, types: list[str], expected: set[str]
) -> None:
    """Registries' and ours."""
    body = {"query": "write e-mail by train", "entity_types": types, "ranking": "hybrid"}
    answer = await found(full, body)

    assert expected == {each["kind"] for each in answer["results"]}
    assert all(each["entity_type"] == "recipe" for each in answer["custom"])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # A misspelt kind, most of the time.
        ({"query": "x", "entity_types": ["mcp_servers"]}, (404, "unknown_kind")),
        ({}, (400, "nothing_asked")),
        ({"query": " \t"}, (400, "nothing_asked")),
        ({"query": "", "tags": []}, (400, "nothing_asked")),
    ],
)
async def test_who_asks_for_nothing_is_told(
    client: AsyncClient, body: dict[str, object], expected: tuple[int, str]
) -> None:
    """As registries tell it."""
    answer = await client.post(SEARCH, json=body)

    assert expected == (answer.status_code, answer.json()["code"])


HIDDEN = {
    "include_draft": "agent:catalog/drafted",
    "include_deprecated": "agent:catalog/retired",
    "include_disabled": "agent:catalog/asleep",
}


@pytest.mark.parametrize("ranking", ["hybrid", "weighted", "legacy", "lexical", "strategy"])
async def test_nothing_is_shown_that_was_not_asked_for(full: Gateway, ranking: str) -> None:
    """By no ranking: neither drafts, nor the deprecated, nor the disabled, nor others' things."""
    answer = await found(full, {"query": "agent for e-mail", "ranking": ranking})

    assert not {*HIDDEN.values(), "agent:catalog/accountant"} & set(ids(answer))


@pytest.mark.parametrize("flag", HIDDEN)
async def test_each_is_shown_where_it_is_asked_for(full: Gateway, flag: str) -> None:
    """One flag shows one sort."""
    body = {"query": "agent for e-mail", "entity_types": ["agent"], flag: True}
    answer = await found(full, {**body, "max_results": 50})

    assert {HIDDEN[flag]} == set(HIDDEN.values()) & set(ids(answer))


@pytest.mark.parametrize(
    ("scopes", "seen"),
    [((), False), (("other",), False), (("billing",), True), ((ALL_SCOPES,), True)],
)
async def test_scopes_of_the_caller_decide(
    full: Gateway, scopes: tuple[str, ...], seen: bool
) -> None:
    """An entity that asks for one is there for its holders alone."""
    answer = await found(full, {"query": "sends e-mail to debtors"}, scopes=scopes)

    assert seen == ("agent:catalog/accountant" in ids(answer))


class ClosingEmbedder(HashingEmbedder):
    """An embedder during whose work an entity gets a scope."""

    gateway: Gateway | None = None

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        if self.gateway is not None:
            gateway, self.gateway = self.gateway, None
            await gateway.catalog.put(replace(ENTRIES[0], scopes=frozenset({"billing"})))
        return await super().embed(texts, role=role)


async def test_an_entity_that_is_closed_during_a_search_is_not_shown(mixed: Mixed) -> None:
    """The search began when anybody could see it."""
    embedder = ClosingEmbedder()
    gateway = mixed(embedder=embedder)
    await gateway.catalog.put(*ENTRIES)
    await gateway.snapshot(vectors=True)
    embedder.gateway = gateway
    answer = await found(gateway, {"query": "write and send e-mail"}, scopes=())

    assert ids(answer)
    assert "agent:catalog/courier" not in ids(answer)


async def test_half_a_character_does_not_cost_the_answer(mixed: Mixed) -> None:
    """UTF-8 cannot write it; texts of the host's own sources may hold one."""
    gateway = mixed()
    odd = tool("fold_letter", "Fold a letter \ud800.")
    gateway.add_source(ListSource("odd", [odd], trusted=True))
    answer = await found(gateway, {"query": "fold a letter"})

    assert "Fold a letter ?." in [row["description"] for row in answer["tools"]]


async def test_tags_alone_browse(full: Gateway) -> None:
    """All of them, without case."""
    answer = await found(full, {"tags": ["mail", "PROD"]})

    assert ["agent:catalog/courier"] == ids(answer)
    assert ("browse", 1.0) == (answer["search_mode"], answer["results"][0]["relevance_score"])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (None, {"path": "/agents/courier-one", "config": {"region": "eu", "size": 3}}),
        ([], {}),
        (["config.region", "absent"], {"config": {"region": "eu"}}),
    ],
)
async def test_metadata_is_projected(
    full: Gateway, fields: list[str] | None, expected: dict[str, object]
) -> None:
    """By dot-paths."""
    answer = await found(full, {"tags": ["prod"], "metadata_fields": fields})

    assert expected == answer["agents"][0]["metadata"]


async def test_legacy_shows_three_of_a_kind(full: Gateway) -> None:
    """By the environment's word or by the request's."""
    flags = dict.fromkeys(HIDDEN, True)
    async with open_client(full, fusion="legacy") as client:
        answer = (await client.post(SEARCH, json={"query": "agent for e-mail", **flags})).json()

    assert ("legacy", 3) == (answer["ranking"], len(answer["agents"]))


@pytest.mark.parametrize(
    ("strategy", "fusion", "expected"),
    [
        ("auto", "rrf", "hybrid"),
        ("auto", "legacy", "legacy"),
        ("graph", "rrf", "lexical"),
        ("graph", "legacy", "legacy"),
    ],
)
def test_what_ranks_follows_from_the_setting(
    mixed: Mixed, strategy: str, fusion: str, expected: str
) -> None:
    """Without vectors there is nothing to fuse."""
    assert expected == default_ranking(fusion, mixed(strategy=strategy))


def test_an_unknown_fusion_is_refused(mixed: Mixed) -> None:
    """At the start, not at the first search."""
    with pytest.raises(ConfigError, match="rrf or legacy"):
        default_ranking("best", mixed())


async def test_without_vectors_the_mode_says_so(mixed: Mixed) -> None:
    """And numbers that vectors make are null."""
    answer = await found(mixed(strategy="graph", embedder=None), {"query": "send an e-mail"})

    assert ("lexical-only", "lexical") == (answer["search_mode"], answer["ranking"])
    assert {None} == {each["similarity_score"] for each in answer["results"]}


async def test_where_vectors_fail_words_rank_this_once(mixed: Mixed) -> None:
    """The diagnostics say what happened."""
    answer = await found(mixed(embedder=None), {"query": "send an e-mail", "ranking": "hybrid"})

    assert "lexical-only" == answer["search_mode"]
    assert {"embed"} == {each["stage"] for each in answer["diagnostics"]}


async def test_a_receipt_holds_no_contents(client: AsyncClient) -> None:
    """Equal requests have equal hashes, others have others."""
    queries = ("send an e-mail", "send an e-mail", "soup")
    answers = [(await client.post(SEARCH, json={"query": each})).json() for each in queries]
    one, two, three = (each["discovery_receipt"] for each in answers)

    assert "mail" not in json.dumps(one)
    assert one["id"] != two["id"]
    assert one["request_hash"] == two["request_hash"] != three["request_hash"]
    assert one["result_hash"] == two["result_hash"]
    assert len(answers[0]["results"]) == one["returned"] == sum(one["returned_by_kind"].values())
    assert one["eligible"] >= one["returned"]
    assert "results_returned" == one["stop_reason"]
    assert datetime.fromisoformat(one["time"]).utcoffset() is not None


async def test_nothing_found_is_told_by_the_receipt(full: Gateway) -> None:
    """A nonsense query has no best hit of 100 %."""
    body = {"query": "zzyzx qwrtpl", "ranking": "lexical"}
    answer = await found(full, body)

    assert ([], 0.0) == (answer["results"], answer["confidence"])
    assert "no_match" == answer["discovery_receipt"]["stop_reason"]


async def test_tags_are_those_of_what_the_caller_may_find(client: AsyncClient) -> None:
    """Counted, in small letters."""
    counts = {"kitchen": 1, "mail": 1, "prod": 1}

    assert {"tags": [*counts], "counts": counts} == (await client.get("/api/search/tags")).json()


async def test_a_virtual_server_names_the_servers_behind_it(mixed: Mixed) -> None:
    """As rows of its own."""
    gateway = mixed()
    gateway.add_virtual_server("desk", {"write": "mail/send_email"}, description="A writing desk.")
    body = {"query": "desk write", "entity_types": ["virtual_server"]}
    row = (await found(gateway, body))["virtual_servers"][0]

    assert ("virtual_server", "/virtual/desk", "desk") == (
        row["entity_type"],
        row["path"],
        row["server_name"],
    )
    assert row["num_tools"] == row["tool_count"] == 1
    assert (1, ["/mail"]) == (row["backend_count"], row["backend_paths"])


async def test_a_search_says_how_it_scored_where_that_is_asked(full: Gateway) -> None:
    """The sum of 1/(60 + rank), and what it is made of; otherwise nothing."""
    body = {"query": "send e-mail", "ranking": "hybrid"}
    plain = await found(full, body)
    answer = await found(full, {**body, "explain": True})

    assert {(None, None)} == {(each["rrf_score"], each["scoring"]) for each in plain["results"]}
    for each in answer["results"]:
        ranks = [each["scoring"][name] for name in ("vector_rank", "keyword_rank")]
        assert pytest.approx(sum(1 / (60 + rank) for rank in ranks if rank)) == each["rrf_score"]
        assert pytest.approx(each["similarity_score"], abs=1e-3) == each["scoring"]["vector"]
    # 5 by its path and 3 by its name, which hold both words, and 2 by its description.
    assert 10.0 == answer["results"][0]["scoring"]["text_boost"]
    added = await found(full, {**body, "ranking": "legacy", "explain": True})
    for each in added["results"]:
        scoring = each["scoring"]
        by_hand = (scoring["vector"] + 1) / 2 + 0.1 * scoring["text_boost"]
        assert (None, pytest.approx(min(1.0, by_hand))) == (each["rrf_score"], scoring["score"])
