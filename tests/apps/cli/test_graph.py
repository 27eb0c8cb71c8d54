"""`gateway graph` over a real server: see, draw, write down, check and ask."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli import NOTHING, OK, USAGE
from gateway.testing import ScriptedModel, Turn
from graphs import read
from tests.apps.cli.running import WITHOUT_PACKAGE, Place, child
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
    """A host's own folder, which turns the time server's tools around."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "convert.md").write_text(NOTES, "utf-8")
    return str(folder)


def test_the_graph_is_counted_by_predicate_and_by_rule(place: Place) -> None:
    """The first look at why something is suggested."""
    ran = place.run("graph", "show", "-c", place.config(), "--json")
    shown = place.run("graph", "show", "-c", place.config())

    data = ran.json
    assert (OK, 2, 2, 0) == (ran.code, data["tools"], data["documents"], data["declared"])
    assert {"declared": 0, "derived": 1} == data["predicates"]["nextStep"]
    assert 1 == data["rules"]["phases"]
    assert data["edges"] == sum(data["rules"].values()) == data["derived"]
    for word in ("nodes", "predicates", "nextStep  declared 0, derived 1", "phases"):
        assert word in shown.out


def test_the_edges_around_a_tool_say_where_they_come_from(place: Place, notes: str) -> None:
    """A declared edge names its file and line, a derived one its rule; both directions."""
    config = place.config()
    command = ("graph", "show", "convert_time", "-c", config)

    derived = place.run(*command, "--json").json
    declared = place.run(*command, "--graph", notes, "--json").json
    shown = place.run(*command, "--graph", notes)

    now, convert = "time/get_current_time", "time/convert_time"
    names = ("subject", "predicate", "object", "role", "origin", "source")
    incoming = (now, "nextStep", convert, "next_step", "derived", "phases")
    written = (convert, "requires", now, "prerequisite", "declared", "convert.md:4")
    assert convert == derived["nodes"][0]["id"]
    assert dict(zip(names, incoming, strict=True)) in derived["edges"]
    assert dict(zip(names, written, strict=True)) in declared["edges"]
    assert [] == [item for item in declared["edges"] if item["source"] == "phases"]
    assert "convert.md:4" in shown.out
    assert "groups" in shown.out


def test_paths_and_orders_are_found_between_tools(place: Place, notes: str) -> None:
    """A path names the source of each edge; what must come first stands first."""
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
    assert f"need each other: {convert}, {now}" in listed.err


def test_a_decision_is_shown_then_written_then_read(place: Place) -> None:
    """A dry run writes nothing; afterwards the edge is declared."""
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


def test_an_empty_catalog_has_an_empty_graph(place: Place) -> None:
    """Nothing is found, and nothing breaks."""
    config = place.config({})
    commands = (("show",), ("derive",), ("query", "SELECT ?a WHERE { ?a ?b ?c }"))

    ran = [place.run("graph", *command, "-c", config) for command in commands]
    exported = place.run("graph", "export", "-c", config, "-f", "n-triples")

    assert [NOTHING] * 3 == [item.code for item in ran]
    assert (OK, "") == (exported.code, exported.out.strip())


def test_a_picture_is_centred_on_a_tool_and_kept_in_a_file(place: Place) -> None:
    """One hop around a tool is what fits on a page."""
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


def test_what_was_derived_becomes_documents_that_say_the_same(place: Place) -> None:
    """They are handed back with --graph: the same edges, now the host's own, rule in the path."""
    config, folder = place.config(), place.folder / "derived"
    show = ("graph", "show", "-c", config, "--json")

    ran = place.run("graph", "derive", "-c", config, "--out", str(folder))
    before, after = place.run(*show).json, place.run(*show, "--graph", str(folder)).json

    assert (OK, "") == (ran.code, ran.out)
    assert (folder / "phases" / "time" / "get_current_time.md").is_file()
    assert (before["derived"], 0) == (after["declared"], after["derived"])
    assert list(before["predicates"]) == list(after["predicates"])


def test_a_virtual_server_is_derived_from_like_any_other(place: Place) -> None:
    """Its id has no slash."""
    virtual = {"desk": {"tools": {"now": "time/get_current_time", "later": "time/convert_time"}}}
    config = place.config(virtualServers=virtual)

    ran = place.run("graph", "derive", "-c", config, "--json")

    assert OK == ran.code


def test_documents_on_disk_are_never_overwritten_unasked(place: Place) -> None:
    """They may have been edited."""
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


def test_derived_documents_are_printed_or_bundled(place: Place, notes: str) -> None:
    """For eyes, and as a bundle that --graph reads; without what the host forbids."""
    command = ("graph", "derive", "-c", place.config())

    printed = place.run(*command)
    bundle = place.folder / "bundle.json"
    bundle.write_text(place.run(*command, "--json").out, "utf-8")
    without = place.run(*command, "--graph", notes)

    assert "<!-- phases/time/get_current_time.md -->" in printed.out
    assert "phases/time/get_current_time.md" in [item.path for item in read(bundle)]
    assert (OK, False) == (without.code, "phases/" in without.out)


def test_good_documents_are_fine_with_the_tools_that_they_name(place: Place, notes: str) -> None:
    """Without the catalog a tool is only a label, which is a warning and no fault."""
    alone = place.run("graph", "validate", notes)
    known = place.run("graph", "validate", notes, "-c", place.config(), "--json")

    assert (OK, OK) == (alone.code, known.code)
    assert "documents  1" in alone.out
    assert "warning" in alone.out
    none: list[object] = []
    expected = {"documents": 1, "notices": none, "cycles": none, "shacl": True, "faults": none}
    assert expected == known.json


def test_every_fault_of_a_folder_is_reported_with_file_line_and_code(
    place: Place, tmp_path: Path
) -> None:
    """One broken document does not hide the next one's faults."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, lines in (
        ("broken", "title: ["),
        ("odd", "title: Odd\ngraph_edges:\n  - {predicate: flies, object: Away}"),
        ("wrong", "title: Wrong\ngraph_requires: [Odd]\ngraph_next_steps: [Odd]"),
    ):
        (folder / f"{name}.md").write_text(f"---\n{lines}\n---\n", "utf-8")

    ran = place.run("graph", "validate", str(folder), "--json")
    shown = place.run("graph", "validate", str(folder))

    notices = [(item["path"], item["line"], item["code"]) for item in ran.json["notices"]]
    assert (USAGE, USAGE) == (ran.code, shown.code)
    assert [("broken.md", 3), ("odd.md", 4)] == [(path, line) for path, line, _ in notices]
    assert ["document_invalid", "predicate_unknown"] == [code for *_, code in notices]
    assert "violation" in {fault["severity"] for fault in ran.json["faults"]}
    for word in ("odd.md", "predicate_unknown", "no next step of the same document"):
        assert word in shown.out


def test_prerequisites_in_a_circle_are_a_fault(place: Place, tmp_path: Path) -> None:
    """No order of calls could meet them."""
    for name, other in (("Pay", "Order"), ("Order", "Pay")):
        text = f"---\ntitle: {name}\ngraph_requires: [{other}]\n---\n"
        (tmp_path / f"{name}.md").write_text(text, "utf-8")

    ran = place.run("graph", "validate", str(tmp_path), "--json")

    assert (USAGE, [["Order", "Pay"]]) == (ran.code, ran.json["cycles"])


def test_without_pyshacl_the_rest_is_checked_and_the_extra_named(place: Place, notes: str) -> None:
    """An optional part that is missing is no fault of the documents."""
    command = ("graph", "validate", notes, "--json")

    ran = child("-c", _WITHOUT_SHACL, *command, cwd=place.folder, env={})

    assert (OK, False) == (ran.code, ran.json["shacl"])
    assert "tool-gateway[shacl]" in ran.err


def test_nothing_to_read_is_bad_usage(place: Place) -> None:
    """A path that was named must be read."""
    config, gone = place.config({}), str(place.folder / "gone")

    for command in (("graph", "show", "-c", config), ("search", "time", "-c", config)):
        ran = place.run(*command, "--graph", gone, "--json")
        assert (USAGE, True) == (ran.code, "gone" in ran.json["error"]["message"])
    assert USAGE == place.run("graph", "validate", gone).code


def test_a_query_is_answered_as_a_table_or_as_json(place: Place) -> None:
    """The gateway's own prefixes need no declaration."""
    config = place.config()
    text = "SELECT ?next WHERE { ?tool tg:nextStep ?next ; schema:author ?nobody }"
    steps = "SELECT ?next ?none WHERE { ?tool tg:nextStep ?next }"

    cut = place.run("graph", "query", "SELECT ?a WHERE { ?a ?b ?c }", "-n", "2", "-c", config)
    yes = place.run("graph", "query", "ASK { ?a tg:nextStep ?b }", "-c", config)
    nothing = place.run("graph", "query", text, "-c", config)
    shown = place.run("graph", "query", steps, "-c", config)
    ran = place.run("graph", "query", steps, "-c", config, "--json")

    node = "urn:tool-gateway:tool:time/convert_time"
    assert (NOTHING, OK, OK) == (nothing.code, shown.code, ran.code)
    assert node in shown.out
    assert "cut at 2 rows" in cut.err
    assert (OK, "yes\n") == (yes.code, yes.out)
    term = {"kind": "iri", "value": node, "language": "", "datatype": ""}
    assert (["next", "none"], [[term, None]]) == (ran.json["columns"], ran.json["rows"])


def test_a_search_reads_the_hosts_documents_too(place: Place, notes: str) -> None:
    """What they declare is in the result, down to file and line."""
    options = ("-n", "1", "--strategy", "graph", "-c", place.config(), "--graph", notes)
    ran = place.run("search", "convert time", *options, "--json")

    assert OK == ran.code
    assert "convert.md:4" in json.dumps(ran.json["result"])


def test_a_model_proposes_and_a_person_decides(place: Place) -> None:
    """A look first, then files; without a model or a key it says what is missing."""
    command = ("graph", "propose", "-c", place.config(), "--server", "time")
    arrow = "time/convert_time --requires--> time/get_current_time"

    looked = place.run(*command, "--dry-run", "--json")
    counted = place.run(*command, "--dry-run")
    nobody = place.run(*command)
    with ScriptedModel(lambda _: Turn(arrow)) as model:
        propose = (*command, "--model", "m", "--base-url", model.base_url)
        key = {"OPENAI_API_KEY": "k"}
        written = place.run(*propose, "--out", str(place.folder / "proposed"), env=key)
        shown = place.run(*propose, env=key)
        data = place.run(*propose, "--json", env=key).json

    assert ["time"] == [item["server"] for item in looked.json["requests"]]
    assert (OK, OK, USAGE) == (looked.code, counted.code, nobody.code)
    assert "nothing was sent" in counted.err
    assert "--model" in nobody.err
    (document,), notices = read(place.folder / "proposed"), written.err
    assert (OK, "requires") == (written.code, document.edges[0].predicate)
    assert "requests       1" in notices
    assert "--requires-->" in shown.out
    assert (1, "time.md") == (data["requests"], data["documents"][0]["path"])


def test_the_graph_finds_what_a_question_means(place: Place, notes: str) -> None:
    """By words and by schema, each node once, with the place where it is stated."""
    command = ("graph", "find", "convert time", "-c", place.config(), "--graph", notes)

    ran = place.run(*command, "--json")
    shown = place.run(*command, "--mode", "schema")
    nothing = place.run("graph", "find", "xyzzy", "-c", place.config())

    ids = [each["id"] for each in ran.json["found"]]
    assert (OK, OK, NOTHING) == (ran.code, shown.code, nothing.code)
    assert "time/convert_time" == ids[0]
    assert len(ids) == len({*ids})
    assert "name: " in shown.out


def test_own_shapes_and_endpoints_are_named_on_the_command_line(place: Place, notes: str) -> None:
    """A file of shapes must be there, and nothing is fetched but from what was named."""
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
