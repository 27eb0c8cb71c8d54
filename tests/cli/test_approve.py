"""`gateway approve`."""

from __future__ import annotations

from gateway.storage.catalog import SqliteCatalog
from tests.cli.running import Place


def test_what_changed_is_reported_shown_and_approved(place: Place) -> None:
    """A command line that was edited, and a tool that is another one now."""
    place.run("tools", "-c", place.config({"srv": place.hostile("plain")}))
    config = place.config({"srv": place.hostile("dressed_up")})
    changed = place.run("tools", "-c", config)
    listed = place.run("approve", "-c", config)
    one = place.run("approve", "srv/good", "-c", config, "--json")
    rest = place.run("approve", "--all", "-c", config, "--json")
    nothing = place.run("approve", "srv", "-c", config)
    again = place.run("tools", "-c", config)

    assert "gateway approve srv/good" in changed.err
    assert "gateway approve srv [server_changed]" in changed.err
    assert (0, "changed  srv, srv/good") == (listed.code, listed.out.strip())
    assert {"approved": ["srv/good"], "changed": ["srv"]} == one.json
    assert {"approved": ["srv"], "changed": []} == rest.json
    assert (1, "nothing changed\n") == (nothing.code, nothing.out)
    assert "approve" not in again.err


def test_a_server_stands_for_all_of_its_own_and_an_unknown_name_is_reported(place: Place) -> None:
    """Only what is configured can be approved."""
    config = place.config({"srv": place.hostile("plain")})
    records = SqliteCatalog(place.cache / "catalog.sqlite3")
    owner = f"{place.folder / 'servers.json'}#srv"
    records.record_seen(owner, {"": "1", "a": "1", "b": "1"})
    records.record_seen(owner, {"": "2", "a": "2", "b": "1"})
    records.close()

    both = place.run("approve", "srv", "-c", config, "--json")
    unknown = place.run("approve", "other/x", "-c", config)

    assert ["srv", "srv/a"] == both.json["approved"]
    assert 0 != unknown.code
    assert "no server 'other' is configured: srv" in unknown.err


def test_an_alias_is_approved_by_its_own_name(place: Place) -> None:
    """And is called without starting any other server."""
    virtual = {"v": {"tools": {"best": "srv/good"}}}
    place.run("tools", "-c", place.config({"srv": place.hostile("plain")}, virtualServers=virtual))
    servers = {"srv": place.hostile("dressed_up"), "other": {"command": "no-such-program"}}
    config = place.config(servers, virtualServers=virtual)
    place.run("tools", "-c", config)
    approved = place.run("approve", "v/best", "-c", config, "--json")
    called = place.run("call", "v/best", "-c", config)

    assert {"approved": ["v/best"], "changed": ["srv", "srv/good"]} == approved.json
    assert 0 == called.code
    assert "no-such-program" not in called.err
