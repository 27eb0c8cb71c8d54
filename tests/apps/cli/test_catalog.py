"""`gateway catalog`, and searches for its entries."""

from __future__ import annotations

import json

import pytest

from tests.apps.cli.running import TIME, Place
from tests.plugins.manifests.test_agent_cards import NEW
from tests.plugins.manifests.test_files import put
from tests.plugins.manifests.test_skills import PDF

SET = ("catalog", "add", "dataset", "iris", "-d", "Measured flowers.", "--tag", "botany")


@pytest.fixture
def stocked(place: Place) -> Place:
    """Folder with a catalog of an agent card and a skill. Its folder ``all`` also contains a broken
    manifest.
    """
    put(place.folder / "all" / "route.json", NEW)
    put(place.folder / "all" / "pdf" / "SKILL.md", PDF)
    put(place.folder / "all" / "bad.json", "{")
    place.run("catalog", "import", str(place.folder / "all"))
    return place


def test_catalog_entry_is_added_listed_shown_found_and_removed(place: Place) -> None:
    added = place.run(*SET, "--metadata", '{"a": {"b": 1, "c": 2}}', "--status", "draft")
    listed = place.run("catalog", "list")
    output = place.run("catalog", "show", "dataset:catalog/iris")
    part = place.run("catalog", "show", "dataset:catalog/iris", "--field", "a.b")
    whole = place.run("catalog", "show", "dataset:catalog/iris", "--json").json
    hidden = place.run("search", "flowers", "--kind", "dataset", "--strategy", "graph")
    more = ("--status", "draft", "--tag", "botany", "--strategy", "graph", "--json")
    result = place.run("search", "flowers", "--kind", "dataset", *more).json
    other = place.run("catalog", "list", "--kind", "agent")
    removed = place.run("catalog", "remove", "dataset:catalog/iris", "--json").json
    empty = place.run("catalog", "list")
    again = place.run("catalog", "remove", "dataset:catalog/iris")

    assert (0, "dataset:catalog/iris is in the catalog\n") == (added.code, added.out)
    assert "dataset:catalog/iris  draft   yes      botany  Measured flowers." in listed.out
    assert "status       draft" in output.out
    assert "tags         botany" in output.out
    assert (0, {"a": {"b": 1}}) == (part.code, json.loads(part.out))
    assert ({"a": {"b": 1, "c": 2}}, []) == (whole["metadata"], whole["scopes"])
    assert 1 == hidden.code
    assert ["dataset:catalog/iris"] == [item["id"] for item in result["result"]["matches"]]
    assert {"id": "dataset:catalog/iris", "removed": True} == removed
    assert (1, True) == (again.code, "no entry has this id" in again.err)
    assert (1, 1) == (other.code, empty.code)
    assert "gateway catalog import" in empty.out


def test_search_with_kind_ranks_entries_like_the_rest_api(place: Place) -> None:
    place.run(*SET)
    place.run("catalog", "add", "dataset", "oaks", "-d", "Measured trees.")
    kind = ("--kind", "dataset", "--strategy", "graph", "--json")

    result = place.run("search", "measured flowers", *kind).json["result"]
    first = place.run("search", "measured flowers", *kind, "--limit", "1").json["result"]

    ids = ["dataset:catalog/iris", "dataset:catalog/oaks"]
    assert ids == [item["id"] for item in result["matches"]]
    assert [1.0, 0.0] == result["display_scores"]
    assert (ids[:1], [1.0]) == ([item["id"] for item in first["matches"]], first["display_scores"])


def test_search_finds_entries_with_status_beta_by_default(place: Place) -> None:
    place.run(*SET, "--status", "beta")
    kind = ("--kind", "dataset", "--strategy", "graph", "--json")
    result = place.run("search", "flowers", *kind).json
    active = place.run("search", "flowers", *kind, "--status", "active")

    assert ["dataset:catalog/iris"] == [item["id"] for item in result["result"]["matches"]]
    assert 1 == active.code


def test_unknown_entry_id_and_invalid_field_are_reported(place: Place) -> None:
    place.run(*SET, "--scope", "staff")

    for arguments, data in (
        (("add", "tool", "x"), "add the server"),
        (("add", "skill", "x", "--metadata", "{"), "the metadata must be JSON"),
        (("show", "dataset:catalog/rose"), "gateway catalog list"),
        (("show", "dataset:catalog/iris", "--field", "$a"), "of metadata"),
        (("import", "nowhere"), "there is no file or folder"),
    ):
        ran = place.run("catalog", *arguments)
        assert (2, True) == (ran.code, data in ran.err)
    data = place.run("catalog", "list", "--kind", "dataset", "--json").json
    assert ["dataset:catalog/iris"] == [item["id"] for item in data["entities"]]


def test_import_reads_manifests_and_reports_broken_ones(stocked: Place) -> None:
    again = stocked.run("catalog", "import", str(stocked.folder / "all"), "--json")
    first = stocked.run("catalog", "list", "-n", "1")
    nothing = stocked.run("catalog", "import", str(stocked.folder / "all" / "pdf" / ".."), "-h")

    assert {"agent:catalog/Route planner", "skill:catalog/pdf-forms"} == {*again.json["ids"]}
    assert "bad.json" in again.json["notes"][0]["detail"]
    assert "bad.json" in again.err
    assert "--after agent:catalog/Route planner" in first.err
    assert 0 == nothing.code


@pytest.mark.parametrize("target", ["bundle.json", "folder"])
def test_import_restores_exported_entries(stocked: Place, target: str) -> None:
    """An export does not overwrite existing files."""
    stocked.run(*SET, "--status", "deprecated")
    stocked.run("catalog", "import", str(stocked.folder / "all"), "--namespace", "catalog")
    before = stocked.run("catalog", "export").json
    path = str(stocked.folder / target)

    written = stocked.run("catalog", "export", "--out", path, "--json").json
    refused = stocked.run("catalog", "export", "--out", path)
    forced = stocked.run("catalog", "export", "--out", path, "--force")
    for item in before["entries"]:
        stocked.run("catalog", "remove", f"{item['kind']}:catalog/{item['name']}")
    empty = stocked.run("catalog", "export")
    stocked.run("catalog", "import", path)

    assert (3, 1 if target == "bundle.json" else 3) == (written["entries"], len(written["files"]))
    assert (2, 0) == (refused.code, forced.code)
    assert (1, []) == (empty.code, empty.json["entries"])
    assert before == stocked.run("catalog", "export").json
    kinds = stocked.run("catalog", "export", "--kind", "skill").json["entries"]
    assert ["skill"] == [item["kind"] for item in kinds]


def test_catalog_list_filters_by_words_and_prints_facets(stocked: Place) -> None:
    stocked.run(*SET)
    stocked.run("catalog", "change", "dataset:catalog/iris", "--disable")
    result = stocked.run(
        "catalog", "list", "--text", "FLOWERS measured", "--only-disabled", "--json"
    )
    others = stocked.run(
        "catalog", "list", "--only-enabled", "--server", "catalog", "-n", "1", "--json"
    )

    assert ["dataset:catalog/iris"] == [item["id"] for item in result.json["entities"]]
    assert {"dataset": 1} == result.json["facets"]["kind"]
    assert {"true": 2, "false": 1} == others.json["facets"]["enabled"]
    assert (2, 1) == (others.json["total"], len(others.json["entities"]))


def test_catalog_change_edits_entities_and_names_ids_that_failed(stocked: Place) -> None:
    change = ("catalog", "change")
    stocked.run(*SET)
    by_id = stocked.run(*change, "dataset:catalog/iris", "nobody", "--add-tag", "eu")
    by_filter = stocked.run(*change, "--tag", "botany", "--set-status", "beta", "--json")
    more = stocked.run(*change, "--tag", "EU", "--remove-tag", "Botany", "--disable", "--json")
    output = stocked.run("catalog", "show", "dataset:catalog/iris", "--json").json
    wrong = (
        (*change, "--disable"),
        (*change, "dataset:catalog/iris", "--kind", "dataset", "--disable"),
        (*change, "dataset:catalog/iris"),
        (*change, "dataset:catalog/iris", "--set-status", "lost"),
        (*change, "--status", "lost", "--disable"),
    )

    assert 1 == by_id.code
    assert "changed  1" in by_id.out
    assert "nobody  nothing has this id" in by_id.out
    assert {"changed": ["dataset:catalog/iris"], "failed": {}} == by_filter.json == more.json
    assert (["eu"], "beta", False) == (output["tags"], output["status"], output["enabled"])
    assert [2] * len(wrong) == [stocked.run(*arguments).code for arguments in wrong]


def test_catalog_export_writes_servers_or_a_virtual_server(place: Place) -> None:
    """Secrets of servers are written as references."""
    secret = "ghp_" + "a1B2" * 9
    config = place.config({"srv": place.hostile(env={"API_KEY": secret}), "b": TIME})
    export = ("catalog", "export", "-c", config)
    output = place.run(*export, "--virtual", "work", "srv/good")
    path = str(place.folder / "out.json")
    written = place.run(*export, "--servers", "--server", "srv", "-o", path)
    again = place.run(*export, "--servers", "--server", "srv", "-o", path)
    both = place.run(*export, "--servers", "--virtual", "x", "--server", "srv")
    text = (place.folder / "out.json").read_text("utf-8")

    assert {"virtualServers": {"work": {"tools": {"good": "srv/good"}}}} == output.json
    assert ["srv"] == [*json.loads(text)["mcpServers"]]
    assert (0, True, False) == (written.code, "set SRV_API_KEY" in written.err, secret in text)
    assert [2, 2, 2] == [again.code, both.code, place.run(*export, "--servers").code]
