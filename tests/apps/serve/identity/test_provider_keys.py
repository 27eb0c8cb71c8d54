"""Caching of provider keys: rotation, refresh, outages and floods."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from gateway.errors import GatewayError, UpstreamError
from gateway.serve.api.problems import RefusedError
from gateway.serve.authenticator import Authenticator
from gateway.serve.identity import (
    MAX_AGE_S,
    MAX_BYTES,
    REFRESH_S,
    RETRY_S,
    UNUSED_S,
    Issuer,
    ProviderKeys,
)
from tests.apps.serve.identity.conftest import Provider, running


class Time:
    """Clock that tests set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_flood_of_unknown_key_ids_causes_one_fetch_of_keys(provider: Provider) -> None:
    time = Time()
    authenticator = Authenticator(provider.options(), clock=time)
    unknown = [provider.token(headers={"kid": f"k{number}"}) for number in range(100)]

    async def refused(token: str) -> int:
        with pytest.raises(RefusedError) as error:
            await authenticator.authenticate([f"Bearer {token}"])
        return error.value.status

    assert {401} == {*await asyncio.gather(*map(refused, unknown))}
    assert 1 == provider.fetches
    time.now += RETRY_S - 1
    await refused(unknown[0])
    assert 1 == provider.fetches
    time.now += 1
    await asyncio.gather(*map(refused, unknown))
    assert 2 == provider.fetches


async def test_rotated_provider_key_is_fetched_and_the_old_one_dropped(provider: Provider) -> None:
    time = Time()
    keys = ProviderKeys(provider.issuer(), clock=time)
    assert await keys.find("rsa")
    provider.keys = [{**provider.keys[0], "kid": "new"}]

    assert await keys.find("new") is None
    time.now += RETRY_S
    assert await keys.find("new")
    assert await keys.find("rsa") is None


async def test_cached_keys_are_refreshed_in_the_background(provider: Provider) -> None:
    """A removed key is refused after an hour, even if no unknown key id causes a fetch."""
    time = Time()
    keys = ProviderKeys(provider.issuer(), clock=time)
    await keys.find("rsa")
    provider.keys = provider.keys[1:]
    time.now += REFRESH_S

    assert await keys.find("rsa")
    assert await keys.find("other") is None
    assert 2 == provider.fetches
    assert await keys.find("rsa") is None


async def test_cached_keys_unused_for_long_are_refreshed_before_use(provider: Provider) -> None:
    """A key that the provider removed must not be accepted even once.

    A failed fetch changes nothing.
    """
    time = Time()
    keys = ProviderKeys(provider.issuer(), clock=time)
    assert await keys.find("ec")
    provider.keys = provider.keys[1:]
    time.now += UNUSED_S

    assert await keys.find("rsa") is None
    provider.status = 500
    time.now += UNUSED_S
    assert await keys.find("ec")


async def test_cached_keys_stay_valid_for_a_day_while_the_provider_is_down() -> None:
    """Unknown and expired keys cause 503 instead of 401, so that the client tries again."""
    time = Time()
    with running() as provider:
        options = provider.options()
        authenticator = Authenticator(options, clock=time)
        known_token, unknown = provider.token(), provider.token(headers={"kid": "new"})
        await authenticator.authenticate([f"Bearer {known_token}"])

    async def status(token: str, asked: Authenticator = authenticator) -> tuple[int, Any]:
        try:
            await asked.authenticate([f"Bearer {token}"])
        except RefusedError as error:
            return error.status, (error.headers or {}).get("Retry-After")
        return 200, None

    time.now += MAX_AGE_S - 1
    assert (200, None) == await status(known_token)
    assert (503, "10") == await status(unknown)
    assert (503, "10") == await status(known_token, Authenticator(options, clock=time))
    time.now += RETRY_S
    assert (503, "10") == await status(known_token)


async def test_cancelled_request_does_not_cancel_the_shared_fetch(provider: Provider) -> None:
    keys = ProviderKeys(provider.issuer())
    first = asyncio.create_task(keys.find("rsa"))
    await asyncio.sleep(0)
    first.cancel()

    assert await keys.find("rsa")
    assert first.cancelled()
    assert 1 == provider.fetches


async def test_jwks_uri_replaces_the_metadata_of_the_provider(provider: Provider) -> None:
    provider.metadata = {"issuer": "https://other.example"}
    keys = ProviderKeys(provider.issuer(jwks_uri=f"{provider.url}/jwks"))

    assert await keys.find("rsa")


METADATA: list[tuple[dict[str, object], str]] = [
    ({"issuer": "https://other.example"}, "is from another issuer"),
    ({"jwks_uri": "http://keys.example/jwks"}, "contains no https address"),
    ({"jwks_uri": 7}, "contains no https address"),
    ({"jwks_uri": "https://10.0.0.1/jwks"}, "private network"),
    ({"jwks_uri": "https://169.254.169.254/keys"}, "private network"),
]
DOCUMENTS: list[tuple[dict[str, object], str]] = [
    ({"status": 302}, "answered 302"),
    ({"status": 500}, "answered 500"),
    ({"document": [1]}, "sent an invalid set of keys"),
    ({"document": {"keys": []}}, "has no key"),
    ({"document": {"keys": ["x" * MAX_BYTES]}}, f"sent more than {MAX_BYTES} bytes"),
    ({"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "rsa"}]}, "has no key"),
    ({"keys": [{"kty": "RSA", "n": "x", "e": "AQAB", "kid": "rsa", "use": "enc"}]}, "has no key"),
    ({"keys": [{"kty": "RSA", "n": "x", "e": "AQAB", "kid": 7}]}, "has no key"),
]


@pytest.mark.parametrize(
    ("changes", "message"), [*(({"metadata": item}, why) for item, why in METADATA), *DOCUMENTS]
)
async def test_invalid_provider_responses_are_reported(
    provider: Provider, changes: dict[str, Any], message: str
) -> None:
    """`gateway doctor` shows these messages."""
    vars(provider).update(changes)

    with pytest.raises(GatewayError, match=message):
        await ProviderKeys(provider.issuer()).fetch()


async def test_request_to_a_slow_provider_times_out() -> None:
    """A provider that never answers must not block requests."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        issuer = Issuer(issuer=url, jwks_uri=f"{url}/jwks")

        with pytest.raises(UpstreamError, match="did not answer within"):
            await ProviderKeys(issuer, timeout_s=0.05).fetch()
