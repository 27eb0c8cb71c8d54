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


def test_provision_shows_its_plan_in_full(place: Place, registry: FakeRegistry) -> None:
    """Commands are not cut, however narrow the terminal is."""
    ran = provision(place, registry.url)

    home = place.folder / "servers" / "parcels"
    assert (0, True) == (ran.code, "planned: nothing was done yet" in ran.out)
    assert f"--python {home}/bin/python --only-binary :all: tiny-parcels==1.0.0" in ran.out
    assert f"would run as the server: {home}/bin/tiny-parcels\n" in ran.out
    assert "org.example is not among" in ran.out
    assert ["mcp.json", "servers"] == [
        name for name in ("mcp.json", "servers") if not (place.folder / name).exists()
    ]


def test_provision_installs_an_accepted_server_whose_tool_can_be_called(
    place: Place, registry: FakeRegistry, index: FakeIndex
) -> None:
    """There is no configuration at first. All written files are private to their owner."""
    before = os.umask(0)
    try:
        ran = provision(place, registry.url, "--apply", stdin="y\ny\n", index=index.pip_url)
        others = open_to_others(place.folder)
    finally:
        os.umask(before)
    config = str(place.folder / "mcp.json")
    called = place.run("call", "parcels/weigh_parcel", "{}", "-c", config)
    result = place.run("discover", INTENT, "-c", config, "--strategy", "graph", "--json")
    everything = place.run("discover", "-c", config, "--strategy", "graph")

    assert 0 == ran.code, ran.err
    assert "installed: 1 tool can be called" in ran.out
    assert "will run now: " in ran.err
    assert "Install it? [y/N]" in ran.err
    program = place.folder / "servers" / "parcels" / "bin" / "tiny-parcels"
    assert f"will run as the server: {program}\nRun it? [y/N]" in ran.err
    assert "note: probe ok weigh_parcel" in ran.err
    # Not private: files with modes set by the fake uv, and the bytecode cache that the server
    # wrote.
    home = "servers/parcels"
    cached = f"{home}/lib/python3/site-packages/__pycache__"
    assert {f"{home}/bin/tiny-parcels", cached, "uv"} == set(others), others
    assert (0, "parcels") == (called.code, json.loads(called.out)[2].rpartition("/")[2])
    assert ["parcels/weigh_parcel"] == [tool["id"] for tool in result.json["tools"]]
    assert "idle" == result.json["servers"][0]["state"]
    assert "weigh_parcel" in everything.out


@pytest.mark.parametrize("stdin", ["n\n", ""])
def test_provision_takes_missing_input_as_a_refusal(
    place: Place, registry: FakeRegistry, index: FakeIndex, stdin: str
) -> None:
    ran = provision(place, registry.url, "--apply", stdin=stdin, index=index.pip_url)

    assert (1, []) == (ran.code, index.fetched)
    assert "declined: nobody agreed to install 'parcels'" in ran.out
    assert not (place.folder / "mcp.json").exists()


def test_provision_with_yes_accepts_only_trusted_servers(
    place: Place, registry: FakeRegistry, index: FakeIndex
) -> None:
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


def test_provision_undoes_and_reports_a_failed_installation(
    place: Place, registry: FakeRegistry, index: FakeIndex
) -> None:
    registry.items = [
        item("org.example/parcels", "Weighs a parcel.", packages=[package("no-such-package")])
    ]
    ran = provision(place, registry.url, "--apply", stdin="y\ny\n", index=index.pip_url)

    assert (3, True) == (ran.code, "everything was undone" in ran.out)


def test_provision_reports_tools_that_are_already_configured_first(
    place: Place, registry: FakeRegistry
) -> None:
    config = place.config({"srv": place.hostile()})
    ran = place.run("provision", "good works", "-c", config, "--strategy", "graph")

    assert 0 == ran.code
    assert "local: the catalog has it already" in ran.out
    assert "srv/good" in ran.out
    assert [] == registry.requests


def test_provision_names_required_inputs_and_passes_given_values(
    place: Place, registry: FakeRegistry
) -> None:
    """The plan shows the reference to a secret, not its value."""
    variable = {"name": "TINY_KEY", "isRequired": True, "isSecret": True}
    expected = package("tiny-parcels", environmentVariables=[variable])
    registry.items = [item("org.example/parcels", "Weighs a parcel.", packages=[expected])]
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
    assert "address https://example.org/mcp" in " ".join(far.out.split())
