"""What comes of an intent before anything is done: outcomes, choice, dry run, audit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.errors import InvalidRequestError, StoreError
from gateway.plugins.provision import (
    Audit,
    Package,
    Plan,
    PolicyCheck,
    Question,
    RegistryEntry,
    by_policy,
    refuse_all,
)
from tests.fakes import ListSource, tool
from tests.plugins.provision.conftest import MakeSite
from tests.plugins.provision.registries import FakeRegistry, Json, item, package

PARCELS = item("org.example/parcels", "Weighs a parcel.", packages=[package("tiny-parcels")])
REMOTE = {"type": "streamable-http", "url": "http://127.0.0.1:9/mcp"}
NO_ROUTE = item("a/parcels", "Weighs a parcel.")
MUSIC = item("org.example/music", "Plays a song.", packages=[package("tiny-music")])


async def test_a_dry_run_changes_nothing(site: MakeSite, registry: FakeRegistry) -> None:
    """The default: a plan, its gates, and not one file."""
    registry.items = [PARCELS, MUSIC]
    here = site(registry.url)

    result = await here.provisioner.provision("weigh a parcel")

    assert ("planned", "nothing was done yet") == (result.outcome, result.reason)
    assert result.plan is not None
    assert "org.example/parcels" == result.plan.entry.name
    assert {"source": "ask"} == {
        gate.name: gate.verdict for gate in result.gates if gate.verdict != "pass"
    }
    assert [] == here.person.questions
    assert not here.folder.exists()
    assert not here.config.exists()


async def test_what_the_catalog_has_is_not_looked_for(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """The registry is not even asked."""
    here = site(registry.url)
    here.gateway.add_source(
        ListSource("shelf", [tool("weigh_parcel", "Weighs a parcel."), tool("play", "Plays.")])
    )

    result = await here.provisioner.provision("weigh a parcel")

    assert ("local", ["shelf/weigh_parcel"]) == (
        result.outcome,
        [match.id for match in result.local],
    )
    assert [] == registry.requests


async def test_a_pick_looks_past_the_catalog(site: MakeSite, registry: FakeRegistry) -> None:
    """A named server is taken, ranked or not."""
    registry.items = [PARCELS, MUSIC]
    here = site(registry.url)
    here.gateway.add_source(ListSource("shelf", [tool("weigh_parcel", "Weighs a parcel.")]))

    result = await here.provisioner.provision("weigh a parcel", pick="org.example/music")

    assert result.plan is not None
    assert ("planned", "org.example/music") == (result.outcome, result.plan.entry.name)
    assert "ask" == next(row.verdict for row in result.gates if row.name == "confidence")


async def test_a_pick_that_no_one_offers_is_reported_with_near_names(
    site: MakeSite, registry: FakeRegistry
) -> None:
    registry.items = [PARCELS]

    with pytest.raises(InvalidRequestError, match=r"similar names: org\.example/parcels"):
        await site(registry.url).provisioner.provision("x", pick="org.example/parcel")
    registry.items = []
    with pytest.raises(InvalidRequestError, match=r"unknown server 'zzz'$"):
        await site(known=False).provisioner.provision("x", pick="zzz")


@pytest.mark.parametrize(
    ("entry", "intent"), [(PARCELS, "translate Finnish"), (NO_ROUTE, "weigh a parcel")]
)
async def test_nothing_that_serves_is_none(
    site: MakeSite, registry: FakeRegistry, entry: Json, intent: str
) -> None:
    """Nor is a server without a package or an address."""
    registry.items = [entry]

    result = await site(registry.url).provisioner.provision(intent)

    assert ("none", "none of 1 servers is likely to serve") == (result.outcome, result.reason)
    assert (entry is NO_ROUTE) == bool(result.candidates)


async def test_what_is_missing_is_that_of_a_candidate_that_may_serve(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """Of one that only shares a word nothing is planned, and nobody is asked for its key."""
    needy = package("x", environmentVariables=[{"name": "NO_SUCH_KEY", "isRequired": True}])
    registry.items = [
        item("a/parcels", "Weighs a parcel.", packages=[package("x", kind="oci")]),
        item("b/post", "Sends a parcel.", packages=[needy]),
    ]
    provisioner = site(registry.url, relevant=0.95).provisioner

    served = await provisioner.provision("weigh a parcel")
    other = await provisioner.provision("send money to a friend abroad")
    picked = await provisioner.provision("send money to a friend abroad", pick="b/post")

    assert ("refused", "a/parcels") == (served.outcome, served.plan and served.plan.entry.name)
    assert "NO_SUCH_KEY" not in served.reason
    assert ("none", None) == (other.outcome, other.plan)
    assert ["b/post"] == [row.entry.name for row in other.candidates]
    assert "NO_SUCH_KEY" in picked.reason


async def test_the_first_candidate_that_nothing_forbids_is_planned(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """The best one may be a container: then the next one is taken."""
    container = item("a/parcels", "Weighs a parcel.", packages=[package("x", kind="oci")])
    two = [package("x", kind="oci"), package("tiny-parcels")]
    registry.items = [container, item("b/parcels", "Weighs a parcel.", packages=two)]

    result = await site(registry.url).provisioner.provision("weigh a parcel")

    assert result.plan is not None
    assert ("b/parcels", "pypi") == (result.plan.entry.name, result.plan.kind)
    assert ["a/parcels", "b/parcels"] == sorted(row.entry.name for row in result.candidates)


async def test_a_candidate_that_lacks_an_input_is_not_passed_over(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """A worse server that needs nothing is not what was asked for."""
    needy = package("x", environmentVariables=[{"name": "NO_SUCH_KEY", "isRequired": True}])
    container = package("x", kind="oci")
    registry.items = [
        item("a/parcels", "Weighs a parcel.", packages=[container, needy]),
        item("b/post", "Sends a parcel.", packages=[package("y")]),
    ]

    result = await site(registry.url).provisioner.provision("weigh a parcel")

    assert "refused" == result.outcome
    assert "inputs: needs NO_SUCH_KEY, but no value is given" == result.reason


async def test_what_every_gate_forbids_is_refused_with_the_reason(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """Also with `apply`: no question is asked that no answer could settle."""
    registry.items = [
        item("a/parcels", "Weighs a parcel.", packages=[package("x", "latest")], status="deleted")
    ]
    here = site(registry.url)

    result = await here.provisioner.provision("weigh a parcel", apply=True)

    assert "refused" == result.outcome
    assert "status: 'deleted'" in result.reason
    assert "version: 'latest'" in result.reason
    assert [] == here.person.questions
    assert "refused" == here.audit[-1]["outcome"]


async def test_a_remote_server_comes_in_after_one_question(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """Nothing listens there: it is undone, and there was nothing to install."""
    registry.items = [item("a/parcels", "Weighs a parcel.", remotes=[REMOTE])]
    here = site(registry.url)

    result = await here.provisioner.provision("weigh a parcel", apply=True)

    assert "failed" == result.outcome, result.reason
    (question,) = here.person.questions
    assert ("run", (), ()) == (question.stage, question.commands, question.launch)
    assert "http://127.0.0.1:9/mcp" == question.plan.url
    assert {} == here.gateway.server_states()


async def test_a_variable_that_vanished_is_a_failure(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """A reference to nothing makes a server that cannot be used: it does not come in."""
    remote = {**REMOTE, "headers": [{"name": "X-Key", "isSecret": True}]}
    registry.items = [item("a/parcels", "Weighs a parcel.", remotes=[remote])]

    result = await site(registry.url).provisioner.provision(
        "weigh a parcel", apply=True, inputs={"X-Key": "env:NO_SUCH_VARIABLE"}
    )

    assert "failed" == result.outcome
    assert "NO_SUCH_VARIABLE" in result.reason


async def test_names_that_are_taken_are_not_given_again(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """Not those of the catalog, of the configuration, or of a folder that is left."""
    registry.items = [PARCELS]
    here = site(registry.url)
    here.gateway.add_server("parcels", command="true")
    here.config.write_text('{"servers": {"parcels-2": {"disabled": true}}}')
    (here.folder / "parcels-3").mkdir(parents=True)

    result = await here.provisioner.provision("weigh", pick="org.example/parcels")

    assert result.plan is not None
    assert "parcels-4" == result.plan.server


async def test_an_audit_that_cannot_be_written_stops_everything(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """What cannot be audited is not done."""
    registry.items = [PARCELS]
    here = site(registry.url)
    here.folder.write_text("a file")

    with pytest.raises(StoreError, match="audit"):
        await here.provisioner.provision("weigh a parcel", apply=True)
    assert [] == here.person.questions


def test_an_audit_strikes_what_was_given(tmp_path: Path) -> None:
    audit = Audit(path=tmp_path / "a" / "audit.jsonl", run="r", secrets=("", "pw", "pw1"))
    audit.record("consent", commands=["x pw1 y", ["pw"]], count=3)

    line = json.loads((tmp_path / "a" / "audit.jsonl").read_text())
    assert {
        "at": line["at"],
        "run": "r",
        "step": "consent",
        "outcome": "ok",
        "commands": ["x *** y", ["***"]],
        "count": 3,
    } == line


async def test_policy_agrees_only_where_nothing_speaks_against_it() -> None:
    """What ``--yes`` means."""
    plan = Plan(
        entry=RegistryEntry(name="a/b"),
        route=Package(kind="pypi", identifier="x", transport="stdio"),
        server="b",
    )

    def question(verdict: str, *warnings: str) -> Question:
        gate = PolicyCheck(name="g", verdict=verdict, reason="")  # type: ignore[arg-type]  # (a Verdict)
        return Question(stage="run", plan=plan, gates=(gate,), warnings=warnings)

    assert [True, False, False, False] == [
        await by_policy(question("pass")),
        await by_policy(question("ask")),
        await by_policy(question("refuse")),
        await by_policy(question("pass", "tool x: reads like an order to a model")),
    ]
    assert not await refuse_all(question("pass"))


def test_a_relative_folder_is_where_the_program_runs(site: MakeSite) -> None:
    """pip runs in the folder of a package: a relative path would mean another place there."""
    here = site("http://127.0.0.1:9", folder=Path("servers"))

    assert Path.cwd() / "servers" == here.provisioner.folder
