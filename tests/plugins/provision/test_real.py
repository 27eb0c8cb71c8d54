"""Packages that really exist: one of PyPI and one of npm, from an intent to a call."""

from __future__ import annotations

from tests.plugins.provision.conftest import MakeSite


async def test_servers_of_pypi_and_npm_come_in_by_policy(site: MakeSite) -> None:
    """The bundled list, no person asked, one catalog at the end. Both share one gateway."""
    here = site(known=True, quick=False)
    here.person.stages = frozenset({"install", "run"})

    clock = await here.provisioner.provision("what is the current time in Kyiv", apply=True)
    thinking = await here.provisioner.provision("think through a problem step by step", apply=True)
    data = await here.gateway.invoke("time/get_current_time", {"timezone": "Europe/Kyiv"})
    thought = {"thought": "Go.", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": False}
    answer = await here.gateway.invoke("sequential-thinking/sequentialthinking", thought)

    assert "installed" == clock.outcome, clock.reason
    assert "installed" == thinking.outcome, thinking.reason
    assert "Europe/Kyiv" in data.text
    assert not answer.is_error
    assert "mcp-server-time==2026.10.19" in clock.packages
    assert {"pass"} == {gate.verdict for gate in (*clock.gates, *thinking.gates)}
    assert ["sequential-thinking", "time"] == here.left
