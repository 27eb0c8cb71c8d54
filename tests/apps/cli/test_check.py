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


def said(ended: Ran) -> tuple[int, dict[str, tuple[str, list[str]]]]:
    """Return the exit code, and the verdict and reasons of each tool."""
    tools = ended.json["tools"]
    return ended.code, {each["tool"]: (each["verdict"], each["reasons"]) for each in tools}


def test_no_server_is_started_unless_it_is_asked_for(place: Place) -> None:
    """Unknown before, ready after; a tool that is gone needs a person."""
    config = place.config({"srv": place.hostile()})
    record = place.folder / "record"
    before = place.run("check", "srv/good", "-c", config, "--json")
    is_untouched = not record.exists()
    live = place.run("check", "srv/good", "-c", config, "--json", "--live")
    started = record.read_text()
    after = place.run("check", "srv/good", "srv/gone", "-c", config, "--json")

    assert (UNKNOWN, {"srv/good": ("unknown", ["not_listed"])}) == said(before)
    assert is_untouched
    assert "Starting" not in before.err
    assert (OK, {"srv/good": ("ready", [])}) == said(live)
    gone = ("needs_person", ["not_listed"])
    assert (NEEDS_PERSON, {"srv/good": ("ready", []), "srv/gone": gone}) == said(after)
    assert started == record.read_text()


@pytest.mark.parametrize("policy", ["warn", "block"])
def test_what_changed_since_it_was_approved_needs_a_person(place: Place, policy: str) -> None:
    """Under either policy, until somebody approves it."""
    env = {"GATEWAY_ON_CHANGE": policy}
    place.run("tools", "-c", place.config({"srv": place.hostile("plain")}))
    config = place.config({"srv": place.hostile("dressed_up")})
    place.run("tools", "-c", config)
    changed = place.run("check", "srv/good", "-c", config, "--json", env=env)
    place.run("approve", "--all", "-c", config)
    approved = place.run("check", "srv/good", "-c", config, "--json", env=env)

    assert (NEEDS_PERSON, {"srv/good": ("needs_person", ["changed"])}) == said(changed)
    assert OK == approved.code


def test_the_digest_tells_whether_the_schemas_are_those_of_the_agent(place: Place) -> None:
    """It is printed, and taken behind the id."""
    config = place.config({"srv": place.hostile()})
    (tool,) = place.run("check", "srv/good", "-c", config, "--json", "--live").json["tools"]
    same = place.run("check", f"srv/good@{tool['digest']}", "-c", config, "--json")
    other = place.run("check", f"srv/good@{16 * '0'}", "-c", config, "--json")

    assert OK == same.code
    assert (NEEDS_PERSON, {"srv/good": ("needs_person", ["schema_differs"])}) == said(other)


def test_rules_decide_for_the_caller(place: Place) -> None:
    """As in a call."""
    config = place.config({"srv": place.hostile()}, rules={"srv/good": {"scopes": ["mail"]}})
    anyone = place.run("check", "srv/good", "-c", config, "--json", "--live")
    holder = place.run("check", "srv/good", "-c", config, "--json", "--scope", "mail")

    assert (NEEDS_PERSON, {"srv/good": ("needs_person", ["filtered"])}) == said(anyone)
    assert OK == holder.code


def test_a_server_that_is_down_is_to_be_tried_later(place: Place) -> None:
    """What one check found out is noted for those after it, until the server is listed again."""
    entry = place.hostile()
    command = [entry["command"], *entry["args"]]  # type: ignore[misc]  # (a list of texts)
    script = place.put("server.py", _MAY_BE_DOWN.format(command=command))
    config = place.config({"srv": {"command": entry["command"], "args": [str(script)]}})
    tools = "check", "srv/good", "-c", config, "--json"
    up = place.run(*tools, "--live")
    down = place.put("server.py.down", "")
    found = place.run(*tools, "--live")
    noted = place.run(*tools)
    down.unlink()
    again = place.run(*tools, "--live")

    later = (RETRY_LATER, {"srv/good": ("retry_later", ["server_down"])})
    assert OK == up.code
    assert later == said(found)
    assert later == said(noted)
    assert OK == again.code == place.run(*tools).code


def test_a_sign_in_is_needed_before_the_first_and_only_then(place: Place) -> None:
    """The token store tells it; no one is asked."""
    config = place.config({"srv": {**_NOBODY, "auth": {"type": "oauth"}}})

    assert (NEEDS_PERSON, {"srv/send": ("needs_person", ["signed_out"])}) == said(
        place.run("check", "srv/send", "-c", config, "--json")
    )


def test_the_exit_code_is_that_of_the_worst_tool(place: Place) -> None:
    """Unknown is worse than a person, a person worse than later."""
    servers = {"srv": place.hostile(), "new": place.hostile("pid"), "down": _NOBODY}
    config = place.config(servers)
    place.run("check", "srv/good", "-c", config, "--live")
    later = place.run("check", "srv/good", "down/x", "-c", config, "--json", "--live")
    person = place.run("check", "none/x", "srv/good", "-c", config, "--json")
    unknown = place.run("check", "none/x", "new/good", "srv/good", "-c", config)

    down = ("retry_later", ["server_down"])
    assert (RETRY_LATER, {"srv/good": ("ready", []), "down/x": down}) == said(later)
    assert NEEDS_PERSON == person.code
    assert UNKNOWN == unknown.code
    assert "--live does it" in unknown.out


def test_an_alias_needs_the_server_behind_it(place: Place) -> None:
    """A virtual server has no connection of its own."""
    virtual = {"work": {"tools": {"do": "srv/good"}}}
    config = place.config({"srv": place.hostile()}, virtualServers=virtual)
    before = place.run("check", "work/do", "-c", config, "--json")
    live = place.run("check", "work/do", "-c", config, "--json", "--live")

    assert (UNKNOWN, {"work/do": ("unknown", ["not_listed"])}) == said(before)
    assert (OK, {"work/do": ("ready", [])}) == said(live)


def test_a_name_that_is_no_id_is_refused(place: Place) -> None:
    """A name alone may be another tool tomorrow."""
    ended = place.run("check", "good", "-c", place.config({"srv": place.hostile()}))

    assert (USAGE, True) == (ended.code, "server/name" in ended.err)
