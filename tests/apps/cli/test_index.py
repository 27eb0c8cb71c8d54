"""`gateway index`: what is embedded, kept and forgotten."""

from __future__ import annotations

from gateway.cli import NOTHING, OK, UNAVAILABLE
from tests.apps.cli.running import Place


def test_a_second_build_embeds_nothing_until_the_vectors_are_forgotten(place: Place) -> None:
    config = place.config()

    runs = [
        place.run("index", *more, "-c", config, "--json")
        for more in ((), ("build",), ("build", "--rebuild"))
    ]

    assert [OK] * 3 == [ran.code for ran in runs]
    # Two tools and their server, two texts each.
    assert [6, 0, 6] == [ran.json["embedded_texts"] for ran in runs]
    assert [3, 3, 3] == [ran.json["vectors"] for ran in runs]


def test_what_is_stored_is_shown_without_a_configuration(place: Place) -> None:
    place.run("index", "build", "-c", place.config())

    shown = place.run("index", "show")
    data = place.run("index", "show", "--json").json

    assert shown.code == OK
    assert (6, str(place.cache / "vectors.sqlite3")) == (data["vectors"], data["store"])
    assert data["bytes"] > 0
    assert "vectors.sqlite3" in shown.out


def test_an_empty_store_is_no_file_and_says_how_to_fill_it(place: Place) -> None:
    ran = place.run("index", "show")

    assert ran.code == NOTHING
    assert "gateway index build" in ran.err
    assert not place.cache.exists()


def test_a_corrupt_store_is_set_aside_and_named(place: Place) -> None:
    """And the next command has a new one."""
    place.put("cache/vectors.sqlite3", "no database at all, " * 100)

    first, second = place.run("index", "show"), place.run("index", "show")

    assert (UNAVAILABLE, NOTHING) == (first.code, second.code)
    assert "vectors.sqlite3.corrupt-1" in first.err
    assert (place.cache / "vectors.sqlite3.corrupt-1").is_file()


def test_a_store_that_cannot_be_read_is_unavailable(place: Place) -> None:
    place.cache.write_text("a file where a folder should be")

    ran = place.run("index", "build", "--rebuild", "-c", place.config())

    assert (UNAVAILABLE, "") == (ran.code, ran.out)
    assert "vector store" in ran.err


def test_what_is_prepared_ahead_is_not_made_again(place: Place) -> None:
    """As an image is built: the model and the index, or the model alone, without any file."""
    config = place.config()
    alone = place.at_home("prepare", "--no-servers", "--json")
    built = place.run("prepare", "-c", config, "--json")
    found = place.run("search", "котра година", "-c", config, "--json")

    assert (OK, True, 0) == (alone.code, alone.json["model"], alone.json["tools"])
    assert (OK, True, 2) == (built.code, built.json["model"], built.json["tools"])
    assert (OK, 0) == (found.code, found.json["index"]["embedded_texts"])
