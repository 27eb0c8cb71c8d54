"""Mapping of claims to callers, and validation of issuer settings."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import ConfigError
from gateway.runtime.json_models import read_value
from gateway.serve.auth import OPERATOR
from gateway.serve.http_options import HttpOptions
from gateway.serve.identity import BrowserSignIn, Issuer

URL = "https://idp.example/team"


def issuer(**settings: object) -> Issuer:
    parsed: Issuer = read_value(Issuer, {"issuer": URL, **settings}, where="issuer")
    return parsed


def scopes(claims: dict[str, Any], **settings: object) -> set[str]:
    bearer = issuer(**settings).bearer({"sub": "ada", **claims}, expires_at=0)
    return {*bearer.caller.scopes}


def test_unmapped_provider_scopes_are_ignored() -> None:
    """The provider's scope ``email`` must not grant the catalog's scope of that name."""
    assert set() == scopes({"scope": "openid email catalog:admin *", "groups": ["billing"]})


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"scope": "bills.read other"}, {"billing"}),
        ({"scp": ["bills.read"]}, {"billing"}),
        ({"scp": "bills.read bills.admin"}, {"billing", "catalog:admin"}),
        ({"groups": ["Platform Team"]}, {"catalog:admin", "catalog:write"}),
        ({"groups": "Platform Team"}, {"catalog:admin", "catalog:write"}),
        ({"scope": "Platform Team"}, set()),
        ({"groups": ["bills.read"]}, set()),
        ({"scope": 7, "scp": {"bills.read": 1}, "groups": [7, None]}, set()),
        ({"scope": "tool:mail tool: tools"}, {"tool:mail", "tool:"}),
    ],
)
def test_provider_scopes_and_groups_have_separate_mappings(
    claims: dict[str, Any], expected: set[str]
) -> None:
    """A group with the name of a scope must not grant that scope."""
    table = {"bills.read": ["billing"], "bills.admin": ["catalog:admin"]}
    groups = {"Platform Team": ["catalog:admin", "catalog:write"]}
    assert expected == scopes(claims, scopes=table, groups=groups, scope_prefix="tool:")


@pytest.mark.parametrize("prefix", ["catalog:", "*", "c", "metrics"])
def test_scope_prefix_never_grants_rights_of_the_gateway(prefix: str) -> None:
    assert not scopes({"scope": " ".join(["*", *OPERATOR])}, scope_prefix=prefix)


def test_scope_claims_may_be_nested() -> None:
    """Keycloak's roles are nested in other claims.

    A claim name with dots is still a single name.
    """
    dotted = "https://x.example/roles"
    claims: dict[str, Any] = {"realm_access": {"roles": ["dev"]}, dotted: ["ops"]}
    groups = {"dev": ["a"], "ops": ["b"]}
    names = [["realm_access", "roles"], dotted]
    assert {"a", "b"} == scopes(claims, group_claims=names, groups=groups)


def test_users_of_two_issuers_are_always_distinct() -> None:
    result = {
        (bearer.caller.user, bearer.caller.tenant, bearer.name)
        for url, subject in (
            ("https://a.example", "ada"),
            ("https://b.example", "ada"),
            ("https://a.example/x", "ada"),
            ("https://a.example", "/x#ada"),
            ("https://a.example", "x#ada"),
        )
        for bearer in [
            Issuer(issuer=url, tenant_claim="t").bearer(
                {"sub": subject, "t": subject}, expires_at=0
            )
        ]
    }
    assert (
        5 == len(result) == len({user for user, _, _ in result}) == len({t for _, t, _ in result})
    )


def test_token_must_contain_the_user_claim() -> None:
    """Otherwise the subject of one token could equal the user name in another."""
    with pytest.raises(ValueError, match="the claim 'email' is missing"):
        issuer(user_claim="email").bearer({"sub": "ada"}, expires_at=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"issuer": "http://idp.example"}, "must be an https address"),
        ({"issuer": "https://idp.example#x"}, "without '\\?' and '#'"),
        ({"issuer": "https://idp.example?x=1"}, "without '\\?' and '#'"),
        ({"issuer": "https://me:it@idp.example"}, "a user or password"),
        ({"issuer": "idp"}, "must be an address"),
        ({"issuer": "https://["}, "is not an address"),
        ({"jwks_uri": "http://10.0.0.1/jwks"}, "jwks_uri must be an https address"),
        ({"algorithms": ["HS256"]}, "algorithms"),
        ({"algorithms": ["none"]}, "algorithms"),
        ({"algorithms": []}, "algorithms"),
        ({"scopes": {"a": ["two words"]}}, "should match pattern"),
        ({"scopes": {"a": "b"}}, "must be a list"),
        ({"audience": "x"}, "unknown key 'audience'"),
        ({"tenant": "a", "tenant_claim": "b"}, "exclude each other"),
        ({"sign_in": {}}, "sign_in: 'client_id' is missing"),
        ({"sign_in": {"client_id": "a", "redirect_uri": "https://a.example"}}, "redirect_uri"),
        (
            {"sign_in": {"client_id": "a", "redirect_uri": "http://a.example/account/callback"}},
            "redirect_uri must be an https",
        ),
    ],
)
def test_invalid_issuer_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        issuer(**settings)


@pytest.mark.parametrize(
    ("issuers", "resource", "message"),
    [
        ((Issuer(issuer=URL),), "", "resource"),
        ((Issuer(issuer=URL),), "http://gateway.example/mcp", "https"),
        ((Issuer(issuer=URL), Issuer(issuer=URL)), "https://gateway.example/mcp", "the same"),
        (
            (Issuer(issuer=URL, audiences=("me",), sign_in=BrowserSignIn(client_id="me")),),
            "https://gateway.example/mcp",
            "client_id is also an audience",
        ),
    ],
)
def test_server_with_issuers_requires_a_resource_and_distinct_issuers(
    issuers: tuple[Issuer, ...], resource: str, message: str
) -> None:
    """A token must be issued for this server, and not for any other server."""
    with pytest.raises(ConfigError, match=message):
        HttpOptions(issuers=issuers, resource=resource)
