"""`gateway tune`."""

from __future__ import annotations

import json

import pytest

from tests.apps.cli.running import Place

WORDS = ("dear", "old", "new", "small", "tall", "kind", "young", "rich", "fine", "late")
TEXTS = {
    "get_current_time": "shall i hurry up now, {} friend",
    "convert_time": "when do i ring my {} aunt abroad",
}


@pytest.fixture
def files(place: Place) -> Place:
    """Folder with the time server, and a file of requests in words that no tool contains."""
    place.config()
    rows = [
        f"| {text.format(word)} {more} | {name} |"
        for word in WORDS
        for more in ("please", "again")
        for name, text in TEXTS.items()
    ]
    place.put("asked.md", "\n".join(("| request | tool |", "| --- | --- |", *rows)))
    return place


def test_search_uses_the_examples_of_tune_until_undo(files: Place) -> None:
    """A second run of `tune` replaces the examples of the first one."""
    config = ("-c", str(files.folder / "servers.json"), "--strategy", "graph")
    search = ("search", "ring my old aunt", *config, "--json")
    words = ("tune", str(files.folder / "asked.md"), *config, "--json")
    before = files.run(*search)
    first, again = files.run(*words), files.run(*words)
    after = files.run(*search)
    undone = files.run("tune", "--undo", *config)
    later, empty = files.run(*search), files.run("tune", "--undo", *config)

    assert [1, 0, 0, 0, 0, 1, 1] == [
        item.code for item in (before, first, again, after, undone, later, empty)
    ]
    assert "convert_time" in after.out
    assert "convert_time" not in before.out + later.out
    assert first.json["examples"] == again.json["examples"]
    assert {(): 2} == {tuple(texts): 2 for texts in again.json["before"].values()}
    assert "2 tools restored to the former examples" in undone.out
    assert "nothing was learned" in empty.out


def test_tune_refuses_too_few_requests(files: Place) -> None:
    config = ("-c", str(files.folder / "servers.json"), "--strategy", "graph")
    files.put("few.md", "| request | tool |\n| --- | --- |\n| hurry | get_current_time |")
    few = files.run("tune", str(files.folder / "few.md"), *config, "--json")

    assert (1, False) == (few.code, few.json["kept"])
    assert "give 30" in few.json["reason"]
    assert not json.loads(json.dumps(few.json["examples"]))


@pytest.mark.parametrize("words", [(), ("asked.md", "--undo"), ("nowhere.md",)])
def test_tune_requires_a_file_or_undo(files: Place, words: tuple[str, ...]) -> None:
    named = [str(files.folder / word) if word.endswith(".md") else word for word in words]

    assert 2 == files.run("tune", *named, "-c", str(files.folder / "servers.json")).code
