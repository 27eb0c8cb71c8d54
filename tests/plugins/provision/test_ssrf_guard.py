"""Registries are fetched behind the guard."""

from __future__ import annotations

import pytest

from gateway.errors import ConfigError, UpstreamError
from gateway.options import UpstreamOptions
from gateway.options.provision import ProvisionOptions
from gateway.plugins.provision import fetch
from tests.core.mcp.test_ssrf_guard import LEADING, proxied


@pytest.mark.parametrize("location", LEADING)
async def test_a_redirect_of_a_registry_behind_a_proxy_leads_nowhere_private(
    monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    """Neither as it is, nor as a program may read it: the proxy is not even asked."""
    options = UpstreamOptions(private_hosts=("registry.test",), connect_attempts=1)
    async with proxied(monkeypatch, location) as asked:
        with pytest.raises((ConfigError, UpstreamError)):
            await fetch("http://registry.test", ProvisionOptions(), options)

    assert [("GET", "http://registry.test/v0.1/servers?limit=100&version=latest")] == asked
