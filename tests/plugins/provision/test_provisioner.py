"""Provisioning up to the plan: outcomes, choice of a candidate, dry run and audit."""

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


async def test_dry_run_writes_no_file(site: MakeSite, registry: FakeRegistry) -> None:
    registry.items = [PARCELS, MUSIC]
    new_site = site(registry.url)

    result = await new_site.provisioner.provision("weigh a parcel")

    assert ("planned", "nothing was done yet") == (result.outcome, result.reason)
    assert result.plan is not None
    assert "org.example/parcels" == result.plan.entry.name
    assert {"source": "ask"} == {
        gate.name: gate.verdict for gate in result.gates if gate.verdict != "pass"
    }
    assert [] == new_site.person.questions
    assert not new_site.folder.exists()
    assert not new_site.config.exists()


async def test_provision_stops_if_the_catalog_already_has_a_tool(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """The registry is not fetched."""
    new_site = site(registry.url)
    new_site.gateway.add_source(
        ListSource("shelf", [tool("weigh_parcel", "Weighs a parcel."), tool("play", "Plays.")])
    )

    result = await new_site.provisioner.provision("weigh a parcel")

    assert ("local", ["shelf/weigh_parcel"]) == (
        result.outcome,
        [match.id for match in result.local],
    )
    assert [] == registry.requests


async def test_picked_server_is_planned_even_if_the_catalog_has_a_tool(
    site: MakeSite, registry: FakeRegistry
) -> None:
    registry.items = [PARCELS, MUSIC]
    new_site = site(registry.url)
    new_site.gateway.add_source(ListSource("shelf", [tool("weigh_parcel", "Weighs a parcel.")]))

    result = await new_site.provisioner.provision("weigh a parcel", pick="org.example/music")

    assert result.plan is not None
    assert ("planned", "org.example/music") == (result.outcome, result.plan.entry.name)
    assert "ask" == next(row.verdict for row in result.gates if row.name == "confidence")


async def test_pick_of_an_unknown_server_is_refused_with_similar_names(
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
async def test_outcome_is_none_without_a_likely_server(
    site: MakeSite, registry: FakeRegistry, entry: Json, intent: str
) -> None:
    registry.items = [entry]

    result = await site(registry.url).provisioner.provision(intent)

    assert ("none", "no server is likely to serve (servers checked: 1)") == (
        result.outcome,
        result.reason,
    )
    assert (entry is NO_ROUTE) == bool(result.candidates)


async def test_unlikely_candidates_are_not_planned(site: MakeSite, registry: FakeRegistry) -> None:
    """The host must not be asked for the key of a server that only shares a word."""
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


async def test_first_candidate_that_no_check_refuses_is_planned(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """The best candidate may be an unsupported container."""
    container = item("a/parcels", "Weighs a parcel.", packages=[package("x", kind="oci")])
    two = [package("x", kind="oci"), package("tiny-parcels")]
    registry.items = [container, item("b/parcels", "Weighs a parcel.", packages=two)]

    result = await site(registry.url).provisioner.provision("weigh a parcel")

    assert result.plan is not None
    assert ("b/parcels", "pypi") == (result.plan.entry.name, result.plan.kind)
    assert ["a/parcels", "b/parcels"] == sorted(row.entry.name for row in result.candidates)


async def test_candidate_with_a_missing_input_is_not_skipped(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """A worse server without inputs is not what the host wants."""
    needy = package("x", environmentVariables=[{"name": "NO_SUCH_KEY", "isRequired": True}])
    container = package("x", kind="oci")
    registry.items = [
        item("a/parcels", "Weighs a parcel.", packages=[container, needy]),
        item("b/post", "Sends a parcel.", packages=[package("y")]),
    ]

    result = await site(registry.url).provisioner.provision("weigh a parcel")

    assert "refused" == result.outcome
    assert "inputs: needs NO_SUCH_KEY, but no value is given" == result.reason


async def test_plan_that_a_check_refuses_is_refused_with_the_reason(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """Consent cannot override a refusal, so nobody is asked."""
    registry.items = [
        item("a/parcels", "Weighs a parcel.", packages=[package("x", "latest")], status="deleted")
    ]
    new_site = site(registry.url)

    result = await new_site.provisioner.provision("weigh a parcel", apply=True)

    assert "refused" == result.outcome
    assert "status: 'deleted'" in result.reason
    assert "version: 'latest'" in result.reason
    assert [] == new_site.person.questions
    assert "refused" == new_site.audit[-1]["outcome"]


async def test_remote_server_is_probed_after_one_question(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """A remote server has no installation to ask about. The probe fails here, so the run is
    undone.
    """
    registry.items = [item("a/parcels", "Weighs a parcel.", remotes=[REMOTE])]
    new_site = site(registry.url)

    result = await new_site.provisioner.provision("weigh a parcel", apply=True)

    assert "failed" == result.outcome, result.reason
    (question,) = new_site.person.questions
    assert ("run", (), ()) == (question.stage, question.commands, question.launch)
    assert "http://127.0.0.1:9/mcp" == question.plan.url
    assert {} == new_site.gateway.server_states()


async def test_missing_variable_fails_the_run(site: MakeSite, registry: FakeRegistry) -> None:
    """The input of the server refers to an environment variable that is not set."""
    remote = {**REMOTE, "headers": [{"name": "X-Key", "isSecret": True}]}
    registry.items = [item("a/parcels", "Weighs a parcel.", remotes=[remote])]

    result = await site(registry.url).provisioner.provision(
        "weigh a parcel", apply=True, inputs={"X-Key": "env:NO_SUCH_VARIABLE"}
    )

    assert "failed" == result.outcome
    assert "NO_SUCH_VARIABLE" in result.reason


async def test_new_server_does_not_get_a_name_that_is_in_use(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """Names of the catalog, the configuration and leftover folders count as used."""
    registry.items = [PARCELS]
    new_site = site(registry.url)
    new_site.gateway.add_server("parcels", command="true")
    new_site.config.write_text('{"servers": {"parcels-2": {"disabled": true}}}')
    (new_site.folder / "parcels-3").mkdir(parents=True)

    result = await new_site.provisioner.provision("weigh", pick="org.example/parcels")

    assert result.plan is not None
    assert "parcels-4" == result.plan.server


async def test_provision_stops_if_the_audit_cannot_be_written(
    site: MakeSite, registry: FakeRegistry
) -> None:
    """Steps without an audit line are not allowed."""
    registry.items = [PARCELS]
    new_site = site(registry.url)
    new_site.folder.write_text("a file")

    with pytest.raises(StoreError, match="audit"):
        await new_site.provisioner.provision("weigh a parcel", apply=True)
    assert [] == new_site.person.questions


def test_audit_redacts_values_given_by_the_host(tmp_path: Path) -> None:
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


async def test_by_policy_agrees_only_without_doubts_and_warnings() -> None:
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


def test_relative_folder_is_resolved_against_the_working_folder(site: MakeSite) -> None:
    """pip runs in the package's folder, where a relative path would mean another place."""
    new_site = site("http://127.0.0.1:9", folder=Path("servers"))

    assert Path.cwd() / "servers" == new_site.provisioner.folder
