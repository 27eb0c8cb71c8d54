"""Graph page: neighbours, paths, prerequisites and decisions."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from gateway.gateway import Gateway
from gateway.serve.auth import WRITE, BearerToken
from gateway.serve.http_options import HttpOptions
from gateway.types import Caller
from tests.apps.serve.console.catalogs import SMALL, many_tools
from tests.apps.serve.console.conftest import Open, Serve, check_access
from tests.apps.serve.console.test_access import READER, SECRET
from tests.apps.serve.console.test_pages import check_layout
from tests.conftest import OpenGateway
from tests.fakes import ListSource, Shelf, tool

DECIDE = "/graph/-/decide"
PROPOSED = "# Mail\n\n- mail/send_email --requires--> mail/read_email\n"
EDGE = {"subject": "mail/send_email", "predicate": "requires", "object": "mail/read_email"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Graph documents of the host. One declares an edge, another proposes one."""
    folder = tmp_path / "graph"
    (folder / "proposed").mkdir(parents=True)
    (folder / "proposed" / "mail.md").write_text(PROPOSED, "utf-8")
    note = "---\ntitle: play_music\nrequires: [read_email]\n---\n"
    (folder / "music.md").write_text(note, "utf-8")
    return folder


@pytest.fixture
def gateway(folder: Path, open_gateway: OpenGateway) -> Gateway:
    """A gateway that reads the graph documents."""
    gateway = open_gateway(graph=folder)
    gateway.add_server("mail", server=Shelf(SMALL).server)
    return gateway


async def test_node_page_shows_edges_prerequisites_and_paths(
    gateway: Gateway, folder: Path, serve_console: Serve
) -> None:
    """The page shows the same as `gateway graph show`, `order` and `path`."""
    served = await serve_console(gateway, documents=folder)

    chosen = await served.data("/graph", q="music")
    most = await served.data("/graph")
    data = await served.data("/graph/mail/play_music", hops="2", to="send_email")
    lost = await served.data("/graph/mail/play_music", to="nothing")

    assert "mail/play_music" == chosen["found"][0]["id"]
    assert "mail/read_email" == most["found"][0]["id"]
    assert ["proposed/mail.md:3"] == [edge["source"] for edge in chosen["proposed"]]
    stated = data["around"]["edges"][0]
    assert ("declared", "music.md:3") == (stated["origin"], stated["source"])
    assert ["mail/read_email", "mail/play_music"] == [node["id"] for node in data["order"]["nodes"]]
    assert 1 < len(data["paths"][0])
    assert ("", True) == (data["fault"], "nothing" in lost["fault"])
    async with served.client() as client:
        assert 404 == (await client.get("/graph/mail/gone")).status_code


async def test_decision_on_an_edge_is_written_after_the_difference_was_shown(
    gateway: Gateway, folder: Path, serve_console: Serve
) -> None:
    """If the document has changed since, the page shows the new difference instead."""
    served, file = await serve_console(gateway, documents=folder), folder / "reviewed" / "mail.md"
    derived = next(
        edge
        for edge in (await served.data("/graph/mail/send_email"))["around"]["edges"]
        if edge["origin"] == "derived"
    )
    other = {key: derived[key] for key in EDGE}

    accepted = await served.data(DECIDE, verdict="accept", **EDGE)
    rejected = await served.data(DECIDE, verdict="reject", **other)
    is_written = file.exists()
    async with served.signed_in() as client:
        await served.send(client, DECIDE, accepted)
        first = file.read_text("utf-8")
        changed = await served.send(client, DECIDE, rejected)
        response = await client.get(served.url + changed.headers["location"])
        fresh = re.findall(r'name="revision" value="(\w+)"', response.text)[0]
        is_same = first == file.read_text("utf-8")
        done = await served.send(client, DECIDE, {**rejected, "revision": fresh})
        page = await client.get(served.url + done.headers["location"])

    after = (await served.data("/graph/mail/send_email"))["around"]["edges"]
    edges_by_key = {key: edge for edge in after if (key := tuple(edge[item] for item in EDGE))}
    assert (False, True) == (is_written, is_same)
    assert f'+  - {{subject: "{EDGE["subject"]}"' in accepted["diff"]
    assert (303, 303) == (changed.status_code, done.status_code)
    assert "has changed since" in response.text
    assert "rejected: " in page.text
    assert ("declared", "reviewed/mail.md:5") == (
        edges_by_key[tuple(EDGE.values())]["origin"],
        edges_by_key[tuple(EDGE.values())]["source"],
    )
    assert tuple(other.values()) not in edges_by_key
    assert [] == (await served.data("/graph"))["proposed"]


async def test_decision_on_an_edge_requires_a_scope_and_a_folder(
    gateway: Gateway, folder: Path, serve_console: Serve
) -> None:
    http = HttpOptions(port=0, tokens=(READER,))
    reader = await serve_console(gateway, http=http, token=SECRET, documents=folder)
    embedded = await serve_console(gateway)
    sent = {"verdict": "accept", **EDGE}

    for served, status in ((reader, 403), (embedded, 404)):
        async with served.signed_in() as client:
            looked = await client.get(DECIDE, params=sent)
            answer = await served.send(client, DECIDE, sent)
            page = await client.get("/graph")
        assert (status, status) == (looked.status_code, answer.status_code)
        assert ("proposed/mail.md:3" in page.text, "accept:" in page.text) == (
            served is reader,
            False,
        )
    assert not (folder / "reviewed").exists()


async def test_graph_page_draws_the_graph_and_follows_clicks(
    gateway: Gateway, folder: Path, serve_console: Serve, visit: Open
) -> None:
    served = await serve_console(gateway, documents=folder)
    page = await visit(served, "/graph/mail/play_music?hops=2", color_scheme="dark")
    await page.locator("#graph canvas").first.wait_for()
    await check_access(page)
    shapes = await page.evaluate("document.getElementById('graph')._cyreg.cy.nodes().length")
    where = await page.evaluate(
        "document.getElementById('graph')._cyreg.cy.$id('mail/read_email').renderedPosition()"
    )

    await page.locator("#graph").click(position={"x": where["x"], "y": where["y"]})
    await page.wait_for_url("**/graph/mail/read_email")
    await page.get_by_role("link", name="accept: mail/send_email requires").click()
    await check_access(page)
    await page.get_by_role("button", name="Write").click()

    assert 2 < shapes
    assert "accepted" in await page.get_by_role("status").inner_text()
    assert (folder / "reviewed" / "mail.md").exists()


@pytest.fixture
def crowded_gateway(open_gateway: OpenGateway) -> Gateway:
    """A gateway whose groups have more members than the drawing can show."""
    gateway = open_gateway()
    gateway.add_source(ListSource("large", many_tools(600)))
    return gateway


@pytest.mark.parametrize("which", ["small", "hostile", "crowded"])
async def test_node_pages_are_accessible_on_every_catalog(
    which: str, request: pytest.FixtureRequest, serve_console: Serve, visit: Open
) -> None:
    gateway: Gateway = request.getfixturevalue(f"{which}_gateway")
    served = await serve_console(gateway)
    first_node = (await served.data("/graph"))["found"][0]["id"]
    data = await served.data(f"/graph/{quote(first_node)}", hops="3")

    page = await visit(served, f"/graph/{quote(first_node)}?hops=2&to=nothing")
    await page.locator("#graph canvas").first.wait_for()
    await check_access(page)
    await check_layout(page)

    assert await page.evaluate("window.broken") is None
    assert len(data["around"]["nodes"]) <= 60
    assert (which == "crowded") == (data["around"]["omitted"] > 0)


async def test_graph_page_escapes_names_from_upstream_servers(
    folder: Path, open_gateway: OpenGateway, serve_console: Serve
) -> None:
    gateway = open_gateway(graph=folder)
    names = ['"><b>', "a&b=c"]
    gateway.add_server("odd", server=Shelf([tool(name) for name in names]).server)
    served = await serve_console(gateway, documents=folder)
    ids = [entity.id for entity in await gateway.list_tools()]

    edge = {"subject": ids[0], "predicate": "nextStep", "object": ids[1]}
    async with served.signed_in() as client:
        looked = await client.get(DECIDE, params={"verdict": "accept", **edge})
        data = await served.data(DECIDE, verdict="accept", **edge)
        done = await served.send(client, DECIDE, data)
        page = await client.get(served.url + done.headers["location"])

    assert ["<b>" in response.text for response in (looked, page)] == [False, False]
    assert [200, 303, 200] == [response.status_code for response in (looked, done, page)]
    around = (await served.data(f"/graph/{quote(ids[0])}"))["around"]["edges"]
    assert ("declared", *ids) == (around[0]["origin"], around[0]["subject"], around[0]["object"])


async def test_difference_of_a_decision_hides_edges_of_hidden_tools(
    gateway: Gateway, folder: Path, serve_console: Serve
) -> None:
    """The same document may contain edges of tools that the caller may not see."""
    file = folder / "reviewed" / "mail.md"
    file.parent.mkdir()
    hidden = '  - {subject: "mail/send_email", predicate: "requires", object: "mail/play_music"}'
    file.write_text(f"---\ntitle: Mail\ngraph_edges:\n{hidden}\n---\n", "utf-8")
    gateway.bridge.call(lambda: gateway.catalog.change(["mail/play_music"], {"scopes": ["top"]}))
    writer = BearerToken.from_secret("writer", SECRET, Caller(scopes=frozenset({WRITE})))
    http = HttpOptions(port=0, tokens=(writer,))
    served = await serve_console(gateway, http=http, token=SECRET, documents=folder)

    data = await served.data(DECIDE, verdict="accept", **EDGE)

    assert "mail/read_email" in data["diff"]
    assert "play_music" not in data["diff"]
