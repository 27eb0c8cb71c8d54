"""`gateway discover` and `gateway provision`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.apps.cli.running import Place, Ran
from tests.core.runtime.test_atomic_file import open_to_others
from tests.plugins.provision.conftest import quick_uv
from tests.plugins.provision.indexes import FakeIndex
from tests.plugins.provision.registries import FakeRegistry, item, package

INTENT = "weigh a parcel"


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with closing(FakeRegistry()) as created:
        created.items = [
            item("org.example/parcels", "Weighs a parcel.", packages=[package("tiny-parcels")])
        ]
        yield created


@pytest.fixture
def index() -> Iterator[FakeIndex]:
    with closing(FakeIndex()) as created:
        created.wheel("tiny-parcels")
        yield created


def provision(place: Place, url: str, *more: str, stdin: str = "", index: str = "") -> Ran:
    path = f"{quick_uv(place.folder).parent}{os.pathsep}{os.environ['PATH']}"
    options = ("--registry", url, "--no-known", "--into", str(place.folder / "servers"))
    where = ("--config", str(place.folder / "mcp.json"), "--strategy", "graph")
    env = {"COLUMNS": "60", "PATH": path, "UV_DEFAULT_INDEX": index, "NO_PROXY": "127.0.0.1"}
    return place.run("provision", INTENT, *options, *where, *more, stdin=stdin, env=env)


def test_a_dry_run_shows_the_plan_whole(place: Place, registry: FakeRegistry) -> None:
    """On standard output, every command to its last character, however narrow the terminal."""
    ran = provision(place, registry.url)

    home = place.folder / "servers" / "parcels"
    assert (0, True) == (ran.code, "planned: nothing was done yet" in ran.out)
    assert f"--python {home}/bin/python --only-binary :all: tiny-parcels==1.0.0" in ran.out
    assert f"would run as the server: {home}/bin/tiny-parcels\n" in ran.out
    assert "org.example is not among" in ran.out
    assert ["mcp.json", "servers"] == [
        name for name in ("mcp.json", "servers") if not (place.folder / name).exists()
    ]


def test_what_is_agreed_to_is_done_and_can_be_called(
    place: Place, registry: FakeRegistry, index: FakeIndex
) -> None:
    """From nothing: no configuration, two yeses, one call. All of it is for its owner alone."""
    before = os.umask(0)
    try:
        ran = provision(place, registry.url, "--apply", stdin="y\ny\n", index=index.pip_url)
        others = open_to_others(place.folder)
    finally:
        os.umask(before)
    config = str(place.folder / "mcp.json")
    called = place.run("call", "parcels/weigh_parcel", "{}", "-c", config)
    found = place.run("discover", INTENT, "-c", config, "--strategy", "graph", "--json")
    everything = place.run("discover", "-c", config, "--strategy", "graph")

    assert 0 == ran.code, ran.err
    assert "installed: 1 tool can be called" in ran.out
    assert "will run now: " in ran.err
    assert "Install it? [y/N]" in ran.err
    program = place.folder / "servers" / "parcels" / "bin" / "tiny-parcels"
    assert f"will run as the server: {program}\nRun it? [y/N]" in ran.err
    assert "note: probe ok weigh_parcel" in ran.err
    # The stand-in for uv and its script say so themselves; the cache is what the server wrote.
    home = "servers/parcels"
    cached = f"{home}/lib/python3/site-packages/__pycache__"
    assert {f"{home}/bin/tiny-parcels", cached, "uv"} == set(others), others
    assert (0, "parcels") == (called.code, json.loads(called.out)[2].rpartition("/")[2])
    assert ["parcels/weigh_parcel"] == [tool["id"] for tool in found.json["tools"]]
    assert "idle" == found.json["servers"][0]["state"]
    assert "weigh_parcel" in everything.out


@pytest.mark.parametrize("stdin", ["n\n", ""])
def test_no_answer_is_no(
    place: Place, registry: FakeRegistry, index: FakeIndex, stdin: str
) -> None:
    """Without a person at the keyboard nothing is agreed to."""
    ran = provision(place, registry.url, "--apply", stdin=stdin, index=index.pip_url)

    assert (1, []) == (ran.code, index.fetched)
    assert "declined: nobody agreed to install 'parcels'" in ran.out
    assert not (place.folder / "mcp.json").exists()


def test_yes_agrees_only_where_no_gate_has_a_doubt(
    place: Place, registry: FakeRegistry, index: FakeIndex
) -> None:
    """A namespace that nobody trusts stays outside; a trusted one comes in."""
    doubted = provision(place, registry.url, "--apply", "--yes", index=index.pip_url)
    trusted = ("--trust", "org.example/*")
    agreed = provision(
        place, registry.url, "--apply", "--yes", *trusted, "--json", index=index.pip_url
    )

    assert (1, "declined") == (doubted.code, doubted.out.partition(":")[0])
    assert (0, "installed") == (agreed.code, agreed.json["outcome"]), agreed.err
    assert ["parcels/weigh_parcel"] == [tool["id"] for tool in agreed.json["tools"]]
    assert "tiny-parcels==1.0.0" == agreed.json["plan"]["install"][-1][-1]
    assert {"pass"} == {gate["verdict"] for gate in agreed.json["gates"]}


def test_what_fails_has_a_code_of_its_own(
    place: Place, registry: FakeRegistry, index: FakeIndex
) -> None:
    """And says that it was undone."""
    registry.items = [
        item("org.example/parcels", "Weighs a parcel.", packages=[package("no-such-package")])
    ]
    ran = provision(place, registry.url, "--apply", stdin="y\ny\n", index=index.pip_url)

    assert (3, True) == (ran.code, "everything was undone" in ran.out)


def test_what_the_catalog_has_is_reported(place: Place, registry: FakeRegistry) -> None:
    """The configured servers come first."""
    config = place.config({"srv": place.hostile()})
    ran = place.run("provision", "good works", "-c", config, "--strategy", "graph")

    assert 0 == ran.code
    assert "local: the catalog has it already" in ran.out
    assert "srv/good" in ran.out
    assert [] == registry.requests


def test_what_a_server_needs_is_reported_and_given(place: Place, registry: FakeRegistry) -> None:
    """By name; what stands in the plan is the reference."""
    variable = {"name": "TINY_KEY", "isRequired": True, "isSecret": True}
    wanted = package("tiny-parcels", environmentVariables=[variable])
    registry.items = [item("org.example/parcels", "Weighs a parcel.", packages=[wanted])]
    without = provision(place, registry.url)
    values = provision(place, registry.url, "--set", "TINY_KEY=env:MY_KEY")
    pick = ("--pick", "org.example/parcels")
    remote = {"type": "streamable-http", "url": "https://example.org/mcp"}
    registry.items = [item("org.example/parcels", "Weighs a parcel.", remotes=[remote])]
    for answer in (place.folder / "cache" / "registries").iterdir():
        answer.unlink()
    far = provision(place, registry.url, *pick)

    assert (1, True) == (without.code, "refused: inputs: needs TINY_KEY" in without.out)
    assert (0, True) == (values.code, "TINY_KEY = env:MY_KEY" in values.out)
    assert "address    https://example.org/mcp" in far.out
