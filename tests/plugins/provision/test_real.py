"""Provisioning of real packages from PyPI and npm."""

from __future__ import annotations

from tests.plugins.provision.conftest import MakeSite


async def test_servers_from_pypi_and_npm_are_installed_by_policy(site: MakeSite) -> None:
    """Both packages share one gateway, which is slow to start."""
    new_site = site(known=True, quick=False)
    new_site.person.stages = frozenset({"install", "run"})

    clock = await new_site.provisioner.provision("what is the current time in Kyiv", apply=True)
    thinking = await new_site.provisioner.provision(
        "think through a problem step by step", apply=True
    )
    data = await new_site.gateway.invoke("time/get_current_time", {"timezone": "Europe/Kyiv"})
    thought = {"thought": "Go.", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": False}
    answer = await new_site.gateway.invoke("sequential-thinking/sequentialthinking", thought)

    assert "installed" == clock.outcome, clock.reason
    assert "installed" == thinking.outcome, thinking.reason
    assert "Europe/Kyiv" in data.text
    assert not answer.is_error
    assert "mcp-server-time==2026.10.19" in clock.packages
    assert {"pass"} == {gate.verdict for gate in (*clock.gates, *thinking.gates)}
    assert ["sequential-thinking", "time"] == new_site.left
