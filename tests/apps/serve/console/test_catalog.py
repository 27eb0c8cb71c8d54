"""Catalog page: list, selection, and pages of entities."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.async_api import Page, expect

from gateway.catalog import Entry
from gateway.gateway import Gateway
from gateway.options import UsageOptions
from gateway.serve.auth import WRITE, BearerToken
from gateway.serve.http_options import HttpOptions
from gateway.types import Access, Caller, Hints
from tests.apps.serve.console.catalogs import SMALL, many_tools
from tests.apps.serve.console.conftest import Open, Serve, check_access
from tests.apps.serve.console.test_pages import OVERFLOW
from tests.conftest import PATIENT, OpenGateway
from tests.fakes import Shelf

MAIL = "mail/send_email"


def ids(data: Any) -> list[str]:
    return [row["id"] for row in data["rows"]]


async def test_search_text_and_facets_select_entities(
    small_gateway: Gateway, serve_console: Serve
) -> None:
    served = await serve_console(small_gateway)
    whole = await served.data("/catalog")
    data = await served.data("/catalog", text="E-MAIL", kind="tool")
    kinds = {value["value"]: value for value in data["facets"][0]["values"]}
    none = await served.data("/catalog", status="lost")

    assert ["mail/read_email", MAIL] == ids(data)
    assert (7, 2, 0) == (whole["total"], data["total"], none["total"])
    assert {"tool": (2, True), "agent": (2, False)} == {
        name: (value["count"], value["selected"]) for name, value in kinds.items()
    }
    assert ("text=E-MAIL", "text=E-MAIL&kind=agent") == (
        kinds["tool"]["query"],
        kinds["agent"]["query"],
    )


async def test_next_page_of_the_list_keeps_the_ticked_entities(
    open_gateway: OpenGateway, serve_console: Serve
) -> None:
    served = await serve_console(open_gateway(many_tools(120)))
    first = await served.data("/catalog", chosen="shelf/send_invoice_0")
    async with served.client() as client:
        next_page = await client.get(f"/catalog?{first['next']}{first['chosen_query']}&format=json")
    second = next_page.json()

    assert (120, 50, 50) == (
        first["total"],
        len(first["rows"]),
        len({*ids(first)} - {*ids(second)}),
    )
    assert ["shelf/send_invoice_0"] == first["elsewhere"] == second["chosen"]


async def test_catalog_actions_change_chosen_or_all_selected_entities(
    small_gateway: Gateway, serve_console: Serve
) -> None:
    served = await serve_console(small_gateway)
    form = {"chosen": [MAIL, "mail/nothing"], "text": "mail", "kind": "tool", "tags": "Post, eu"}
    async with served.signed_in() as client:
        tagged = await served.send(client, "/catalog?do=tag", form)
        page = await client.get(served.url + tagged.headers["location"])
        disabled = await served.send(client, "/catalog?do=disable", {"all": "1", "kind": "agent"})
        none = await served.send(client, "/catalog?do=tag", {"chosen": [MAIL]})
        note = await client.get(served.url + none.headers["location"])
    changed = await served.data("/catalog", tag="post")
    off = await served.data("/catalog", enabled="false")

    assert [303] * 3 == [response.status_code for response in (tagged, disabled, none)]
    assert "text=mail&kind=tool&chosen=mail%2Fsend_email&chosen=mail%2Fnothing" in str(page.url)
    assert "1 changed. Not changed: mail/nothing: nothing has this id." in page.text
    assert "Nothing was changed: enter tags" in note.text
    assert ([MAIL], ["Post", "eu"]) == (ids(changed), changed["rows"][0]["tags"])
    assert {"agent:catalog/asleep", "agent:catalog/courier"} == {*ids(off)}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration file that contains a secret."""
    file = tmp_path / "mcp.json"
    server = {"command": "mail", "env": {"API_KEY": "ghp_" + "a1B2" * 9}}
    file.write_text(json.dumps({"mcpServers": {"mail": server, "other": server}}), "utf-8")
    return file


async def test_chosen_entities_are_downloaded_without_secrets(
    small_gateway: Gateway, serve_console: Serve, config: Path
) -> None:
    served = await serve_console(small_gateway, config=config)
    async with served.signed_in() as client:
        form = {"chosen": [MAIL, "agent:catalog/courier"], "name": "work"}
        virtual = await served.send(client, "/catalog/export/virtual", form)
        servers = await served.send(client, "/catalog/export/servers", form)
        nothing = await served.send(client, "/catalog/export/virtual", {})

    assert {"work": {"tools": {"send_email": MAIL}}} == virtual.json()["virtualServers"]
    table = servers.json()["mcpServers"]
    assert {"mail": {"command": "mail", "env": {"API_KEY": "${MAIL_API_KEY}"}}} == table
    assert 'attachment; filename="mcp.json"' == servers.headers["content-disposition"]
    assert "nosniff" == servers.headers["x-content-type-options"]
    assert (422, True) == (nothing.status_code, "choose at least one" in nothing.text)


async def test_servers_cannot_be_exported_without_a_configuration(
    small_gateway: Gateway, serve_console: Serve
) -> None:
    served = await serve_console(small_gateway)
    async with served.signed_in() as client:
        page = await client.get("/catalog")
        refused = await served.send(client, "/catalog/export/servers", {"chosen": [MAIL]})

    assert (404, False) == (refused.status_code, "export/servers" in page.text)


async def test_configuration_snippets_for_clients_contain_no_token(
    small_gateway: Gateway, serve_console: Serve, config: Path
) -> None:
    """The configuration contains local paths only for administrators."""
    secret = "s3cret-of-the-test"
    reader = BearerToken.from_secret("reader", secret, Caller())
    http = HttpOptions(port=0, tokens=(reader,))
    admin_data = await (await serve_console(small_gateway, config=config)).data("/catalog/clients")
    served = await serve_console(small_gateway, http=http, token=secret, config=config)
    other = await served.data("/catalog/clients")

    assert [4, 4] == [
        [snippet["transport"] for snippet in admin_data["snippets"]].count(way)
        for way in ("stdio", "http")
    ]
    assert {"http"} == {snippet["transport"] for snippet in other["snippets"]}
    assert all(f"{served.url}/mcp" in snippet["text"] for snippet in other["snippets"])
    assert not any("TOKEN" in snippet["text"] for snippet in admin_data["snippets"])
    assert secret not in json.dumps(other)
    assert "${GATEWAY_TOKEN}" in other["snippets"][0]["text"]


async def test_entity_page_shows_definition_approval_and_usage(
    open_gateway: OpenGateway, serve_console: Serve, tmp_path: Path
) -> None:
    noted = UsageOptions(record=True)
    store = tmp_path / "catalog.sqlite3"
    gateway = open_gateway(options=replace(PATIENT, catalog_store_path=store, usage=noted))
    gateway.add_server("mail", server=Shelf(SMALL).server)
    await gateway.invoke(MAIL, {})
    await gateway.search("send an e-mail")
    served = await serve_console(gateway)
    tool = await served.data(f"/catalog/{MAIL}")
    server = await served.data("/catalog/server:mail")

    assert (MAIL, "object") == (
        tool["entity"]["id"],
        tool["entity"]["definition"]["input_schema"]["type"],
    )
    assert (1, 0, 1) == tuple(tool["calls"][name] for name in ("succeeded", "failed", "found"))
    assert ("active", "") == (tool["server_state"], tool["approved"])
    assert ["mail/play_music", "mail/read_email", MAIL] == [item["id"] for item in server["tools"]]


async def test_entity_form_changes_only_edited_fields(
    small_gateway: Gateway, serve_console: Serve
) -> None:
    """Settings that were not edited still follow the rules of the configuration."""
    small_gateway.set_rules({MAIL: Access(tags=("rule",))})
    served = await serve_console(small_gateway)
    path = f"/catalog/{quote(MAIL)}"
    form = {
        "enabled": "true",
        "status": "beta",
        "tags": "post",
        "search_text": " Mail\r\nout ",
        "examples": "write\r\n\r\n to Ann ",
    }
    async with served.signed_in() as client:
        changed = await served.send(client, path, form)
        page = await client.get(served.url + changed.headers["location"])
        same = await served.send(client, path, form)
        again = await client.get(served.url + same.headers["location"])
        wrong = await served.send(client, path, {"status": "lost"})
        missing = await served.send(client, "/catalog/mail/nothing", form)
        agent = await served.send(client, "/catalog/agent:catalog/courier", {"tags": "fast"})
    data = await served.data(path)

    assert "Changed: status, tags, search_text, examples." in page.text
    assert "Nothing was changed." in again.text
    assert (422, 404, 303) == (wrong.status_code, missing.status_code, agent.status_code)
    hints = data["entity"]["definition"]["hints"]
    assert ("beta", ["rule", "post"]) == (
        data["entity"]["status"],
        sorted(hints["tags"], reverse=True),
    )
    assert ("Mail\nout", ["write", "to Ann"]) == (hints["search_text"], hints["examples"])
    assert (["post"], None) == (data["use"]["tags"], data["use"]["enabled"])
    courier = await small_gateway.catalog.entry("agent:catalog/courier")
    assert courier is not None
    assert ("fast",) == courier.hints.tags


async def test_catalog_page_neither_shows_nor_changes_hidden_entities(
    small_gateway: Gateway, serve_console: Serve
) -> None:
    hidden = Entry(
        kind="agent", name="hidden", scopes=frozenset({"vault"}), hints=Hints(tags=("x",))
    )
    await small_gateway.catalog.put(hidden)
    served = {}
    for name, scopes in (("reader", ()), ("writer", (WRITE,))):
        secret = f"s3cret-of-the-{name}"
        token = BearerToken.from_secret(name, secret, Caller(scopes=frozenset(scopes)))
        http = HttpOptions(port=0, tokens=(token,))
        served[name] = await serve_console(small_gateway, http=http, token=secret)
    async with served["reader"].signed_in() as client:
        refused = await served["reader"].send(client, "/catalog?do=disable", {"chosen": [MAIL]})
        page = await client.get(f"/catalog/{MAIL}")
        gone = await client.get(f"/catalog/{hidden.id}")
    async with served["writer"].signed_in() as client:
        form = {"all": "1"}
        await served["writer"].send(client, "/catalog?do=disable", form)
        unseen = await served["writer"].send(client, "/catalog?do=disable", {"chosen": [hidden.id]})
        note = await client.get(served["writer"].url + unseen.headers["location"])

    assert [403, 200, 404] == [response.status_code for response in (refused, page, gone)]
    assert "Save" not in page.text
    assert "nothing has this id" in note.text
    entry = await small_gateway.catalog.get(hidden.id)
    assert entry is not None
    assert entry.hints.enabled
    assert hidden.id not in ids(await served["reader"].data("/catalog"))


async def _search(page: Page, text: str) -> None:
    await page.get_by_role("searchbox").press_sequentially(text)
    await page.wait_for_url(f"**text={text}*")


async def test_chosen_entities_survive_other_searches(
    small_gateway: Gateway, serve_console: Serve, visit: Open
) -> None:
    page = await visit(await serve_console(small_gateway), "/catalog")
    await page.get_by_label("Choose mail/play_music").check()
    await _search(page, "read")
    await expect(page.get_by_role("heading", level=2)).to_have_text("1 found, 1 chosen")
    await page.get_by_label("Choose mail/read_email").check()
    await page.get_by_role("searchbox").clear()
    await expect(page.get_by_role("heading", level=2)).to_have_text("7 found, 2 chosen")
    await page.get_by_label("Choose mail/play_music").uncheck()
    await page.get_by_role("navigation", name="Facets").get_by_role("link", name="tool").click()
    await expect(page.get_by_role("heading", level=2)).to_have_text("3 found, 1 chosen")
    await page.get_by_role("button", name="Disable").click()

    await expect(page.get_by_role("status")).to_contain_text("1 changed.")
    off = await small_gateway.catalog.get("mail/read_email")
    assert off is not None
    assert not off.hints.enabled
    assert "kind=tool&chosen=mail%2Fread_email" in page.url


async def test_chosen_entities_survive_without_scripts(
    small_gateway: Gateway, serve_console: Serve, visit: Open
) -> None:
    page = await visit(await serve_console(small_gateway), "/catalog", java_script_enabled=False)
    await page.get_by_label("Choose mail/play_music").check()
    await page.get_by_role("searchbox").fill("read")
    await page.get_by_role("button", name="Search").click()
    await page.get_by_role("navigation", name="Facets").get_by_role("link", name="tool").click()

    await expect(page.get_by_role("heading", level=2)).to_have_text("1 found, 1 chosen")


async def test_entity_pages_are_accessible_with_hostile_texts(
    hostile_gateway: Gateway, serve_console: Serve, visit: Open
) -> None:
    served = await serve_console(hostile_gateway, config=Path("mcp.json"))
    page = await visit(served, "/catalog/clients")
    await check_access(page)
    for entity in (await hostile_gateway.catalog.list()).entities:
        await page.goto(f"{served.url}/console/catalog/{quote(entity.id)}")
        assert await page.evaluate("window.broken") is None
        assert 0 == await page.evaluate(OVERFLOW)
    await check_access(page)
