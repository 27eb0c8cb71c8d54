"""Search over HTTP: ranking, groups, filters and receipts."""

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
from graphs import Document, Link
from tests.apps.serve.api.client import open_client
from tests.apps.serve.api.conftest import ENTRIES, Mixed
from tests.conftest import PATIENT
from tests.fakes import ListSource, tool

SEARCH = "/api/search/semantic"
QUERY = "flowers measured by hand in gardens of Italy"
GROUPS = ("servers", "tools", "agents", "skills", "virtual_servers", "custom")


async def search_as(
    gateway: Gateway, body: Mapping[str, object], *, scopes: tuple[str, ...] | None = None
) -> Any:
    """Return the JSON response to a search request with *body*.

    With *scopes*, the request contains a token that has these scopes.
    """
    async with open_client(gateway, scopes=scopes) as client:
        answer = await client.post(SEARCH, json=body)
    assert 200 == answer.status_code, answer.text
    return answer.json()


def ids(answer: Any, group: str = "results") -> list[str]:
    """Return the ids of the rows in one group of a search response."""
    return [item["id"] for item in answer[group]]


async def test_search_groups_contain_the_entities_of_the_ranking(full_gateway: Gateway) -> None:
    answer = await search_as(full_gateway, {"query": "send an e-mail"})

    assert "mail/send_email" == ids(answer)[0]
    assert {"agent:catalog/courier", "server:mail"} <= set(ids(answer))
    assert list(range(1, len(answer["results"]) + 1)) == [
        result["rank"] for result in answer["results"]
    ]
    scores = [result["score"] for result in answer["results"]]
    assert sorted(scores, reverse=True) == scores
    assert 1.0 == answer["results"][0]["relevance_score"]
    assert answer["confidence"] == max(result["confidence"] for result in answer["results"])
    grouped = [key for group in GROUPS for key in ids(answer, group)]
    assert set(ids(answer)) <= set(grouped)
    assert all(answer[f"total_{group}"] == len(answer[group]) for group in GROUPS)
    assert ("hybrid", "hybrid") == (answer["search_mode"], answer["ranking"])


async def test_search_returns_the_supplements_that_the_caller_may_see(
    create_mail_gateway: Mixed,
) -> None:
    """Each one has the edges that lead to it, with the place that declares them."""
    plan = Document(
        id="plan",
        title="send_email",
        path="plan.md",
        requires=(Link(target="read_email", line=4),),
        next_steps=(Link(target="play_music", line=5),),
    )
    gateway = create_mail_gateway(graph=[plan])
    body = {"query": "send an e-mail to somebody", "max_results": 1}

    answer = await search_as(gateway, body)
    await gateway.catalog.change(["mail/play_music"], {"scopes": ["dj"]})
    hidden = await search_as(gateway, body, scopes=())

    assert ["mail/send_email"] == ids(answer)
    assert (["mail/read_email"], [], ["mail/play_music"]) == tuple(
        ids(answer, group) for group in ("prerequisites", "related", "next_steps")
    )
    (needed,) = answer["prerequisites"]
    assert ("tool", "read_email", "mail") == (needed["kind"], needed["name"], needed["server"])
    assert needed["path"] == [
        {
            "subject": "mail/send_email",
            "predicate": "requires",
            "object": "mail/read_email",
            "source": "plan.md:4",
            "declared": True,
        }
    ]
    assert (["mail/read_email"], []) == (ids(hidden, "prerequisites"), ids(hidden, "next_steps"))


async def test_search_rows_have_the_field_names_of_mcp_registries(full_gateway: Gateway) -> None:
    answer = await search_as(full_gateway, {"query": "e-mail courier letter writing server"})
    courier = next(agent for agent in answer["agents"] if agent["agent_name"] == "Courier")
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


async def test_agent_row_contains_the_complete_agent_card(full_gateway: Gateway) -> None:
    answer = await search_as(full_gateway, {"query": "rail planner", "entity_types": ["a2a_agent"]})
    cards = {agent["agent_name"]: agent["agent_card"] for agent in answer["agents"]}

    assert cards["Rail Planner"] == {
        "name": "Rail Planner",
        "description": "Plans journeys by train.",
        "url": "https://agents.example/rail",
        "skills": [{"id": "plan"}],
    }
    assert cards.get("Courier") is None


async def test_search_adds_tools_of_a_matched_server_that_contain_query_words(
    full_gateway: Gateway,
) -> None:
    answer = await search_as(full_gateway, {"query": "mail server: read e-mail", "max_results": 3})
    server = answer["servers"][0]

    assert ("server:mail", "mail", 3) == (server["id"], server["server_name"], server["num_tools"])
    named = [matching_tool["tool_name"] for matching_tool in server["matching_tools"]]
    assert {"read_email", "send_email"} == set(named)
    scores = [matching_tool["relevance_score"] for matching_tool in server["matching_tools"]]
    assert sorted(scores, reverse=True) == scores
    lifted = [matching_tool for matching_tool in answer["tools"] if matching_tool["lifted"]]
    assert all(matching_tool["confidence"] is None for matching_tool in lifted)
    assert len({matching_tool["id"] for matching_tool in answer["tools"]}) == len(answer["tools"])


async def test_search_adds_tools_that_the_metadata_of_a_server_describes(
    full_gateway: Gateway,
) -> None:
    create = {"name": "open_issue", "description": "Open an issue.", "schema": {"type": "object"}}
    await full_gateway.catalog.put(
        Entry(kind="server", name="hub", description="Issues.", metadata={"tools": [create]})
    )
    servers = await search_as(full_gateway, {"query": "open issue", "entity_types": ["mcp_server"]})
    tools = await search_as(full_gateway, {"query": "open issue", "entity_types": ["tool"]})

    row = servers["servers"][0]
    assert ("server:catalog/hub", 1) == (row["id"], row["num_tools"])
    assert ["open_issue"] == [matching_tool["tool_name"] for matching_tool in row["matching_tools"]]
    assert "hub/open_issue" == ids(tools)[0]
    assert ({"type": "object"}, "/hub") == (
        tools["tools"][0]["inputSchema"],
        tools["tools"][0]["server_path"],
    )


async def put_datasets(gateway: Gateway, count: int) -> None:
    """Add *count* data sets. Each contains one word of the query less than the one before."""
    words = QUERY.split()
    for number in range(count):
        text = " ".join(words[: max(len(words) - number, 0)]) or "Numbers."
        entry = Entry(kind="dataset", name=f"set{number:02}", description=text)
        await gateway.catalog.put(entry)


@pytest.mark.parametrize("ranking", get_args(RankingPolicy))
@pytest.mark.parametrize("count", [1, 2, 3])
async def test_search_returns_low_scores_if_all_candidates_fit(
    full_gateway: Gateway, ranking: str, count: int
) -> None:
    await put_datasets(full_gateway, count)

    answer = await search_as(
        full_gateway,
        {"query": QUERY, "entity_types": ["dataset"], "max_results": 3, "ranking": ranking},
    )

    assert count == answer["discovery_receipt"]["eligible"] == len(answer["results"])
    scores = {result["relevance_score"] for result in answer["results"]}
    assert 0.0 in scores or {1.0} == scores


async def test_legacy_search_returns_low_scores(full_gateway: Gateway) -> None:
    await put_datasets(full_gateway, 6)

    answer = await search_as(
        full_gateway,
        {"query": "gardens", "entity_types": ["dataset"], "max_results": 4, "ranking": "legacy"},
    )

    assert (6, 3) == (answer["discovery_receipt"]["eligible"], len(answer["results"]))
    assert 0.0 == answer["results"][-1]["relevance_score"]


@pytest.mark.parametrize(("least", "is_full"), [(0.0, True), (1.0, False)])
async def test_search_returns_low_scores_that_reach_min_confidence(
    create_mail_gateway: Mixed, tmp_path: Path, least: float, is_full: bool
) -> None:
    search = SearchOptions(min_confidence=least, no_match_confidence=0)
    store = tmp_path / "catalog.sqlite3"
    gateway = create_mail_gateway(options=replace(PATIENT, search=search, catalog_store_path=store))
    await put_datasets(gateway, 10)
    body = {"query": QUERY, "entity_types": ["dataset"], "max_results": 9, "ranking": "weighted"}

    answer = await search_as(gateway, body)

    scores = [result["relevance_score"] for result in answer["results"]]
    assert is_full == (9 == len(scores))
    assert is_full == (scores[-1] < 0.2)


async def test_search_for_only_servers_adds_no_tools(full_gateway: Gateway) -> None:
    answer = await search_as(full_gateway, {"query": "mail", "entity_types": ["mcp_server"]})

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
async def test_search_accepts_kinds_under_gateway_and_registry_names(
    full_gateway: Gateway, types: list[str], expected: set[str]
) -> None:
    body = {"query": "write e-mail by train", "entity_types": types, "ranking": "hybrid"}
    answer = await search_as(full_gateway, body)

    assert expected == {result["kind"] for result in answer["results"]}
    assert all(result["entity_type"] == "recipe" for result in answer["custom"])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # The most common misspelling of a kind.
        ({"query": "x", "entity_types": ["mcp_servers"]}, (404, "unknown_kind")),
        ({}, (400, "nothing_asked")),
        ({"query": " \t"}, (400, "nothing_asked")),
        ({"query": "", "tags": []}, (400, "nothing_asked")),
    ],
)
async def test_invalid_search_is_refused_with_the_reason(
    client: AsyncClient, body: dict[str, object], expected: tuple[int, str]
) -> None:
    answer = await client.post(SEARCH, json=body)

    assert expected == (answer.status_code, answer.json()["code"])


HIDDEN = {
    "include_draft": "agent:catalog/drafted",
    "include_deprecated": "agent:catalog/retired",
    "include_disabled": "agent:catalog/asleep",
}


@pytest.mark.parametrize("ranking", ["hybrid", "weighted", "legacy", "lexical", "strategy"])
async def test_search_hides_drafts_deprecated_and_disabled_entities(
    full_gateway: Gateway, ranking: str
) -> None:
    answer = await search_as(full_gateway, {"query": "agent for e-mail", "ranking": ranking})

    assert not {*HIDDEN.values(), "agent:catalog/accountant"} & set(ids(answer))


@pytest.mark.parametrize("flag", HIDDEN)
async def test_each_include_flag_adds_entities_of_one_status(
    full_gateway: Gateway, flag: str
) -> None:
    body = {"query": "agent for e-mail", "entity_types": ["agent"], flag: True}
    answer = await search_as(full_gateway, {**body, "max_results": 50})

    assert {HIDDEN[flag]} == set(HIDDEN.values()) & set(ids(answer))


@pytest.mark.parametrize(
    ("scopes", "seen"),
    [((), False), (("other",), False), (("billing",), True), ((ALL_SCOPES,), True)],
)
async def test_search_finds_only_entities_whose_scopes_the_caller_has(
    full_gateway: Gateway, scopes: tuple[str, ...], seen: bool
) -> None:
    answer = await search_as(full_gateway, {"query": "sends e-mail to debtors"}, scopes=scopes)

    assert seen == ("agent:catalog/accountant" in ids(answer))


class ClosingEmbedder(HashingEmbedder):
    """Embedder that restricts access to an entity while it embeds the query."""

    gateway: Gateway | None = None

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        if self.gateway is not None:
            gateway, self.gateway = self.gateway, None
            await gateway.catalog.put(replace(ENTRIES[0], scopes=frozenset({"billing"})))
        return await super().embed(texts, role=role)


async def test_search_omits_an_entity_that_is_restricted_during_the_search(
    create_mail_gateway: Mixed,
) -> None:
    embedder = ClosingEmbedder()
    gateway = create_mail_gateway(embedder=embedder)
    await gateway.catalog.put(*ENTRIES)
    await gateway.snapshot(vectors=True)
    embedder.gateway = gateway
    answer = await search_as(gateway, {"query": "write and send e-mail"}, scopes=())

    assert ids(answer)
    assert "agent:catalog/courier" not in ids(answer)


async def test_search_response_repairs_lone_surrogates(create_mail_gateway: Mixed) -> None:
    """UTF-8 cannot encode a lone surrogate, but the host's texts may contain one."""
    gateway = create_mail_gateway()
    odd = tool("fold_letter", "Fold a letter \ud800.")
    gateway.add_source(ListSource("odd", [odd], trusted=True))
    answer = await search_as(gateway, {"query": "fold a letter"})

    assert "Fold a letter ?." in [row["description"] for row in answer["tools"]]


async def test_search_with_only_tags_lists_entities(full_gateway: Gateway) -> None:
    answer = await search_as(full_gateway, {"tags": ["mail", "PROD"]})

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
async def test_metadata_fields_select_parts_of_the_metadata(
    full_gateway: Gateway, fields: list[str] | None, expected: dict[str, object]
) -> None:
    answer = await search_as(full_gateway, {"tags": ["prod"], "metadata_fields": fields})

    assert expected == answer["agents"][0]["metadata"]


async def test_legacy_ranking_returns_three_results_per_kind(full_gateway: Gateway) -> None:
    flags = dict.fromkeys(HIDDEN, True)
    async with open_client(full_gateway, fusion="legacy") as client:
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
def test_default_ranking_follows_strategy_and_fusion_method(
    create_mail_gateway: Mixed, strategy: str, fusion: str, expected: str
) -> None:
    assert expected == default_ranking(fusion, create_mail_gateway(strategy=strategy))


def test_unknown_fusion_method_is_refused(create_mail_gateway: Mixed) -> None:
    with pytest.raises(ConfigError, match="rrf or legacy"):
        default_ranking("best", create_mail_gateway())


async def test_search_without_vectors_ranks_by_words(create_mail_gateway: Mixed) -> None:
    answer = await search_as(
        create_mail_gateway(strategy="graph", embedder=None), {"query": "send an e-mail"}
    )

    assert ("lexical-only", "lexical") == (answer["search_mode"], answer["ranking"])
    assert {None} == {result["similarity_score"] for result in answer["results"]}


async def test_search_falls_back_to_words_if_embedding_fails(create_mail_gateway: Mixed) -> None:
    answer = await search_as(
        create_mail_gateway(embedder=None), {"query": "send an e-mail", "ranking": "hybrid"}
    )

    assert "lexical-only" == answer["search_mode"]
    assert {"embed"} == {diagnostic["stage"] for diagnostic in answer["diagnostics"]}


async def test_receipt_contains_only_hashes_of_request_and_result(client: AsyncClient) -> None:
    queries = ("send an e-mail", "send an e-mail", "soup")
    answers = [(await client.post(SEARCH, json={"query": query})).json() for query in queries]
    first, two, three = (query["discovery_receipt"] for query in answers)

    assert "mail" not in json.dumps(first)
    assert first["id"] != two["id"]
    assert first["request_hash"] == two["request_hash"] != three["request_hash"]
    assert first["result_hash"] == two["result_hash"]
    assert (
        len(answers[0]["results"]) == first["returned"] == sum(first["returned_by_kind"].values())
    )
    assert first["eligible"] >= first["returned"]
    assert "results_returned" == first["stop_reason"]
    assert datetime.fromisoformat(first["time"]).utcoffset() is not None


async def test_receipt_reports_a_search_without_results(full_gateway: Gateway) -> None:
    """The receipt's confidence must not be 100 % for a nonsense query."""
    body = {"query": "zzyzx qwrtpl", "ranking": "lexical"}
    answer = await search_as(full_gateway, body)

    assert ([], 0.0) == (answer["results"], answer["confidence"])
    assert "no_match" == answer["discovery_receipt"]["stop_reason"]


async def test_tag_counts_include_only_visible_entities(client: AsyncClient) -> None:
    counts = {"kitchen": 1, "mail": 1, "prod": 1}

    assert {"tags": [*counts], "counts": counts} == (await client.get("/api/search/tags")).json()


async def test_row_of_a_virtual_server_lists_its_backend_servers(
    create_mail_gateway: Mixed,
) -> None:
    gateway = create_mail_gateway()
    gateway.add_virtual_server("desk", {"write": "mail/send_email"}, description="A writing desk.")
    body = {"query": "desk write", "entity_types": ["virtual_server"]}
    row = (await search_as(gateway, body))["virtual_servers"][0]

    assert ("virtual_server", "/virtual/desk", "desk") == (
        row["entity_type"],
        row["path"],
        row["server_name"],
    )
    assert row["num_tools"] == row["tool_count"] == 1
    assert (1, ["/mail"]) == (row["backend_count"], row["backend_paths"])


async def test_explain_adds_the_parts_of_each_score(full_gateway: Gateway) -> None:
    body = {"query": "send e-mail", "ranking": "hybrid"}
    plain = await search_as(full_gateway, body)
    answer = await search_as(full_gateway, {**body, "explain": True})

    assert {(None, None)} == {
        (result["rrf_score"], result["scoring"]) for result in plain["results"]
    }
    for result in answer["results"]:
        ranks = [result["scoring"][name] for name in ("vector_rank", "keyword_rank")]
        assert pytest.approx(sum(1 / (60 + rank) for rank in ranks if rank)) == result["rrf_score"]
        assert pytest.approx(result["similarity_score"], abs=1e-3) == result["scoring"]["vector"]
    # The boost is 5 for the path and 3 for the name, which contain both words, and 2 for the
    # description.
    assert 10.0 == answer["results"][0]["scoring"]["text_boost"]
    added = await search_as(full_gateway, {**body, "ranking": "legacy", "explain": True})
    for result in added["results"]:
        scoring = result["scoring"]
        by_hand = (scoring["vector"] + 1) / 2 + 0.1 * scoring["text_boost"]
        assert (None, pytest.approx(min(1.0, by_hand))) == (result["rrf_score"], scoring["score"])
