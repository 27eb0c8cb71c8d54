"""`gateway index` and `gateway prepare`."""

from __future__ import annotations

from gateway.cli import NOTHING, OK, UNAVAILABLE
from tests.apps.cli.running import Place


def test_index_build_embeds_nothing_again_until_a_rebuild(place: Place) -> None:
    config = place.config()

    runs = [
        place.run("index", *more, "-c", config, "--json")
        for more in ((), ("build",), ("build", "--rebuild"))
    ]

    assert [OK] * 3 == [ran.code for ran in runs]
    # Two texts each for two tools and their server, and three bundled examples of each tool.
    assert [12, 0, 12] == [ran.json["embedded_texts"] for ran in runs]
    assert [3, 3, 3] == [ran.json["vectors"] for ran in runs]


def test_index_show_works_without_a_configuration(place: Place) -> None:
    place.run("index", "build", "-c", place.config())

    output = place.run("index", "show")
    data = place.run("index", "show", "--json").json

    assert output.code == OK
    assert (12, str(place.cache / "vectors.sqlite3")) == (data["vectors"], data["store"])
    assert data["bytes"] > 0
    assert "vectors.sqlite3" in output.out


def test_index_show_does_not_create_a_missing_store(place: Place) -> None:
    ran = place.run("index", "show")

    assert ran.code == NOTHING
    assert "gateway index build" in ran.err
    assert not place.cache.exists()


def test_corrupt_store_of_vectors_is_replaced_and_reported(place: Place) -> None:
    place.put("cache/vectors.sqlite3", "no database at all, " * 100)

    first, second = place.run("index", "show"), place.run("index", "show")

    assert (UNAVAILABLE, NOTHING) == (first.code, second.code)
    assert "vectors.sqlite3.corrupt-1" in first.err
    assert (place.cache / "vectors.sqlite3.corrupt-1").is_file()


def test_unreadable_store_of_vectors_gives_exit_code_3(place: Place) -> None:
    place.cache.write_text("a file where a folder should be")

    ran = place.run("index", "build", "--rebuild", "-c", place.config())

    assert (UNAVAILABLE, "") == (ran.code, ran.out)
    assert "vector store" in ran.err


def test_commands_reuse_the_model_and_index_that_prepare_made(place: Place) -> None:
    config = place.config()
    alone = place.at_home("prepare", "--no-servers", "--json")
    built = place.run("prepare", "-c", config, "--json")
    result = place.run("search", "котра година", "-c", config, "--json")

    assert (OK, True, 0) == (alone.code, alone.json["model"], alone.json["tools"])
    assert (OK, True, 2) == (built.code, built.json["model"], built.json["tools"])
    assert (OK, 0) == (result.code, result.json["index"]["embedded_texts"])
