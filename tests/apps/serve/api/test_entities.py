"""Entities over HTTP: reading, writing and removing them, and the scopes that this requires."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from httpx2 import AsyncClient, Response
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.catalog import Entry
from gateway.gateway import Gateway
from gateway.serve.auth import WRITE
from gateway.types import ALL_SCOPES, Access, Hints
from tests.apps.serve.api.client import ids, open_client
from tests.apps.serve.api.conftest import ENTRIES, Mixed
from tests.fakes import ListSource, tool

ROOT = "/api/entities"
COURIER = f"{ROOT}/agent:catalog/courier"
WHOLE = {
    "title": "Night courier",
    "description": "Delivers at night.",
    "status": "draft",
    "enabled": False,
    "hints": {
        "aliases": ["owl"],
        "keywords": ["late"],
        "categories": ["delivery"],
        "tags": ["night"],
        "examples": ["bring it tonight"],
        "search_text": "Carries parcels after dark.",
    },
    "scopes": [],
    "metadata": {"a": [1, {"b": None}]},
    "parent": "server:mail",
}


MANY = tuple(
    Entry(
        kind=kind,
        name=f"{name}-{kind}",
        description=f"Of Ada, number {number}.",
        hints=Hints(tags=("ada",) if number % 2 else ()),
        scopes=frozenset({"billing"} if "secret" in name else ()),
    )
    for kind in ("agent", "server", "skill")
    for number, name in enumerate(("ab", "ac", "secret", "ad", "ae", "secret2", "zz"))
)


async def pages(client: AsyncClient, path: str, **asked: str | int) -> AsyncIterator[list[str]]:
    """Yield the ids on each page of the list at *path*, with *asked* as query parameters."""
    cursor: str | None = ""
    while cursor is not None:
        page = await client.get(path, params={**asked, "cursor": cursor})
        yield ids(page, "entities")
        cursor = page.json()["metadata"]["nextCursor"]


async def test_api_adds_changes_and_removes_an_entity(writer_client: AsyncClient) -> None:
    created = await writer_client.post(ROOT, json={"kind": "agent", "name": "night owl", **WHOLE})
    place = created.headers["location"]
    again = await writer_client.post(ROOT, json={"kind": "agent", "name": "night owl"})
    read = await writer_client.get(place)
    bare = await writer_client.get(f"{ROOT}/agent:catalog/night owl")
    changed = await writer_client.patch(place, json={"status": "active", "enabled": True})
    same = await writer_client.patch(place, json={})
    response = await writer_client.get("/api/agents", params={"query": "night"})
    replaced = await writer_client.put(place, json={"description": "Sleeps."})
    gone = await writer_client.delete(place)
    absent = [await writer_client.get(place), await writer_client.delete(place)]

    assert (201, f"{ROOT}/agent%3Acatalog%2Fnight%20owl") == (created.status_code, place)
    assert (409, "taken") == (again.status_code, again.json()["code"])
    assert created.json() == read.json() == bare.json()
    assert WHOLE.items() <= read.json().items()
    assert ("active", True) == (changed.json()["status"], changed.json()["enabled"])
    assert changed.json() == same.json()
    assert ["agent:catalog/night owl"] == ids(response, "entities")
    assert (200, "", "active") == (
        replaced.status_code,
        replaced.json()["title"],
        replaced.json()["status"],
    )
    assert (204, b"") == (gone.status_code, gone.content)
    assert [404, 404] == [item.status_code for item in absent]


async def test_put_adds_a_missing_entity(writer_client: AsyncClient) -> None:
    created = await writer_client.put(f"{ROOT}/recipe:kitchen/soup", json={})
    odd = [
        await writer_client.put(f"{ROOT}/{key}", json={})
        for key in ("soup", "recipe:soup", "tool:x/y", "Recipe:a/b", "recipe:a b/c")
    ]

    assert (201, "kitchen") == (created.status_code, created.json()["namespace"])
    assert {(404, "unknown_entity")} == {
        (response.status_code, response.json()["code"]) for response in odd
    }


async def test_entities_that_a_server_lists_cannot_be_replaced_or_removed(
    client: AsyncClient,
) -> None:
    tool = await client.get(f"{ROOT}/mail/send_email")
    server = await client.get(f"{ROOT}/server:mail")
    refused = [
        await client.put(f"{ROOT}/mail/send_email", json={}),
        await client.delete(f"{ROOT}/mail/send_email"),
        await client.delete(f"{ROOT}/server:mail"),
    ]

    assert (True, "server:mail") == (tool.json()["listed"], tool.json()["parent"])
    assert server.json()["listed"]
    assert {(409, "listed")} == {
        (response.status_code, response.json()["code"]) for response in refused
    }


async def test_tools_that_a_server_lists_can_be_disabled_and_tagged(
    create_mail_gateway: Mixed,
) -> None:
    """The changes apply at once and also after a restart. Other tools stay unchanged."""
    entity_path = f"{ROOT}/mail/send_email"
    async with open_client(create_mail_gateway(), scopes=(WRITE, "billing")) as client:
        first = await client.patch(entity_path, json={"status": "deprecated", "tags": ["old"]})
        more = await client.patch(entity_path, json={"scopes": ["billing"], "enabled": False})
        closed = await client.patch(entity_path, json={"scopes": ["vault"]})
        again = await client.patch(entity_path, json={"enabled": True, "status": "active"})
    async with open_client(create_mail_gateway(), scopes=(WRITE,)) as other:
        hidden = await other.get(entity_path)
        near = await other.get(f"{ROOT}/mail/read_email")
    async with open_client(create_mail_gateway(), scopes=("billing",)) as holder:
        response = (await holder.get(entity_path)).json()

    assert ("deprecated", ["old"]) == (first.json()["status"], first.json()["hints"]["tags"])
    assert (["billing"], False) == (more.json()["scopes"], more.json()["enabled"])
    assert (403, "scope_missing") == (closed.status_code, closed.json()["code"])
    assert ("active", ["billing"], True) == tuple(
        again.json()[key] for key in ("status", "scopes", "enabled")
    )
    assert (404, 200, []) == (hidden.status_code, near.status_code, near.json()["scopes"])
    assert (["old"], ["billing"]) == (response["hints"]["tags"], response["scopes"])


async def test_patch_sets_and_removes_examples(create_mail_gateway: Mixed) -> None:
    search_body = {"query": "freezing", "ranking": "lexical"}
    for key in ("mail/send_email", "agent:catalog/courier"):
        gateway = create_mail_gateway()
        await gateway.catalog.put(*ENTRIES)
        async with open_client(gateway, scopes=(WRITE,)) as client:
            patched = await client.patch(f"{ROOT}/{key}", json={"examples": ["it is freezing"]})
        async with open_client(create_mail_gateway(), scopes=(WRITE,)) as client:
            response = await client.post("/api/search/semantic", json=search_body)
            taken = await client.patch(f"{ROOT}/{key}", json={"examples": []})
            lost = await client.post("/api/search/semantic", json=search_body)

        assert ["it is freezing"] == patched.json()["hints"]["examples"]
        assert [] == taken.json()["hints"]["examples"]
        assert key.rpartition("/")[2] in response.text
        assert key.rpartition("/")[2] not in lost.text


async def test_patch_sets_and_removes_the_search_text(create_mail_gateway: Mixed) -> None:
    search_body = {"query": "thermostat", "ranking": "lexical"}
    for key in ("mail/send_email", "agent:catalog/courier"):
        gateway = create_mail_gateway()
        await gateway.catalog.put(*ENTRIES)
        async with open_client(gateway, scopes=(WRITE,)) as client:
            patched = await client.patch(
                f"{ROOT}/{key}", json={"search_text": "Thermostat, zephyr."}
            )
            long = await client.patch(f"{ROOT}/{key}", json={"search_text": "x" * 2001})
        async with open_client(create_mail_gateway(), scopes=(WRITE,)) as client:
            response = await client.post("/api/search/semantic", json=search_body)
            taken = await client.patch(f"{ROOT}/{key}", json={"search_text": ""})
            lost = await client.post("/api/search/semantic", json=search_body)

        assert "Thermostat, zephyr." == patched.json()["hints"]["search_text"]
        assert patched.json()["description"]
        assert 422 == long.status_code
        assert key.rpartition("/")[2] in response.text
        assert "zephyr" not in response.text
        assert "" == taken.json()["hints"]["search_text"]
        assert key.rpartition("/")[2] not in lost.text


async def test_patch_changes_only_the_given_fields_of_an_entity(full_gateway: Gateway) -> None:
    entity_path = f"{ROOT}/agent:catalog/courier"
    async with open_client(full_gateway, scopes=(WRITE, "billing")) as client:
        tagged = (await client.patch(entity_path, json={"tags": ["post"]})).json()
        scoped = (await client.patch(entity_path, json={"scopes": ["billing"]})).json()
        opened = (await client.patch(entity_path, json={"scopes": []})).json()

    assert (["post"], []) == (tagged["hints"]["tags"], tagged["scopes"])
    assert (["post"], ["billing"]) == (scoped["hints"]["tags"], scoped["scopes"])
    assert [] == opened["scopes"]


async def test_entity_pages_contain_each_entity_once(client: AsyncClient) -> None:
    everything = {"include_draft": True, "include_deprecated": True, "include_disabled": True}
    listed_ids = [key for page in [p async for p in pages(client, ROOT, limit=2)] for key in page]
    agents = await client.get(ROOT, params={"kind": "agent", **everything})
    named = await client.get(ROOT, params={"kind": "a2a_agent", **everything})
    tagged = await client.get(ROOT, params=[("tags", "mail"), ("tags", "prod")])

    assert sorted(listed_ids) == listed_ids
    assert "agent:catalog/courier" in listed_ids
    assert not {"agent:catalog/drafted", "agent:catalog/accountant"} & set(listed_ids)
    assert 5 == len(agents.json()["entities"])
    assert agents.json() == named.json()
    assert ["agent:catalog/courier"] == ids(tagged, "entities")


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        (ROOT, {"kind": "agent"}),
        ("/api/agents", {"query": "a"}),
        ("/api/servers", {}),
        ("/api/skills/search", {"q": "ada"}),
    ],
)
async def test_entity_pages_skip_hidden_entities(
    full_gateway: Gateway, path: str, asked: dict[str, str]
) -> None:
    await full_gateway.catalog.put(*MANY)
    async with open_client(full_gateway, scopes=()) as client:
        cut = [page async for page in pages(client, path, limit=2, **asked)]
        whole = (await client.get(path, params={"limit": 50, **asked})).json()

    every = [entity["id"] for entity in whole["entities"]]
    assert every == [key for page in cut for key in page]
    assert {2} >= {len(page) for page in cut[:-1]}
    assert (len(every), None) == (whole["metadata"]["count"], whole["metadata"]["nextCursor"])
    assert len(every) == whole["total"] > 2
    assert not any("secret" in key for key in every)


async def test_adding_and_removing_entities_between_pages_does_not_move_others(
    full_gateway: Gateway,
) -> None:
    await full_gateway.catalog.put(*MANY)
    async with open_client(full_gateway) as client:
        whole = ids(await client.get("/api/skills/search", params={"q": "ada"}), "entities")
        first = await client.get("/api/skills/search", params={"q": "ada", "limit": 2})
        await full_gateway.catalog.put(
            Entry(kind="skill", name="ada-0", description="Ada, before.")
        )
        await full_gateway.catalog.put(Entry(kind="skill", name="z", description="Behind: of Ada."))
        await full_gateway.catalog.remove(whole[1])
        cursor = first.json()["metadata"]["nextCursor"]
        response = await client.get(
            "/api/skills/search", params={"q": "ada", "cursor": cursor, "limit": 50}
        )

    assert whole[:2] == ids(first, "entities")
    assert {*whole[2:], "skill:catalog/z"} == {*ids(response, "entities")}


@pytest.mark.parametrize("path", [ROOT, "/api/servers", "/api/agents", "/api/skills/search?q=a"])
async def test_invalid_page_cursor_is_refused(full_gateway: Gateway, path: str) -> None:
    await full_gateway.catalog.put(*MANY)
    async with open_client(full_gateway) as client:
        page = await client.get("/api/agents", params={"query": "a", "limit": 1})
        of_another = page.json()["metadata"]["nextCursor"]
        base = f"{path}{'&' if '?' in path else '?'}"
        page = await client.get(f"{base}limit=1")
        of_this = page.json()["metadata"]["nextCursor"] or of_another
        refused = [
            await client.get(f"{base}cursor={quote(response)}")
            for response in (
                "?",
                "server:mail",
                "AAAA",
                "W1tb",
                "é",
                of_another,
                f"{of_this}A",
                f"{of_this}?",
            )
        ]

    assert {(404, "unknown_cursor")} == {
        (response.status_code, response.json()["code"]) for response in refused
    }
    assert ["?cursor"] == [fault["where"] for fault in refused[0].json()["errors"]]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("servers", ["server:mail"]),
        # The text is a part of a word in any case: in the name, in a tool's name, or in a tool's
        # purpose.
        ("servers?query=AI", ["server:mail"]),
        ("servers?query=ead_ema", ["server:mail"]),
        ("servers?query=newest e-m", ["server:mail"]),
        ("servers?query=nothing", []),
        # The text is in the path, in a tag, or in the keys and values of the metadata.
        ("agents?query=/courier-o", ["agent:catalog/courier"]),
        ("agents?query=config region e", ["agent:catalog/courier"]),
        ("agents?query=PRO", ["agent:catalog/courier"]),
        ("agents?query=p", ["agent:catalog/Rail Planner", "agent:catalog/courier"]),
        ("agents?query=p&limit=1", ["agent:catalog/Rail Planner"]),
        # Both words occur in the entity, but not next to each other.
        ("agents?query=e-mail writes", []),
        # Only a hidden entity contains the text.
        ("agents?query=debtors", []),
        ("skills/search?q=etter-wri", ["skill:catalog/letter-writing"]),
        ("skills/search?q=letter&tags=absent", []),
    ],
)
async def test_entity_lists_match_the_query_text_literally(
    client: AsyncClient, asked: str, expected: list[str]
) -> None:
    response = await client.get(f"/api/{asked}")

    total = 2 if "limit" in asked else len(expected)
    assert (expected, total) == (ids(response, "entities"), response.json()["total"])
    mode = "lexical-only" if "q" in asked else "browse"
    assert mode == response.json()["search_mode"]


async def test_skills_are_ordered_by_the_fields_that_match(full_gateway: Gateway) -> None:
    """The scores are 0.5 for the name, 0.3 description, 0.2 tag and 0.1 metadata.

    Equal scores are ordered by id.
    """
    await full_gateway.catalog.put(
        Entry(kind="skill", name="ada-tribute", description="On Ada.", hints=Hints(tags=("ada",))),
        Entry(kind="skill", name="sums", description="By Ada."),
        Entry(kind="skill", name="odes", description="Of ADA.", metadata={"by": "ada"}),
    )
    async with open_client(full_gateway) as client:
        response = await client.get("/api/skills/search", params={"q": "Ada"})
        unasked = await client.get("/api/skills/search")

    assert [
        ("ada-tribute", 0.5 + 0.3 + 0.2),
        ("odes", pytest.approx(0.3 + 0.1)),
        ("sums", 0.3),
        # Only the author in the metadata matches.
        ("letter-writing", 0.1),
    ] == [(entity["name"], entity["relevance_score"]) for entity in response.json()["entities"]]
    assert 422 == unasked.status_code


@pytest.mark.parametrize("scopes", [(WRITE,), (WRITE, "billing"), (ALL_SCOPES,)])
async def test_callers_cannot_write_entities_that_they_could_not_read(
    full_gateway: Gateway, scopes: tuple[str, ...]
) -> None:
    secret = f"{ROOT}/agent:catalog/accountant"
    allowed = scopes != (WRITE,)
    async with open_client(full_gateway, scopes=scopes) as client:
        read = await client.get(secret)
        put = await client.put(secret, json={"scopes": ["billing"]})
        new = await client.post(ROOT, json={"kind": "agent", "name": "new", "scopes": ["billing"]})
        gone = await client.delete(secret)

    statuses = [response.status_code for response in (read, put, new, gone)]
    assert statuses == ([200, 200, 201, 204] if allowed else [404, 403, 403, 404])
    if not allowed:
        assert put.content == new.content


async def test_writing_entities_requires_the_write_scope(full_gateway: Gateway) -> None:
    async with open_client(full_gateway, scopes=()) as client:
        read = await client.get(COURIER)
        refused = [
            await client.post(ROOT, json={"kind": "agent", "name": "x"}),
            await client.put(COURIER, json={}),
            await client.patch(COURIER, json={}),
            await client.delete(COURIER),
        ]

    assert 200 == read.status_code
    assert {403} == {response.status_code for response in refused}


async def test_two_concurrent_patches_are_both_applied(client: AsyncClient) -> None:
    await asyncio.gather(
        client.patch(COURIER, json={"status": "draft"}),
        client.patch(COURIER, json={"enabled": False}),
    )
    read = (await client.get(COURIER)).json()

    assert ("draft", False) == (read["status"], read["enabled"])


async def test_beta_entities_are_listed_and_found(client: AsyncClient) -> None:
    changed = (await client.patch(COURIER, json={"status": "beta"})).json()
    listed = await client.get("/api/agents")
    response = await client.post("/api/search/semantic", json={"query": "sends e-mail for you"})
    document = (await client.get("/openapi.json")).json()

    assert "beta" == changed["status"]
    assert "agent:catalog/courier" in ids(listed, "entities")
    assert "agent:catalog/courier" in ids(response, "agents")
    assert "beta" in document["components"]["schemas"]["EntityView"]["properties"]["status"]["enum"]


async def test_put_refuses_metadata_that_is_too_large(client: AsyncClient) -> None:
    answer = await client.put(COURIER, json={"metadata": {"a": "x" * 70_000}})

    assert (422, "invalid_entity") == (answer.status_code, answer.json()["code"])
    assert "metadata" in answer.json()["detail"]


SHUT = Access(scopes=frozenset({"vault"}))
HIDDEN = (
    "agent:catalog/accountant",
    "recipe:cellar/wine",
    "skill:catalog/ruled",
    "vault/open_safe",
    "server:vault",
    "safes/open_safe",
)
"""Ids of hidden entities: entries that are hidden by their own scope, by a rule, or alone in their
namespace; a tool and a server that a server lists; a tool that a server entry describes."""
NAMES = st.text("abcdefghijklmnop", min_size=1, max_size=12)


def unused_ids(key: str) -> st.SearchStrategy[str]:
    """Generate unknown ids of the kind of *key*, in namespaces in use and in empty ones."""
    head, slash, _ = key.rpartition("/")
    kind, colon, _ = head.rpartition(":")
    others = st.sampled_from(["catalog", "cellar"]) | NAMES.map("no-{}".format)
    if not slash:
        return NAMES.map("server:no-{}".format)
    named = NAMES.map("no-{}".format)
    return st.builds(lambda space, name: f"{kind}{colon}{space}/{name}", others, named)


async def ask_all(client: AsyncClient, key: str, body: dict[str, Any]) -> Sequence[object]:
    """Send a request of each kind for the id *key*, and return the responses.

    Validation errors are returned without the id, so that responses for two ids can be compared.
    """
    kind, _, remainder = key.partition(":")
    namespace, _, name = remainder.partition("/")
    path = f"{ROOT}/{key}"
    new = {"kind": kind, "namespace": namespace or "x", "name": name or "x", **body}
    answers: list[Response] = [
        await client.get(path),
        await client.put(path, json=body),
        await client.patch(path, json={"status": "draft"}),
        await client.delete(path),
        await client.post(ROOT, json=new),
    ]
    return [
        (
            response.status_code,
            response.text.replace(repr(name), "NAME"),
            sorted(
                set(response.headers.items()) - {("content-length", str(len(response.content)))}
            ),
        )
        for response in answers
    ]


def test_hidden_id_is_answered_like_an_unknown_id(create_mail_gateway: Mixed) -> None:
    gateway = create_mail_gateway()
    gateway.add_source(ListSource("vault", [tool("open_safe")]), access=SHUT)
    gateway.set_rules({"catalog/ruled": SHUT})
    entries = (
        *ENTRIES,
        Entry(kind="recipe", namespace="cellar", name="wine", scopes=SHUT.scopes),
        Entry(kind="skill", name="ruled"),
        Entry(
            kind="server",
            namespace="cellar",
            name="safes",
            scopes=SHUT.scopes,
            metadata={"tools": [{"name": "open_safe"}]},
        ),
    )
    bodies: tuple[dict[str, Any], ...] = (
        {},
        {"description": "Mine."},
        {"scopes": ["vault"]},
        {"metadata": {"a": "x" * 70_000}},
    )

    @settings(max_examples=25)
    @given(
        pair=st.sampled_from(HIDDEN).flatmap(lambda key: st.tuples(st.just(key), unused_ids(key)))
    )
    def compare(pair: tuple[str, str]) -> None:
        async def answers(key: str) -> Sequence[object]:
            async with open_client(gateway, scopes=(WRITE,)) as client:
                return [await ask_all(client, key, body) for body in bodies]

        hidden, unknown = (asyncio.run(answers(key)) for key in pair)
        assert unknown == hidden

    asyncio.run(gateway.catalog.put(*entries))
    compare()
    stored = {entry.id: entry for entry in asyncio.run(gateway.catalog.entries())}
    assert {entry.id: entry for entry in entries} == stored


async def test_caller_adds_entities_only_to_namespaces_it_sees_completely(
    full_gateway: Gateway,
) -> None:
    await full_gateway.catalog.put(Entry(kind="recipe", namespace="kitchen", name="soup"))
    async with (
        open_client(full_gateway, scopes=(WRITE,)) as client,
        open_client(full_gateway) as guest,
    ):
        answers = [
            await client.put(f"{ROOT}/recipe:kitchen/stew", json={}),
            await client.put(f"{ROOT}/recipe:garden/stew", json={}),
            await client.post(ROOT, json={"kind": "recipe", "name": "stew"}),
            await client.put(COURIER, json={}),
        ]
        closed = answers[1].json()
        await full_gateway.catalog.remove("agent:catalog/accountant")
        late = await guest.put(f"{ROOT}/recipe:garden/stew", json={})

    assert [201, 403, 403, 200] == [response.status_code for response in answers]
    assert "namespace_closed" == closed["code"]
    assert 201 == late.status_code


async def test_patch_keeps_metadata_that_a_rule_hides_from_the_client(
    full_gateway: Gateway,
) -> None:
    """The stored entry stays complete, although the client that changes it sees only a part."""
    tools = [{"name": "burn_letter"}, {"name": "send_letter"}]
    entry = Entry(kind="server", name="desk", metadata={"tools": tools})
    await full_gateway.catalog.put(entry)
    full_gateway.set_rules({"desk/burn_*": SHUT, "catalog/desk": Access(tags=("ruled",))})
    async with open_client(full_gateway, scopes=(WRITE,)) as client:
        changed = await client.patch(f"{ROOT}/{entry.id}", json={"tags": ["new"]})
        read = await client.get(f"{ROOT}/{entry.id}")
    stored = await full_gateway.catalog.entry(entry.id)

    assert changed.json() == read.json()
    assert {"tools": [{"name": "send_letter"}]} == read.json()["metadata"]
    assert ["new", "ruled"] == read.json()["hints"]["tags"]
    assert replace(entry, hints=Hints(tags=("new",))) == stored
    assert await full_gateway.catalog.entry("server:catalog/none") is None
