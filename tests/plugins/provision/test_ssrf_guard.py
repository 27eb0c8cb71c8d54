from __future__ import annotations

import pytest

from gateway.errors import ConfigError, UpstreamError
from gateway.options import UpstreamOptions
from gateway.options.provision import ProvisionOptions
from gateway.plugins.provision import fetch
from tests.core.mcp.test_ssrf_guard import LEADING, proxied


@pytest.mark.parametrize("location", LEADING)
async def test_redirect_to_a_private_address_is_refused_behind_a_proxy(
    monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    """The proxy itself must not receive the request."""
    options = UpstreamOptions(private_hosts=("registry.test",), connect_attempts=1)
    async with proxied(monkeypatch, location) as requests:
        with pytest.raises((ConfigError, UpstreamError)):
            await fetch("http://registry.test", ProvisionOptions(), options)

    assert [("GET", "http://registry.test/v0.1/servers?limit=100&version=latest")] == requests
