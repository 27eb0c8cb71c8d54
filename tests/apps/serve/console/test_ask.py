"""Ask page, and the form of a call."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from gateway.errors import UpstreamError
from gateway.gateway import Gateway
from gateway.options import AccessPolicy, AuditOptions, Options
from gateway.plugins.access import audit_log_of, read_all
from gateway.plugins.quality import EvalRequest, parse
from gateway.serve.auth import CALL, WRITE, BearerToken
from gateway.serve.http_options import HttpOptions
from gateway.types import Access, Caller, Content, Hints, InvokeResult, JsonObject, ToolDefinition
from tests.apps.serve.console.catalogs import MARKUP
from tests.apps.serve.console.conftest import Open, Serve, check_access
from tests.conftest import OpenGateway
from tests.fakes import ListSource, Shelf, tool

SCHEMA = {
    "type": "object",
    "properties": {
        "number": {"type": "integer", "description": "Which letter.", "maximum": 9},
        "reason": {"type": "string"},
        "tone": {"enum": ["kind", "cold"]},
    },
    "required": ["number"],
}
DELETE = replace(tool("delete_letter", "Delete a letter."), input_schema=SCHEMA)
READ = replace(
    DELETE, name="read_letter", description="Read a letter.", hints=Hints(read_only=True)
)
OF = Caller(user="ada", scopes=frozenset({CALL}))
SECRET = "another-s3cret-of-the-test"


class Desk(ListSource):
    """Source of tools that records calls, and returns the configured answers."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        super().__init__("desk", tools, trusted=True)
        self.calls: list[tuple[str, JsonObject]] = []
        self.error: Exception | None = None

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        self.calls.append((tool, arguments))
        if self.error is not None:
            raise self.error
        image = {"type": "image", "mimeType": "image/png", "data": "iVBOR", "src": "//x.example/y"}
        blocks = (Content(type="text", text=f"gone {MARKUP}"), Content(type="image", data=image))
        return InvokeResult(tool_id=tool_id, content=blocks, structured={"left": 3})


@pytest.fixture
def desk() -> Desk:
    return Desk([DELETE, READ, tool("write_letter", "Write a letter.")])


@pytest.fixture
def letters(open_gateway: OpenGateway, desk: Desk) -> Gateway:
    """A gateway with the tools of the desk. One tool is a draft, another requires a scope."""
    gateway = open_gateway()
    gateway.add_source(desk)
    gateway.add_source(ListSource("vault", [tool("seal_letter", "Seal a letter.")]))
    gateway.set_rules(
        {
            "desk/write_letter": Access(status="draft", tags=("Post",)),
            "vault/*": Access(scopes=frozenset({"seal"})),
        }
    )
    return gateway


def matched(data: Mapping[str, Any], column: int = 0) -> list[str]:
    rows = data["answers"][column]["rows"]
    return [row["match"]["id"] for row in rows if row["kind"] == "match"]


def left_out(data: Mapping[str, Any], column: int = 0) -> dict[str, list[str]]:
    return {item["id"]: item["filters"] for item in data["answers"][column]["filtered"]}


async def test_ask_page_shows_matches_with_explanations(
    letters: Gateway, serve_console: Serve
) -> None:
    data = await (await serve_console(letters)).data("/ask", q="delete a letter")

    (answer,) = data["answers"]
    first = answer["rows"][0]
    assert ["desk/delete_letter", "desk/read_letter"] == matched(data)
    assert (1, 1, True) == (first["ranks"]["lexical"], first["ranks"]["final"], first["callable"])
    assert "of the request's words, by rarity: delete, letter." in " ".join(first["why"])
    assert {"desk/write_letter": ["status"]} == left_out(data)
    assert ["delete_letter", "read_letter"] == answer["model"]["tools"]
    assert {"graph", "confidence"} <= answer["stages"].keys()
    assert answer["model"]["text"].startswith('{"tools":[{"name":"delete_letter"')
    assert "vault" not in json.dumps(data)


async def test_ask_page_applies_the_filters_in_the_address(
    small_gateway: Gateway, serve_console: Serve
) -> None:
    served = await serve_console(small_gateway)

    agents = await served.data("/ask", q="e-mail", kind="agent")
    everything = await served.data("/ask", q="e-mail", kind="all", limit="50")
    elsewhere = await served.data("/ask", q="e-mail", server="no", tags="Mail , x", limit="x")

    assert ["agent:catalog/courier"] == matched(agents)
    assert {"agent:catalog/courier", "mail/send_email"} <= {*matched(everything, 1)}
    assert [] == matched(elsewhere)
    assert ["tag", "server"] == left_out(elsewhere)["mail/send_email"]
    assert (None, 50) == (elsewhere["other"]["limit"], everything["other"]["limit"])


async def test_ask_page_compares_two_settings(letters: Gateway, serve_console: Serve) -> None:
    served = await serve_console(letters)
    other = {"ranking": "lexical", "limit": "1", "context": "the seal"}

    alone = await served.data("/ask", q="delete a letter", limit="")
    both = await served.data("/ask", q="delete a letter", **other)

    assert (1, 2) == (len(alone["answers"]), len(both["answers"]))
    assert ["graph", "lexical"] == [answer["mode"] for answer in both["answers"]]
    assert (matched(alone), ["desk/delete_letter"]) == (matched(both), matched(both, 1))
    assert ("lexical", 1, "the seal") == tuple(both["other"][key] for key in other)


async def test_search_as_another_caller_requires_the_scope(
    letters: Gateway, serve_console: Serve
) -> None:
    as_sealer = {"q": "a letter", "user": "ada", "scopes": "seal x"}
    as_nobody = {"q": "a letter", "user": "eve"}
    tokens = (BearerToken.from_secret("reader", SECRET, Caller(scopes=frozenset({"seal"}))),)

    served = await serve_console(letters)
    sealer = await served.data("/ask", **as_sealer)
    nobody = await served.data("/ask", **as_nobody)
    closed = await serve_console(letters, http=HttpOptions(port=0, tokens=tokens), token=SECRET)
    async with closed.client() as client:
        refused = await client.get("/ask", params=as_nobody)
        own_page = await client.get("/ask", params={"q": "a letter"})

    assert "vault/seal_letter" not in matched(sealer)
    assert "vault/seal_letter" in matched(sealer, 1)
    assert ["scope"] == left_out(nobody, 1)["vault/seal_letter"]
    assert (403, 200) == (refused.status_code, own_page.status_code)
    assert "vault/seal_letter" in own_page.text
    for offered in ('name="user"', "This one is right", "/console/call/"):
        assert offered not in own_page.text


async def test_ask_page_saves_a_match_as_a_test_request(
    letters: Gateway, serve_console: Serve, tmp_path: Path
) -> None:
    file = tmp_path / "asked.md"
    served = await serve_console(letters, requests=file)
    fields = {"q": "burn | it", "id": "desk/delete_letter", "back": "q=burn&limit=3"}

    async with served.signed_in() as client:
        page = await client.get("/ask", params={"q": "delete a letter"})
        saved = await served.send(client, "/ask/save", fields)
        again = await served.send(client, "/ask/save", fields)
        notes = await client.get("/ask")
        hidden = await served.send(client, "/ask/save", {**fields, "id": "vault/seal_letter"})

    assert "This one is right" in page.text
    assert [303, 303, 404] == [response.status_code for response in (saved, again, hidden)]
    assert "/console/ask?q=burn&limit=3" == saved.headers["location"]
    assert "saved for desk/delete_letter" in notes.text
    request = EvalRequest(text="burn | it", wanted=(("desk/delete_letter",),))
    assert (request,) == parse(file.read_text(), where="asked.md").requests


async def test_ask_page_saves_no_match_without_a_file_of_test_requests(
    letters: Gateway, serve_console: Serve
) -> None:
    served = await serve_console(letters)

    async with served.signed_in() as client:
        page = await client.get("/ask", params={"q": "delete a letter"})
        refused = await served.send(client, "/ask/save", {"q": "x", "id": "desk/delete_letter"})

    assert "This one is right" not in page.text
    assert 404 == refused.status_code


async def test_call_that_may_change_data_requires_confirmation(
    letters: Gateway, serve_console: Serve, desk: Desk
) -> None:
    served = await serve_console(letters)
    typed = {"arg.number": "3", "arg.tone": '"cold"', "arg.reason": "<old>"}

    async with served.signed_in() as client:
        unsure = await served.send(client, "/call/desk/delete_letter", typed)
        before = list(desk.calls)
        sure = await served.send(client, "/call/desk/delete_letter", {**typed, "confirm": "1"})
        read = await served.send(client, "/call/desk/read_letter", {"arg.number": "4"})

    assert [422, 200, 200] == [response.status_code for response in (unsure, sure, read)]
    assert [] == before
    assert "The tool was not called." in unsure.text
    assert "Confirm the call." in unsure.text
    assert "&lt;old&gt;" in unsure.text
    values = {"number": 3, "reason": "<old>", "tone": "cold"}
    assert [("delete_letter", values), ("read_letter", {"number": 4})] == desk.calls
    assert 'name="confirm"' not in read.text


async def test_call_from_the_console_obeys_the_policy_and_is_audited(
    open_gateway: OpenGateway, serve_console: Serve, desk: Desk, tmp_path: Path
) -> None:
    own_options = Options(
        policies=(AccessPolicy(action="ask", name="private"),),
        audit=AuditOptions(record="on"),
        catalog_store_path=tmp_path / "catalog.sqlite3",
    )
    gateway = open_gateway(options=own_options)
    gateway.add_source(desk)
    token = BearerToken.from_secret("desk", SECRET, replace(OF, scopes=frozenset({CALL, WRITE})))
    served = await serve_console(gateway, http=HttpOptions(port=0, tokens=(token,)), token=SECRET)
    tool_id, typed = "desk/read_letter", {"arg.number": "4"}
    path = f"/call/{tool_id}"

    async with served.signed_in() as client:
        form = await client.get(path)
        unsure = await served.send(client, path, typed)
        before = list(desk.calls)
        sure = await served.send(client, path, {**typed, "confirm": "1"})
        await served.send(client, "/catalog?do=disable", {"chosen": [tool_id]})

    rows = [row for _, row in read_all(audit_log_of(gateway.store))]
    assert "The policy &#39;private&#39; requires confirmation." in form.text
    assert (422, 200) == (unsure.status_code, sure.status_code)
    assert ([], [("read_letter", {"number": 4})]) == (before, desk.calls)
    assert [
        ("call", "approved"),
        ("call", "allowed"),
        ("call", "ok"),
        ("catalog.change", "allowed"),
        ("catalog.change", "ok"),
    ] == [(row.action, row.decision) for row in rows]
    assert {("desk", "ada", "desk/read_letter")} == {(r.token, r.user, r.entity) for r in rows}


async def test_answer_of_a_tool_is_shown_as_escaped_text(
    letters: Gateway, serve_console: Serve
) -> None:
    served = await serve_console(letters)

    async with served.signed_in() as client:
        page_text = (await served.send(client, "/call/desk/read_letter", {"arg.number": "4"})).text
        data = await served.send(client, "/call/desk/read_letter?format=json", {"arg.number": "4"})

    assert "&lt;script&gt;window.broken=1" in page_text
    assert "&#34;src&#34;: &#34;//x.example/y&#34;" in page_text
    assert "&#34;left&#34;: 3" in page_text
    assert "<img" not in page_text
    assert {"left": 3} == data.json()["result"]["structured"]


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({}, "required"),
        ({"arg.number": "x"}, "not a number"),
        ({"arg.number": "12"}, "12 is greater than the maximum of 9"),
        ({"arg.number": "1", "rest": '{"tone": "odd"}'}, "&#39;odd&#39; is not one of"),
    ],
)
async def test_invalid_arguments_are_reported_at_their_fields(
    letters: Gateway, serve_console: Serve, desk: Desk, form: dict[str, str], told: str
) -> None:
    served = await serve_console(letters)

    async with served.signed_in() as client:
        answer = await served.send(client, "/call/desk/read_letter", form)

    assert (422, []) == (answer.status_code, desk.calls)
    assert "The tool was not called." in answer.text
    assert f'<strong class="bad"><span class="text" dir="auto">{told}' in answer.text


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (UpstreamError("desk", "is shut", sent=False), "is shut; nothing was sent"),
        (UpstreamError("desk", "is torn"), "is torn"),
    ],
)
async def test_failed_call_shows_the_reason(
    letters: Gateway, serve_console: Serve, desk: Desk, error: Exception, told: str
) -> None:
    desk.error = error
    served = await serve_console(letters)

    async with served.signed_in() as client:
        answer = await served.send(client, "/call/desk/read_letter", {"arg.number": "1"})

    assert 200 == answer.status_code
    assert f"{told}</span>" in answer.text


async def test_hidden_tools_have_no_call_form(letters: Gateway, serve_console: Serve) -> None:
    tokens = (BearerToken.from_secret("reader", SECRET, Caller()),)
    served = await serve_console(letters)
    closed = await serve_console(letters, http=HttpOptions(port=0, tokens=tokens), token=SECRET)

    async with served.client() as client, closed.client() as other:
        hidden = await client.get("/call/vault/seal_letter?format=json")
        unknown = await client.get("/call/vault/no?format=json")
        refused = await other.get("/call/desk/read_letter")

    assert [404, 404, 403] == [response.status_code for response in (hidden, unknown, refused)]
    assert {"unknown_tool"} == {hidden.json()["code"], unknown.json()["code"]}


async def test_ask_page_searches_while_the_user_types(
    letters: Gateway, serve_console: Serve, visit: Open
) -> None:
    page = await visit(await serve_console(letters), "/ask")
    results = page.locator("#results article")

    await page.get_by_label("What do you need?").press_sequentially("read a letter")
    await expect(results.first).to_contain_text("read_letter")
    await expect(page).to_have_url(re.compile(r"q=read\+a\+letter"))
    await page.get_by_text("Compare with other settings, side by side").click()
    await page.get_by_label("Ranking").select_option("lexical")
    await expect(page.get_by_role("region")).to_have_count(2)
    await page.reload()

    await expect(page.get_by_role("region")).to_have_count(2)
    await expect(page.get_by_label("What do you need?")).to_have_value("read a letter")


async def test_tool_is_called_with_the_keyboard(
    letters: Gateway, serve_console: Serve, visit: Open, desk: Desk
) -> None:
    page = await visit(await serve_console(letters), "/ask?q=delete a letter")

    await page.get_by_role("link", name="Call delete_letter").click()
    await check_access(page)
    await page.get_by_label("number").fill("7")
    await (
        page.get_by_label("The tool may destroy")
        .or_(page.get_by_label("The tool is not known"))
        .check()
    )
    await page.get_by_role("button", name="Call desk/delete_letter").press("Enter")

    await expect(page.get_by_role("region", name="Answer")).to_contain_text("The tool answered")
    await check_access(page)
    assert [("delete_letter", {"number": 7})] == desk.calls
    assert await page.evaluate("window.broken") is None


async def test_tool_name_with_dots_is_escaped_in_addresses(
    open_gateway: OpenGateway, serve_console: Serve, visit: Open
) -> None:
    """A browser resolves ``..`` in an address, so another tool would be called."""
    gateway, mail = open_gateway(), Shelf([tool("wipe", "Wipe the mailbox.")])
    evil = Shelf([tool("../../call/mail/wipe", "Read a letter.")])
    gateway.add_server("mail", server=mail.server)
    gateway.add_server("evil", server=evil.server)
    page = await visit(await serve_console(gateway), "/ask?q=read a letter&server=evil")

    await page.locator(".actions a").click()
    await page.get_by_role("checkbox").check()
    await page.get_by_role("button", name="Call evil").click()
    await expect(page.get_by_role("heading", name="Answer")).to_be_visible()

    assert ([], ["../../call/mail/wipe"]) == (mail.calls, [name for name, _ in evil.calls])
