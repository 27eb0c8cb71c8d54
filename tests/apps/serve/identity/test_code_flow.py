"""Sign-in with the authorization code flow: requests, and valid and forged responses."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gateway.serve.api.problems import RefusedError
from gateway.serve.authenticator import Authenticator
from gateway.serve.http_options import HttpOptions
from gateway.serve.identity import RETRY_S, Issuer, ProviderSignIn
from tests.apps.serve.conftest import RESOURCE
from tests.apps.serve.identity.conftest import Provider
from tests.apps.serve.identity.test_provider_keys import Time

CODE = "c0de-of-the-provider"
Settings = Mapping[str, object]


def sign_in_at(provider: Provider, /, **settings: Any) -> ProviderSignIn:
    """Return a browser sign-in at *provider*.

    *settings* are those of the issuer and, under ``own``, those of the sign-in.
    """
    sign_in_settings = {"client_id": "browser", **settings.pop("own", {})}
    issuer = provider.issuer(
        sign_in=sign_in_settings, groups={"platform": ["catalog:write"]}, **settings
    )
    options = HttpOptions(issuers=(issuer,), resource=RESOURCE)
    return Authenticator(options).sign_ins[provider.url]


async def complete_sign_in(
    provider: Provider, sign_in: ProviderSignIn, changes: Mapping[str, Any], **access: Any
) -> Any:
    """Complete a sign-in, and return the caller's token.

    The provider's ID token has the claims *changes*, its access token the claims *access*.
    """
    _, pending = await sign_in.begin()
    provider.answer = {
        "access_token": provider.token(**access),
        "id_token": provider.id_token(**{"nonce": pending.nonce, **changes}),
        "token_type": "Bearer",
    }
    return await sign_in.complete(pending, CODE, provider.url)


async def test_sign_in_returns_the_caller_of_the_access_token(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller also has the access token itself, for upstream servers that exchange it."""
    caplog.set_level(logging.DEBUG)
    until = int(time.time()) + 60
    bearer = await complete_sign_in(
        provider, sign_in_at(provider), {"sub": "pairwise"}, exp=until, groups=["platform"]
    )

    assert f"{provider.url}#ada" == bearer.caller.user
    assert frozenset({"catalog:write"}) == bearer.caller.scopes
    assert until <= bearer.expires_at <= until + 60
    assert provider.answer["access_token"] == bearer.caller.token.reveal()
    assert CODE not in caplog.text


async def test_sign_in_can_return_the_caller_of_the_id_token(provider: Provider) -> None:
    """An ID token is not an access token, so it is not exchanged, and the API refuses it."""
    sign_in_settings = {"caller_from": "id_token"}
    sign_in = sign_in_at(provider, own=sign_in_settings)
    bearer = await complete_sign_in(provider, sign_in, {"groups": ["platform"]}, aud="another API")
    authenticator = Authenticator(
        provider.options(sign_in={"client_id": "browser", **sign_in_settings})
    )
    with pytest.raises(RefusedError) as refused:
        await authenticator.authenticate([f"Bearer {provider.answer['id_token']}"])
    with pytest.raises(RefusedError) as lacking:
        await complete_sign_in(
            provider, sign_in_at(provider, own=sign_in_settings, required_scopes=["use"]), {}
        )

    assert f"{provider.url}#ada" == bearer.caller.user
    assert (frozenset({"catalog:write"}), None) == (bearer.caller.scopes, bearer.caller.token)
    assert (401, "the token is for another audience") == (refused.value.status, str(refused.value))
    assert (403, "scope_missing") == (lacking.value.status, lacking.value.details.code)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"nonce": "of another sign-in"}, "the nonce of the token belongs to another"),
        ({"nonce": None}, "the nonce of the token belongs to another"),
        ({"iss": "https://evil.example"}, "the issuer of the token is not accepted"),
        ({"aud": "another client"}, "the token is for another audience"),
        ({"aud": ["browser", "another client"]}, "the token is for another client"),
        ({"azp": "another client"}, "the token is for another client"),
        ({"exp": 1}, "the token has expired"),
        ({"sub": None}, "a claim of the token is missing"),
    ],
)
async def test_id_token_of_another_sign_in_is_refused(
    provider: Provider, changes: Settings, reason: str
) -> None:
    with pytest.raises(RefusedError, match=reason) as refused:
        await complete_sign_in(provider, sign_in_at(provider), changes)

    assert 401 == refused.value.status


async def test_access_token_for_another_audience_is_refused(provider: Provider) -> None:
    with pytest.raises(RefusedError, match="for another audience"):
        await complete_sign_in(provider, sign_in_at(provider), {}, aud="https://other.example")


async def test_access_token_of_another_provider_is_refused(provider: Provider) -> None:
    """A provider must not identify users of another one, even if both have the same keys."""
    sign_in = provider.issuer(sign_in={"client_id": "browser"})
    other = Issuer(issuer="https://other.example", jwks_uri=f"{provider.url}/jwks")
    options = HttpOptions(issuers=(sign_in, other), resource=RESOURCE)
    sign_ins = Authenticator(options).sign_ins
    with pytest.raises(RefusedError, match="from another issuer"):
        await complete_sign_in(provider, sign_ins[provider.url], {}, iss=other.issuer)


@pytest.mark.parametrize(("issuer", "says_issuer"), [("https://evil.example", False), (None, True)])
async def test_response_of_another_provider_does_not_redeem_the_code(
    provider: Provider, issuer: str | None, says_issuer: bool
) -> None:
    """RFC 9207: otherwise the code would be sent to the wrong provider."""
    provider.metadata["authorization_response_iss_parameter_supported"] = says_issuer
    sign_in = sign_in_at(provider)
    _, pending = await sign_in.begin()
    with pytest.raises(RefusedError, match="another identity provider"):
        await sign_in.complete(pending, CODE, issuer)

    assert [] == provider.redeemed


@pytest.mark.parametrize(
    ("own", "methods", "sent"),
    [
        ({}, None, ({"browser"}, set(), 0)),
        ({"client_secret": "s3cret"}, None, (set(), set(), 1)),
        ({"client_secret": "s3cret"}, ["client_secret_post"], ({"browser"}, {"s3cret"}, 0)),
    ],
    ids=["a public client", "basic", "post"],
)
async def test_code_is_redeemed_with_client_credentials_and_verifier(
    provider: Provider, own: Settings, methods: list[str] | None, sent: object
) -> None:
    if methods:
        provider.metadata["token_endpoint_auth_methods_supported"] = methods
    sign_in = sign_in_at(provider, own=own, scopes={"billing.read": ["billing"]})
    url, _ = await sign_in.begin()
    query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    await complete_sign_in(provider, sign_in, {})

    form = provider.redeemed[-1]
    assert ("code", "browser", "S256") == (
        query["response_type"],
        query["client_id"],
        query["code_challenge_method"],
    )
    assert ("openid billing.read", RESOURCE) == (query["scope"], query["resource"])
    assert query["redirect_uri"] == "http://127.0.0.1:8930/account/callback"
    assert ([CODE], [query["redirect_uri"]], [RESOURCE]) == (
        form["code"],
        form["redirect_uri"],
        form["resource"],
    )
    assert 43 <= len(form["code_verifier"][0])
    client = set(form.get("client_id", [])), set(form.get("client_secret", []))
    assert sent == (*client, len(form["authorization"]))


def no_tokens(provider: Provider) -> None:
    provider.answer = {"access_token": provider.token()}


def error(provider: Provider) -> None:
    provider.status = 400
    provider.answer = {"error": "invalid_grant", "error_description": CODE}


@pytest.mark.parametrize("fail", [no_tokens, error])
async def test_failed_code_redemption_names_the_provider_without_secrets(
    provider: Provider, fail: Callable[[Provider], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    sign_in = sign_in_at(provider, own={"client_secret": "s3cret"})
    _, pending = await sign_in.begin()
    fail(provider)
    with pytest.raises(RefusedError) as refused:
        await sign_in.complete(pending, CODE, provider.url)

    told = f"{refused.value} {caplog.text}"
    assert 503 == refused.value.status
    assert provider.url.partition("://")[2] in str(refused.value)
    for secret in (
        CODE,
        "s3cret",
        pending.verifier,
        pending.nonce,
        pending.state,
        provider.token()[:40],
    ):
        assert secret not in told
    assert "s3cret" not in repr(
        provider.issuer(sign_in={"client_id": "x", "client_secret": "s3cret"})
    )


async def test_unavailable_provider_is_retried_after_a_delay(provider: Provider) -> None:
    """A flood of sign-ins must cause only one request to the provider."""
    time = Time()
    options = provider.options(sign_in={"client_id": "browser"})
    sign_in = Authenticator(options, clock=time).sign_ins[provider.url]
    provider.metadata = {"token_endpoint": "http://elsewhere.example/token"}
    with pytest.raises(RefusedError, match="cannot be reached") as refused:
        await sign_in.begin()
    provider.metadata = {}
    with pytest.raises(RefusedError, match="cannot be reached"):
        await sign_in.begin()
    time.now += RETRY_S
    url, _ = await sign_in.begin()

    assert (503, "10") == (refused.value.status, (refused.value.headers or {})["Retry-After"])
    assert url.startswith(f"{provider.url}/authorize?")
