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
    """The time server, and what people ask in words that it has not."""
    place.config()
    rows = [
        f"| {text.format(word)} {more} | {name} |"
        for word in WORDS
        for more in ("please", "again")
        for name, text in TEXTS.items()
    ]
    place.put("asked.md", "\n".join(("| request | tool |", "| --- | --- |", *rows)))
    return place


def test_what_is_learned_holds_for_later_commands_until_it_is_taken_back(files: Place) -> None:
    """Learned twice it is learned once; the file says what it is worth."""
    config = ("-c", str(files.folder / "servers.json"), "--strategy", "graph")
    search = ("search", "ring my old aunt", *config, "--json")
    words = ("tune", str(files.folder / "asked.md"), *config, "--json")
    before = files.run(*search)
    first, again = files.run(*words), files.run(*words)
    after = files.run(*search)
    undone = files.run("tune", "--undo", *config)
    later, empty = files.run(*search), files.run("tune", "--undo", *config)

    assert [1, 0, 0, 0, 0, 1, 1] == [
        each.code for each in (before, first, again, after, undone, later, empty)
    ]
    assert "convert_time" in after.out
    assert "convert_time" not in before.out + later.out
    assert first.json["examples"] == again.json["examples"]
    assert {(): 2} == {tuple(texts): 2 for texts in again.json["before"].values()}
    assert "2 tools have the examples of before" in undone.out
    assert "nothing was learned" in empty.out


def test_too_few_requests_change_nothing(files: Place) -> None:
    """It says how many are wanted, and writes no file."""
    config = ("-c", str(files.folder / "servers.json"), "--strategy", "graph")
    files.put("few.md", "| request | tool |\n| --- | --- |\n| hurry | get_current_time |")
    few = files.run("tune", str(files.folder / "few.md"), *config, "--json")

    assert (1, False) == (few.code, few.json["kept"])
    assert "give 30" in few.json["reason"]
    assert not json.loads(json.dumps(few.json["examples"]))


@pytest.mark.parametrize("words", [(), ("asked.md", "--undo"), ("nowhere.md",)])
def test_it_wants_a_file_or_undo(files: Place, words: tuple[str, ...]) -> None:
    """Not both, and a file that is there."""
    named = [str(files.folder / word) if word.endswith(".md") else word for word in words]

    assert 2 == files.run("tune", *named, "-c", str(files.folder / "servers.json")).code
