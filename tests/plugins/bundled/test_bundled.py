"""Bundled documents about well-known servers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

import graphs
from gateway.options import GraphOptions, Options
from gateway.plugins import bundled as plugin
from gateway.types import SearchResult
from tests.conftest import OpenGateway
from tests.fakes import ListSource, tool

FOLDER = Path(plugin.__file__).with_name("documents")
DOCUMENTS = {
    path.stem: graphs.parse(path.read_text("utf-8"), path=path.name)
    for path in sorted(FOLDER.glob("*.md"))
}
LISTINGS: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("listings.json").read_text("utf-8")
)
"""Names of the tools that 48 real servers listed on 2026-11-28, keyed by server."""
UNDONE = ("delete", "remove", "close", "uninstall", "unsubscribe")


def fingerprint(document: graphs.Document) -> set[str]:
    return {link.target for link in document.entities}


def relations(document: graphs.Document) -> list[graphs.Edge]:
    return [edge for edge in document.edges if edge.predicate != "example"]


def examples(document: graphs.Document) -> dict[str, list[str]]:
    """Return the example requests of each tool, keyed by name."""
    found: dict[str, list[str]] = {}
    for edge in document.edges:
        if edge.predicate == "example":
            found.setdefault(edge.subject, []).append(edge.object)
    return found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_names_only_tools_of_its_server(name: str) -> None:
    document, tools = DOCUMENTS[name], set(LISTINGS[name])

    ends = {end for edge in relations(document) for end in (edge.subject, edge.object)}
    assert ends | fingerprint(document) | examples(document).keys() <= tools
    assert document.aliases
    assert document.modified
    assert () == document.notices


@pytest.mark.parametrize("name", DOCUMENTS)
def test_fingerprint_identifies_one_server(name: str) -> None:
    """A server with further tools, such as basic-memory with ``fetch``, is another one."""
    tools, known = fingerprint(DOCUMENTS[name]), examples(DOCUMENTS[name]).keys()

    assert [name] == [
        server
        for server, names in LISTINGS.items()
        if tools <= set(names) and 2 * len(known & set(names)) >= len(names)
    ]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_has_no_doubtful_edges(name: str) -> None:
    """An edge is stated once, does not lead back to its tool and does not undo a creation. A tool
    has few next steps.
    """
    edges = relations(DOCUMENTS[name])
    pairs = [
        (edge.predicate, *sorted((edge.subject, edge.object)))
        if edge.predicate == "relatedTo"
        else (edge.predicate, edge.subject, edge.object)
        for edge in edges
    ]
    steps = [edge for edge in edges if edge.predicate == "nextStep"]

    assert {"requires", "nextStep", "relatedTo"} >= {edge.predicate for edge in edges}
    assert [] == [pair for pair, count in Counter(pairs).items() if count > 1]
    assert all(edge.subject != edge.object for edge in edges)
    assert max(Counter(edge.subject for edge in steps).values(), default=0) <= 3
    creations = [edge for edge in steps if "create" in edge.subject or "add" in edge.subject]
    assert [] == [edge for edge in creations if edge.object.startswith(UNDONE)]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_tool_has_two_or_three_short_examples(name: str) -> None:
    texts = examples(DOCUMENTS[name])

    assert set(LISTINGS[name]) == texts.keys()
    assert {2, 3} >= {len(requests) for requests in texts.values()}
    every = [request for requests in texts.values() for request in requests]
    assert len(every) == len({*every})
    assert all(3 <= len(request.split()) <= 20 for request in every)


def test_many_servers_have_next_steps_or_prerequisites() -> None:
    steps = [
        sum(edge.predicate != "relatedTo" for edge in relations(document))
        for document in DOCUMENTS.values()
    ]

    assert len(DOCUMENTS) >= 40
    assert sum(count >= 5 for count in steps) >= 25


async def search_git(
    open_gateway: OpenGateway, tools: Iterable[str], *, bundled: bool = True
) -> SearchResult:
    """Search for a commit on a server called ``git`` with these *tools*, next to another server."""
    options = Options(graph=GraphOptions(bundled=bundled))
    gateway = open_gateway(strategy="graph", options=options)
    gateway.add_source(ListSource("git", tuple(map(tool, tools))))
    gateway.add_source(ListSource("other", (tool("git_add"), tool("sing"))))
    return await gateway.search("git_commit", limit=1)


async def test_bundled_prerequisite_is_listed_with_file_and_line(open_gateway: OpenGateway) -> None:
    result = await search_git(open_gateway, LISTINGS["git"])

    (needed,) = result.prerequisites
    (step,) = needed.evidence.path
    line = (
        (FOLDER / "git.md")
        .read_text("utf-8")
        .splitlines()
        .index("- git_commit --requires--> git_add")
    )
    assert ("git/git_commit", "requires", "git/git_add") == (
        step.subject, step.predicate, step.object,
    )  # fmt: skip
    assert (f"bundled/git.md:{line + 1}", True) == (step.source, step.declared)
    assert "git/git_log" in {match.id for match in result.next_steps}


async def test_option_turns_bundled_documents_off(open_gateway: OpenGateway) -> None:
    result = await search_git(open_gateway, LISTINGS["git"], bundled=False)

    assert () == result.prerequisites


async def test_server_with_a_well_known_name_gets_nothing(open_gateway: OpenGateway) -> None:
    """Only the tools identify a server. Here one tool of the fingerprint is missing."""
    missing = min(fingerprint(DOCUMENTS["git"]))
    tools = [name for name in LISTINGS["git"] if name != missing]

    result = await search_git(open_gateway, tools)

    assert () == result.prerequisites


async def test_server_with_the_tools_of_many_servers_gets_nothing(
    open_gateway: OpenGateway,
) -> None:
    """A document names at least half of the tools of its server."""
    result = await search_git(open_gateway, [*LISTINGS["git"], *LISTINGS["slack"]])
    many = await search_git(open_gateway, [*LISTINGS["git"], *LISTINGS["excel"]])

    assert () != result.prerequisites
    assert () == many.prerequisites


async def test_examples_are_searched(open_gateway: OpenGateway) -> None:
    """The request has no word in common with the tool."""
    gateway = open_gateway(strategy="graph")
    gateway.add_source(ListSource("git", tuple(map(tool, LISTINGS["git"]))))
    (request, *_) = examples(DOCUMENTS["git"])["git_log"]

    result = await gateway.search(request, limit=1)

    assert ["git/git_log"] == [match.id for match in result.matches]


async def test_edges_to_tools_that_a_version_lacks_are_ignored(open_gateway: OpenGateway) -> None:
    tools = [name for name in LISTINGS["git"] if name != "git_add"]

    result = await search_git(open_gateway, [*tools, "git_new"])

    assert () == result.prerequisites
    assert "git/git_log" in {match.id for match in result.next_steps}
