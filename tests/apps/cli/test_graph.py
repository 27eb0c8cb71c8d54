"""`gateway graph` over a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli import NOTHING, OK, USAGE
from gateway.testing import ScriptedModel, Turn
from graphs import read
from tests.apps.cli.running import (
    EXCEL,
    PLAIN,
    REAL_TIME,
    TIME,
    WITHOUT_PACKAGE,
    WORD,
    Place,
    child,
)
from tests.graphs.rdf.test_shapes import OWN

_WITHOUT_SHACL = WITHOUT_PACKAGE.format("pyshacl")
NOTES = """---
title: convert_time
graph_requires:
  - get_current_time
graph_forbid:
  - {subject: get_current_time, predicate: nextStep, object: convert_time}
---
"""


@pytest.fixture
def notes(tmp_path: Path) -> str:
    """Path of a folder with documents of the host that reverse the edges of the time server's
    tools.
    """
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "convert.md").write_text(NOTES, "utf-8")
    return str(folder)


def test_graph_show_counts_edges_by_predicate_and_rule(place: Place) -> None:
    ran = place.run("graph", "show", "-c", place.config(), "--json")
    output = place.run("graph", "show", "-c", place.config())

    data = ran.json
    assert (OK, 2, 2, 0) == (ran.code, data["tools"], data["documents"], data["declared"])
    assert {"declared": 0, "bundled": 0, "derived": 1} == data["predicates"]["nextStep"]
    assert {"declared": 0, "bundled": 1, "derived": 0} == data["predicates"]["relatedTo"]
    assert 1 == data["rules"]["phases"]
    assert data["edges"] - data["bundled"] == sum(data["rules"].values()) == data["derived"]
    for word in ("nodes", "predicates", "nextStep   declared 0, bundled 0, derived 1", "phases"):
        assert word in output.out


def test_graph_show_lists_edges_of_a_tool_with_their_origin(place: Place, notes: str) -> None:
    """A declared edge names its file and line, a derived edge its rule."""
    config = place.config()
    command = ("graph", "show", "convert_time", "-c", config)

    derived = place.run(*command, "--json").json
    declared = place.run(*command, "--graph", notes, "--json").json
    output = place.run(*command, "--graph", notes)

    now, convert = "time/get_current_time", "time/convert_time"
    names = ("subject", "predicate", "object", "role", "origin", "source")
    incoming = (now, "nextStep", convert, "next_step", "derived", "phases")
    written = (convert, "requires", now, "prerequisite", "declared", "convert.md:4")
    assert convert == derived["nodes"][0]["id"]
    assert dict(zip(names, incoming, strict=True)) in derived["edges"]
    assert dict(zip(names, written, strict=True)) in declared["edges"]
    assert [] == [item for item in declared["edges"] if item["source"] == "phases"]
    assert "convert.md:4" in output.out
    assert "groups" in output.out


def test_graph_path_and_graph_order_connect_tools(place: Place, notes: str) -> None:
    now, convert = "time/get_current_time", "time/convert_time"
    circle = "---\ntitle: get_current_time\ngraph_requires: [convert_time]\n---\n"
    (Path(notes) / "now.md").write_text(circle, "utf-8")
    options = ("-c", place.config(), "--graph", notes)

    path = place.run("graph", "path", "get_current_time", convert, *options, "--json")
    order = place.run("graph", "order", "convert_time", *options, "--json")
    listed = place.run("graph", "order", "convert_time", *options)

    assert (OK, OK, OK) == (path.code, order.code, listed.code)
    assert {"convert.md:4", "now.md:3"} >= {edge["source"] for edge in path.json["paths"][0]}
    assert {now, convert} == {node["id"] for node in order.json["nodes"]}
    assert [[convert, now]] == order.json["cycles"]
    assert f"so they have no order: {convert}, {now}" in listed.err


def test_graph_accept_writes_an_edge_that_later_commands_read(place: Place) -> None:
    """With --dry-run nothing is written."""
    folder = place.folder / "graph"
    folder.mkdir()
    options = ("-c", place.config(), "--graph", str(folder))
    edge = ("get_current_time", "nextStep", "convert_time")

    looked = place.run("graph", "reject", *edge, *options, "--dry-run", "--json")
    is_written = (folder / "reviewed").exists()
    accepted = place.run("graph", "accept", *edge, *options)
    twice = place.run("graph", "accept", *edge, *options)

    row = '{subject: "time/get_current_time", predicate: "nextStep", object: "time/convert_time"}'
    assert (OK, False, False) == (looked.code, looked.json["written"], is_written)
    assert ("reviewed/time.md", True) == (looked.json["path"], row in looked.json["diff"])
    assert (OK, True) == (accepted.code, f"+  - {row}" in accepted.out)
    assert (USAGE, True) == (twice.code, "see reviewed/time.md:5" in twice.err)


def test_graph_commands_show_an_empty_graph_without_tools(place: Place) -> None:
    config = place.config({})
    commands = (("show",), ("derive",), ("query", "SELECT ?a WHERE { ?a ?b ?c }"))

    ran = [place.run("graph", *command, "-c", config) for command in commands]
    exported = place.run("graph", "export", "-c", config, "-f", "n-triples")

    assert [NOTHING] * 3 == [item.code for item in ran]
    assert (OK, "") == (exported.code, exported.out.strip())


def test_graph_export_draws_a_tool_and_its_neighbours(place: Place) -> None:
    file = place.folder / "pictures" / "time.mmd"
    command = ("graph", "export", "-c", place.config())
    centre, drawn = ("--centre", "convert_time"), (*command, "-f", "mermaid")

    whole = place.run(*drawn)
    ran = place.run(*drawn, *centre, "--hops", "1", "--out", str(file))
    centred = place.run(*command, *centre)
    nowhere = place.run(*command, "--out", str(place.folder))

    assert (OK, "") == (ran.code, ran.out)
    picture = file.read_text("utf-8")
    assert 'n0["convert time"]' in picture
    assert len(picture.splitlines()) < len(whole.out.splitlines())
    assert (USAGE, USAGE) == (centred.code, nowhere.code)
    assert "turtle has no centre: draw one with mermaid, dot" in centred.err
    assert "cannot be read" in nowhere.err


def test_graph_derive_writes_derived_edges_as_documents(place: Place) -> None:
    """Read with --graph, these edges are declared, and their path contains the name of the rule."""
    config, folder = place.config(), place.folder / "derived"
    show = ("graph", "show", "-c", config, "--json")

    ran = place.run("graph", "derive", "-c", config, "--out", str(folder))
    before, after = place.run(*show).json, place.run(*show, "--graph", str(folder)).json

    assert (OK, "") == (ran.code, ran.out)
    assert (folder / "phases" / "time" / "get_current_time.md").is_file()
    assert (before["derived"], 0) == (after["declared"], after["derived"])
    assert list(before["predicates"]) == list(after["predicates"])


def test_graph_derive_writes_documents_about_virtual_servers(place: Place) -> None:
    """The id of a virtual server contains no slash, unlike the id of a tool."""
    virtual = {"desk": {"tools": {"now": "time/get_current_time", "later": "time/convert_time"}}}
    config = place.config(virtualServers=virtual)

    ran = place.run("graph", "derive", "-c", config, "--json")

    assert OK == ran.code


def test_graph_derive_does_not_overwrite_existing_documents(place: Place) -> None:
    """The user may have edited the documents."""
    folder = place.folder / "derived"
    edited = folder / "phases" / "time" / "get_current_time.md"
    edited.parent.mkdir(parents=True)
    edited.write_text("mine", "utf-8")
    command = ("graph", "derive", "-c", place.config(), "--out")

    refused = place.run(*command, str(folder))
    unchanged = edited.read_text("utf-8"), len(list(folder.rglob("*.md")))
    forced = place.run(*command, str(folder), "--force")
    blocked = place.run(*command, str(edited))

    assert (USAGE, OK, USAGE) == (refused.code, forced.code, blocked.code)
    assert ("mine", 1) == unchanged
    assert "get_current_time.md" in refused.err
    assert "graph_next_steps" in edited.read_text("utf-8")


def test_graph_derive_without_a_folder_prints_documents_or_a_bundle(
    place: Place, notes: str
) -> None:
    """Edges that the host forbids are left out."""
    command = ("graph", "derive", "-c", place.config())

    printed = place.run(*command)
    bundle = place.folder / "bundle.json"
    bundle.write_text(place.run(*command, "--json").out, "utf-8")
    without = place.run(*command, "--graph", notes)

    assert "<!-- phases/time/get_current_time.md -->" in printed.out
    assert "phases/time/get_current_time.md" in [item.path for item in read(bundle)]
    assert (OK, False) == (without.code, "phases/" in without.out)


def test_graph_validate_accepts_documents_about_known_tools(place: Place, notes: str) -> None:
    """Without --config a tool's name is unknown, which causes a warning."""
    alone = place.run("graph", "validate", notes)
    known = place.run("graph", "validate", notes, "-c", place.config(), "--json")

    assert (OK, OK) == (alone.code, known.code)
    assert "documents  1" in alone.out
    assert "warning" in alone.out
    none: list[object] = []
    expected = {"documents": 1, "notices": none, "cycles": none, "shacl": True, "faults": none}
    assert expected == known.json


def test_graph_validate_reports_every_fault_with_file_line_and_code(
    place: Place, tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, lines in (
        ("broken", "title: ["),
        ("odd", "title: Odd\ngraph_edges:\n  - {predicate: flies, object: Away}"),
        ("wrong", "title: Wrong\ngraph_requires: [Odd]\ngraph_next_steps: [Odd]"),
    ):
        (folder / f"{name}.md").write_text(f"---\n{lines}\n---\n", "utf-8")

    ran = place.run("graph", "validate", str(folder), "--json")
    output = place.run("graph", "validate", str(folder))

    notices = [(item["path"], item["line"], item["code"]) for item in ran.json["notices"]]
    assert (USAGE, USAGE) == (ran.code, output.code)
    assert [("broken.md", 3), ("odd.md", 4)] == [(path, line) for path, line, _ in notices]
    assert ["document_invalid", "predicate_unknown"] == [code for *_, code in notices]
    assert "violation" in {fault["severity"] for fault in ran.json["faults"]}
    for word in ("odd.md", "predicate_unknown", "no next step of the same document"):
        assert word in output.out


def test_graph_validate_reports_cycles_of_prerequisites(place: Place, tmp_path: Path) -> None:
    for name, other in (("Pay", "Order"), ("Order", "Pay")):
        text = f"---\ntitle: {name}\ngraph_requires: [{other}]\n---\n"
        (tmp_path / f"{name}.md").write_text(text, "utf-8")

    ran = place.run("graph", "validate", str(tmp_path), "--json")

    assert (USAGE, [["Order", "Pay"]]) == (ran.code, ran.json["cycles"])


def test_graph_validate_without_pyshacl_makes_all_other_checks(place: Place, notes: str) -> None:
    command = ("graph", "validate", notes, "--json")

    ran = child("-c", _WITHOUT_SHACL, *command, cwd=place.folder, env={})

    assert (OK, False) == (ran.code, ran.json["shacl"])
    assert "tool-gateway[shacl]" in ran.err


def test_graph_validate_refuses_a_missing_path(place: Place) -> None:
    config, gone = place.config({}), str(place.folder / "gone")

    for command in (("graph", "show", "-c", config), ("search", "time", "-c", config)):
        ran = place.run(*command, "--graph", gone, "--json")
        assert (USAGE, True) == (ran.code, "gone" in ran.json["error"]["message"])
    assert USAGE == place.run("graph", "validate", gone).code


@pytest.mark.parametrize(
    ("name", "server"), [("time", REAL_TIME), ("excel", EXCEL), ("word", WORD)]
)
def test_bundled_documents_name_only_tools_of_the_real_servers(
    place: Place, name: str, server: dict[str, object]
) -> None:
    """These servers start without credentials."""
    config = place.config({name: server})

    ran = place.run("graph", "validate", "--against", name, "-c", config, "--json")

    assert (OK, 1, []) == (ran.code, ran.json["documents"], ran.json["missing_tools"])


def test_graph_validate_against_a_server_lists_names_that_it_lacks(
    place: Place, tmp_path: Path
) -> None:
    text = (
        "# Plan\n\n- convert_time --requires--> get_time\n- tell_time --nextStep--> convert_time\n"
    )
    (tmp_path / "plan.md").write_text(text, "utf-8")
    command = ("graph", "validate", str(tmp_path), "--against", "time", "-c", place.config())

    ran = place.run(*command, "--json")
    output = place.run(*command)

    assert (USAGE, ["get_time", "tell_time"]) == (ran.code, ran.json["missing_tools"])
    assert "tell_time" in output.out


@pytest.mark.parametrize(
    ("arguments", "server", "message"),
    [
        ((), TIME, "no documents are named: pass a folder, a file or a bundle"),
        (("--against", "tmie"), TIME, "server 'tmie' has no tools: name a server of --config"),
        (("--against", "time"), PLAIN, "no bundled document names a tool of 'time'"),
    ],
)
def test_graph_validate_explains_what_is_missing(
    place: Place, arguments: tuple[str, ...], server: dict[str, object], message: str
) -> None:
    ran = place.run("graph", "validate", *arguments, "-c", place.config({"time": server}))

    assert (USAGE, True) == (ran.code, message in ran.err)


def test_graph_query_prints_answers_as_a_table_or_json(place: Place) -> None:
    """Queries may use the prefixes of the vocabulary without declaring them."""
    config = place.config()
    text = "SELECT ?next WHERE { ?tool tg:nextStep ?next ; schema:author ?nobody }"
    steps = "SELECT ?next ?none WHERE { ?tool tg:nextStep ?next }"

    cut = place.run("graph", "query", "SELECT ?a WHERE { ?a ?b ?c }", "-n", "2", "-c", config)
    yes = place.run("graph", "query", "ASK { ?a tg:nextStep ?b }", "-c", config)
    nothing = place.run("graph", "query", text, "-c", config)
    output = place.run("graph", "query", steps, "-c", config)
    ran = place.run("graph", "query", steps, "-c", config, "--json")

    node = "urn:tool-gateway:tool:time/convert_time"
    assert (NOTHING, OK, OK) == (nothing.code, output.code, ran.code)
    assert node in output.out
    assert "cut at 2 rows" in cut.err
    assert (OK, "yes\n") == (yes.code, yes.out)
    term = {"kind": "iri", "value": node, "language": "", "datatype": ""}
    assert (["next", "none"], [[term, None]]) == (ran.json["columns"], ran.json["rows"])


def test_search_uses_graph_documents_of_the_host(place: Place, notes: str) -> None:
    options = ("-n", "1", "--strategy", "graph", "-c", place.config(), "--graph", notes)
    ran = place.run("search", "convert time", *options, "--json")

    assert OK == ran.code
    assert "convert.md:4" in json.dumps(ran.json["result"])


def test_graph_propose_asks_a_model_and_writes_documents(place: Place) -> None:
    """With --dry-run the requests are only printed. A missing model or key is reported."""
    command = ("graph", "propose", "-c", place.config(), "--server", "time")
    arrow = "time/convert_time --requires--> time/get_current_time"

    looked = place.run(*command, "--dry-run", "--json")
    counted = place.run(*command, "--dry-run")
    nobody = place.run(*command)
    with ScriptedModel(lambda _: Turn(arrow)) as model:
        propose = (*command, "--model", "m", "--base-url", model.base_url)
        key = {"OPENAI_API_KEY": "k"}
        written = place.run(*propose, "--out", str(place.folder / "proposed"), env=key)
        output = place.run(*propose, env=key)
        data = place.run(*propose, "--json", env=key).json

    assert ["time"] == [item["server"] for item in looked.json["requests"]]
    assert (OK, OK, USAGE) == (looked.code, counted.code, nobody.code)
    assert "nothing was sent" in counted.err
    assert "--model" in nobody.err
    (document,), notices = read(place.folder / "proposed"), written.err
    assert (OK, "requires") == (written.code, document.edges[0].predicate)
    assert "requests       1" in notices
    assert "--requires-->" in output.out
    assert (1, "time.md") == (data["requests"], data["documents"][0]["path"])


def test_graph_find_searches_by_words_and_by_schema(place: Place, notes: str) -> None:
    command = ("graph", "find", "convert time", "-c", place.config(), "--graph", notes)

    ran = place.run(*command, "--json")
    output = place.run(*command, "--mode", "schema")
    nothing = place.run("graph", "find", "xyzzy", "-c", place.config())

    ids = [item["id"] for item in ran.json["found"]]
    assert (OK, OK, NOTHING) == (ran.code, output.code, nothing.code)
    assert "time/convert_time" == ids[0]
    assert len(ids) == len({*ids})
    assert "name: " in output.out


def test_graph_validate_uses_given_shapes_and_graph_query_given_endpoints(
    place: Place, notes: str
) -> None:
    """Endpoints that are not named by --service are not contacted."""
    shapes = place.folder / "own.ttl"
    shapes.write_text(OWN, "utf-8")
    text = "ASK { SERVICE <http://10.0.0.1/sparql> { ?s ?p ?o } }"
    query = ("graph", "query", text, "-c", place.config(), "--json")

    ran = place.run("graph", "validate", notes, "--shapes", str(shapes), "--json")
    gone = place.run("graph", "validate", notes, "--shapes", str(place.folder / "gone"), "--json")
    unnamed = place.run(*query)
    private = place.run(*query, "--service", "http://10.0.0.1/sparql")

    assert "say what it is" in json.dumps(ran.json["faults"])
    assert (USAGE, USAGE) == (ran.code, gone.code)
    assert "SERVICE is refused" in unnamed.json["error"]["message"]
    assert "10.0.0.1" in private.json["error"]["message"]
