"""Commands with configurations that are missing, broken or have unusable servers."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from gateway.cli import OK, UNAVAILABLE, USAGE
from tests.apps.cli.running import TIME, Place, child


def test_missing_configuration_suggests_next_steps(place: Place) -> None:
    with contextlib.chdir(place.folder):
        ran = place.run("search", "x")

    assert (USAGE, "") == (ran.code, ran.out)
    for way in ("gateway servers add NAME -- COMMAND", "gateway import claude", "gateway demo"):
        assert way in ran.err


def test_commands_read_mcp_json_of_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps({"servers": {"time": TIME}}))
    env = {"GATEWAY_CACHE_DIR": str(tmp_path)}

    ran = child("-m", "gateway", "tools", "--json", cwd=tmp_path, env=env)

    names = [tool["exposed_name"] for tool in ran.json["tools"]]
    assert (OK, ["convert_time", "get_current_time"]) == (ran.code, names)


def test_named_configuration_file_that_is_missing_is_reported(place: Place) -> None:
    ran = place.run("tools", "--config", "nowhere.json")

    assert (USAGE, "") == (ran.code, ran.out)
    assert "'nowhere.json'" in ran.err
    assert "or name another file" in ran.err


def test_failing_server_does_not_affect_others(place: Place) -> None:
    config = place.config({"time": TIME, "gone": {"command": "no-such-program"}})

    ran = place.run("tools", "-c", config, "--json")

    codes = [note["code"] for note in ran.json["index"]["diagnostics"]]
    assert (UNAVAILABLE, 2, ["source_load_failed"]) == (ran.code, len(ran.json["tools"]), codes)
    assert "'gone': command 'no-such-program' was not found: install it" in ran.err


def test_missing_environment_variable_disables_only_the_server_that_needs_it(place: Place) -> None:
    config = place.config({"time": TIME, "keyed": {"command": "x", "args": ["${NOT_SET_HERE}"]}})

    ran = place.run("tools", "-c", config)

    assert ran.code == UNAVAILABLE
    assert "environment variable NOT_SET_HERE: set it" in ran.err
    assert "get_current_time" in ran.out


def test_dead_server_fails_only_commands_that_need_it(place: Place) -> None:
    """The warning contains the server's last output."""
    config = place.config({"time": TIME, "gone": place.hostile("exits_at_start")})
    # Each command starts the server again, however long the previous one took.
    more = ("-c", config, "--set", "upstream.failure_ttl_s=0", "--json")

    result = place.run("search", "what time is it", "--strategy", "graph", *more)
    called = place.run("call", "get_current_time", '{"timezone": "Europe/Kyiv"}', *more)
    checked = place.run("doctor", "--connect", *more)
    missing = place.run("call", "get_curent_time", "{}", *more)

    assert (OK, OK) == (result.code, called.code)
    assert "'gone': command" in result.err
    wrote = "; it wrote: no licence"
    assert all(wrote in text for text in (result.err, called.err, checked.out))
    assert UNAVAILABLE == missing.code
    assert "get_current_time" in missing.json["error"]["message"]


def test_hanging_server_delays_one_command_only(place: Place) -> None:
    """Later commands do not start the server, unless they are asked to list it again."""
    config = place.config({"time": TIME, "deaf": place.hostile("silent")})
    limits = ("--set", "upstream.connect_timeout_s=8", "--set", "upstream.connect_attempts=1")
    more = ("-c", config, *limits, "--json")
    record = place.folder / "record"

    first = place.run("search", "what time is it", "--strategy", "graph", *more)
    begun = len(record.read_text().splitlines())
    later = [
        place.run("search", "what time is it", "--strategy", "graph", *more),
        place.run("call", "get_current_time", '{"timezone": "Europe/Kyiv"}', *more),
    ]

    assert [OK] * 3 == [ran.code for ran in (first, *later)]
    assert begun == len(record.read_text().splitlines())
    assert "gateway servers test deaf" not in first.err
    assert all("did not connect within" in ran.err for ran in (first, *later))
    assert all("gateway servers test deaf" in ran.err for ran in later)
    place.run("servers", "test", "deaf", *more)
    assert begun < len(record.read_text().splitlines())
