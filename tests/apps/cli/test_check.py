"""`gateway check`."""

from __future__ import annotations

import pytest

from gateway.cli import NEEDS_PERSON, OK, RETRY_LATER, UNKNOWN, USAGE
from tests.apps.cli.running import Place, Ran

_NOBODY = {"url": "http://127.0.0.1:1/mcp"}
_MAY_BE_DOWN = """
import os, sys
if os.path.exists(__file__ + ".down"):
    raise SystemExit(3)
os.execv({command!r}[0], {command!r})
"""


def verdicts_of(ended: Ran) -> tuple[int, dict[str, tuple[str, list[str]]]]:
    """Return the exit code of `gateway check`, and the verdict and reasons for each tool, keyed
    by id.
    """
    tools = ended.json["tools"]
    return ended.code, {tool["tool"]: (tool["verdict"], tool["reasons"]) for tool in tools}


def test_check_starts_servers_only_with_live(place: Place) -> None:
    """Without --live, a tool is unknown until its server was listed once."""
    config = place.config({"srv": place.hostile()})
    record = place.folder / "record"
    before = place.run("check", "srv/good", "-c", config, "--json")
    is_untouched = not record.exists()
    live = place.run("check", "srv/good", "-c", config, "--json", "--live")
    started = record.read_text()
    after = place.run("check", "srv/good", "srv/gone", "-c", config, "--json")

    assert (UNKNOWN, {"srv/good": ("unknown", ["not_listed"])}) == verdicts_of(before)
    assert is_untouched
    assert "Starting" not in before.err
    assert (OK, {"srv/good": ("ready", [])}) == verdicts_of(live)
    gone = ("needs_person", ["not_listed"])
    assert (NEEDS_PERSON, {"srv/good": ("ready", []), "srv/gone": gone}) == verdicts_of(after)
    assert started == record.read_text()


@pytest.mark.parametrize("policy", ["warn", "block"])
def test_check_reports_changed_definitions_whether_on_change_is_warn_or_block(
    place: Place, policy: str
) -> None:
    env = {"GATEWAY_ON_CHANGE": policy}
    place.run("tools", "-c", place.config({"srv": place.hostile("plain")}))
    config = place.config({"srv": place.hostile("dressed_up")})
    place.run("tools", "-c", config)
    changed = place.run("check", "srv/good", "-c", config, "--json", env=env)
    place.run("approve", "--all", "-c", config)
    approved = place.run("check", "srv/good", "-c", config, "--json", env=env)

    assert (NEEDS_PERSON, {"srv/good": ("needs_person", ["changed"])}) == verdicts_of(changed)
    assert OK == approved.code


def test_check_compares_the_schemas_of_a_tool_with_a_given_digest(place: Place) -> None:
    config = place.config({"srv": place.hostile()})
    (tool,) = place.run("check", "srv/good", "-c", config, "--json", "--live").json["tools"]
    same = place.run("check", f"srv/good@{tool['digest']}", "-c", config, "--json")
    other = place.run("check", f"srv/good@{16 * '0'}", "-c", config, "--json")

    assert OK == same.code
    assert (NEEDS_PERSON, {"srv/good": ("needs_person", ["schema_differs"])}) == verdicts_of(other)


def test_check_applies_access_rules_to_the_caller(place: Place) -> None:
    config = place.config({"srv": place.hostile()}, rules={"srv/good": {"scopes": ["mail"]}})
    anyone = place.run("check", "srv/good", "-c", config, "--json", "--live")
    holder = place.run("check", "srv/good", "-c", config, "--json", "--scope", "mail")

    assert (NEEDS_PERSON, {"srv/good": ("needs_person", ["filtered"])}) == verdicts_of(anyone)
    assert OK == holder.code


def test_check_reports_a_server_that_is_down(place: Place) -> None:
    """Later checks without --live report the recorded failure until the server is listed again."""
    entry = place.hostile()
    command = [entry["command"], *entry["args"]]  # type: ignore[misc]  # (a list of texts)
    script = place.put("server.py", _MAY_BE_DOWN.format(command=command))
    config = place.config({"srv": {"command": entry["command"], "args": [str(script)]}})
    tools = "check", "srv/good", "-c", config, "--json"
    up = place.run(*tools, "--live")
    down = place.put("server.py.down", "")
    result = place.run(*tools, "--live")
    noted = place.run(*tools)
    down.unlink()
    again = place.run(*tools, "--live")

    later = (RETRY_LATER, {"srv/good": ("retry_later", ["server_down"])})
    assert OK == up.code
    assert later == verdicts_of(result)
    assert later == verdicts_of(noted)
    assert OK == again.code == place.run(*tools).code


def test_check_requires_a_sign_in_until_a_token_is_stored(place: Place) -> None:
    """The stored tokens are read; the server is not contacted."""
    config = place.config({"srv": {**_NOBODY, "auth": {"type": "oauth"}}})

    assert (NEEDS_PERSON, {"srv/send": ("needs_person", ["signed_out"])}) == verdicts_of(
        place.run("check", "srv/send", "-c", config, "--json")
    )


def test_check_exits_with_the_code_of_the_worst_tool(place: Place) -> None:
    servers = {"srv": place.hostile(), "new": place.hostile("pid"), "down": _NOBODY}
    config = place.config(servers)
    place.run("check", "srv/good", "-c", config, "--live")
    later = place.run("check", "srv/good", "down/x", "-c", config, "--json", "--live")
    person = place.run("check", "none/x", "srv/good", "-c", config, "--json")
    unknown = place.run("check", "none/x", "new/good", "srv/good", "-c", config)

    down = ("retry_later", ["server_down"])
    assert (RETRY_LATER, {"srv/good": ("ready", []), "down/x": down}) == verdicts_of(later)
    assert NEEDS_PERSON == person.code
    assert UNKNOWN == unknown.code
    assert "--live does it" in unknown.out


def test_check_of_an_alias_uses_its_original_server(place: Place) -> None:
    """A virtual server has no connection of its own."""
    virtual = {"work": {"tools": {"do": "srv/good"}}}
    config = place.config({"srv": place.hostile()}, virtualServers=virtual)
    before = place.run("check", "work/do", "-c", config, "--json")
    live = place.run("check", "work/do", "-c", config, "--json", "--live")

    assert (UNKNOWN, {"work/do": ("unknown", ["not_listed"])}) == verdicts_of(before)
    assert (OK, {"work/do": ("ready", [])}) == verdicts_of(live)


def test_check_refuses_tool_names_without_a_server(place: Place) -> None:
    """A name without its server may mean another tool later."""
    ended = place.run("check", "good", "-c", place.config({"srv": place.hostile()}))

    assert (USAGE, True) == (ended.code, "server/name" in ended.err)
