"""Verification of access tokens: valid ones, and ones that attackers forged."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import HMACAlgorithm, RSAAlgorithm

from gateway.errors import Failed, attempt
from gateway.serve.api.problems import RefusedError
from gateway.serve.authenticator import Authenticator
from gateway.serve.identity import LEEWAY_S
from tests.apps.serve.identity.conftest import EC_KEY, RSA_KEY, Provider, public_key

Make = Callable[[Provider], str]
STRANGER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
NOW = int(time.time())
HOUR = 3600


def encode_part(value: object) -> str:
    """Return a JSON value in the encoding of a part of a token."""
    text = value if isinstance(value, str) else json.dumps(value)
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def signed_by_hand(provider: Provider, header: Mapping[str, Any], key: bytes) -> str:
    """Return a token signed with HMAC and *key*, which PyJWT refuses to do with a public key."""
    text = f"{encode_part(header)}.{encode_part(provider.claims())}"
    signature = HMACAlgorithm(HMACAlgorithm.SHA256).sign(text.encode(), key)
    return f"{text}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


@pytest.fixture(scope="module")
def accepting_authenticator(shared_provider: Provider) -> Authenticator:
    """An authenticator for all tests, which has cached the keys of the provider."""
    return Authenticator(shared_provider.options())


def with_header(key: Any = RSA_KEY, algorithm: str = "RS256", /, **header: object) -> Make:
    token_header = {"kid": "rsa", "typ": "at+jwt", **header}
    return lambda provider: jwt.encode(
        provider.claims(),
        key,
        algorithm,
        headers={k: v for k, v in token_header.items() if v is not None},
    )


def with_claims(**claims: Any) -> Make:
    return lambda provider: provider.token(**claims)


ATTACKS: Mapping[str, Mapping[str, Make]] = {
    "the signature algorithm of the token is not accepted": {
        "no algorithm": lambda p: (
            f"{encode_part({'alg': 'none', 'kid': 'rsa'})}.{encode_part(p.claims())}."
        ),
        "no algorithm, other letters": lambda p: (
            f"{encode_part({'alg': 'nOnE', 'kid': 'rsa'})}.{encode_part(p.claims())}."
        ),
        "public key as HMAC secret": lambda p: signed_by_hand(
            p, {"alg": "HS256", "kid": "rsa"}, PEM
        ),
        "public JWK as HMAC secret": lambda p: signed_by_hand(
            p, {"alg": "HS256", "kid": "rsa"}, json.dumps(p.keys[0]).encode()
        ),
        "algorithm that is not listed": with_header(RSA_KEY, "RS512"),
    },
    "the signature of the token is wrong": {
        "no signature": lambda p: p.token().rpartition(".")[0] + ".",
        "changed claims": lambda p: ".".join(
            [(t := p.token().split("."))[0], encode_part(p.claims(sub="root")), t[2]]
        ),
        "another key": with_header(STRANGER),
        "another key, embedded": with_header(STRANGER, jwk=public_key(STRANGER, "rsa")),
        "another key, by jku": with_header(STRANGER, jku="https://evil.example/jwks"),
        "another key, by x5u": with_header(STRANGER, x5u="https://evil.example/cert"),
    },
    "the token names an unknown key of its issuer": {
        "another key id": with_header(kid="none"),
        "key id as a path": with_header(kid="../../dev/null"),
        "no key id": with_header(kid=None),
    },
    "the token cannot be verified": {
        "key of another kind": with_header(kid="ec"),
        "algorithm that the key is not for": with_header(EC_KEY, "ES256", kid="rsa"),
        "expiry that is no number": with_claims(exp="soon"),
        "subject that is no text": with_claims(sub=7),
    },
    "this bearer token is unknown": {
        "critical header": with_header(crit=["exp"], exp=NOW + HOUR),
        "detached payload": with_header(b64=False),
        "deeply nested header": lambda p: f"{encode_part('[' * 9000)}.{encode_part(p.claims())}.x",
        "no base64": lambda p: "a.b!.c",
        "not three parts": lambda p: "aaaa.bbbb",
        "not ASCII": lambda p: "ä.ö.ü",
        "half of a surrogate pair": lambda p: "\ud800.b.c",
        "empty parts": lambda p: "..",
    },
    "the token is for another audience": {
        "another audience": with_claims(aud="https://other.example"),
        "audience that begins like ours": with_claims(aud="http://127.0.0.1:8930/mcp/other"),
    },
    "a claim of the token is missing; iss, aud, sub and exp are required": {
        "no audience": with_claims(aud=None),
        "never expires": with_claims(exp=None),
        "no subject": with_claims(sub=None),
    },
    "the issuer of the token is not accepted": {
        "another issuer": with_claims(iss="https://evil.example"),
        "issuer with a slash more": lambda p: p.token(iss=f"{p.url}/"),
        "issuer as a list": lambda p: jwt.PyJWS().encode(
            json.dumps(p.claims(iss=[p.url])).encode(), RSA_KEY, "RS256", {"kid": "rsa"}
        ),
        "no issuer": with_claims(iss=None),
    },
    "the token has expired": {"expired": with_claims(exp=NOW - HOUR)},
    "the token is not valid yet": {
        "not yet valid": with_claims(nbf=NOW + HOUR),
        "issued in the future": with_claims(iat=NOW + HOUR),
    },
    "the claim 'sub' is missing, or is not a text": {"empty subject": with_claims(sub="")},
    "the claim 'sub' is too long, or contains invisible characters": {
        "subject with a line break": with_claims(sub="ada\nroot")
    },
    "the type of the token is not that of an access token": {
        "ID token by type": with_header(typ="ID+JWT"),
        "logout token": with_header(typ="logout+jwt"),
    },
    "the token is an ID token": {
        "ID token by at_hash": lambda p: p.token(headers={"typ": "JWT"}, at_hash="x"),
        "ID token by nonce": lambda p: p.token(headers={"typ": "JWT"}, nonce="x"),
    },
    "the token is of another kind": {
        "ID token of Keycloak": lambda p: p.token(headers={"typ": "JWT"}, typ="ID"),
        "ID token of Cognito": with_claims(token_use="id"),
    },
    "the token is bound to a key; only plain bearer tokens are accepted": {
        "bound to a key": with_claims(cnf={"jkt": "x"})
    },
    "the token is too long": {"huge": with_claims(padding="x" * 20_000)},
}
"""Forged tokens: functions that create them, keyed by reason of the refusal and by name."""


@pytest.mark.parametrize(
    ("reason", "attack"),
    [(reason, attack) for reason, attacks in ATTACKS.items() for attack in attacks],
)
async def test_forged_tokens_are_refused(
    provider: Provider, accepting_authenticator: Authenticator, reason: str, attack: str
) -> None:
    token = ATTACKS[reason][attack](provider)

    with pytest.raises(RefusedError) as refused:
        await accepting_authenticator.authenticate([f"Bearer {token}"])

    assert (401, reason) == (refused.value.status, str(refused.value))
    assert 'error="invalid_token"' in (refused.value.headers or {})["WWW-Authenticate"]


GOOD: Mapping[str, Make] = {
    "access token": lambda p: p.token(),
    "audience among others": lambda p: p.token(aud=["https://other.example", *[p.claims()["aud"]]]),
    "type with its prefix": with_header(typ="application/at+jwt"),
    "plain type": with_header(typ="JWT"),
    "another algorithm of the key": with_header(RSA_KEY, "PS256"),
    "another key": with_header(EC_KEY, "ES256", kid="ec"),
    "clock that is behind": with_claims(nbf=NOW + LEEWAY_S / 2, iat=NOW + LEEWAY_S / 2),
    "nonce in an access token": with_claims(nonce="x"),
    "nonce in an access token of Keycloak": lambda p: p.token(
        headers={"typ": "JWT"}, typ="Bearer", nonce="x"
    ),
    "headers that lead elsewhere": with_header(
        jku="http://127.0.0.1:9/jwks", x5u="http://127.0.0.1:9/cert"
    ),
}


@pytest.mark.parametrize("kind", GOOD)
async def test_valid_tokens_are_accepted(
    provider: Provider, accepting_authenticator: Authenticator, kind: str
) -> None:
    bearer = await accepting_authenticator.authenticate([f"Bearer {GOOD[kind](provider)}"])

    assert f"{provider.url}#ada" == bearer.caller.user == bearer.name


async def test_issuer_can_require_the_access_token_type(provider: Provider) -> None:
    """With the type `at+jwt` of RFC 9068 required, ID tokens are refused whatever their claims."""
    authenticator = Authenticator(provider.options(only_access_tokens=True))
    await authenticator.authenticate([f"Bearer {provider.token()}"])

    with pytest.raises(RefusedError, match="type of the token is not that"):
        await authenticator.authenticate([f"Bearer {provider.token(headers={'typ': 'JWT'})}"])


async def test_token_signed_with_a_short_key_is_refused(provider: Provider) -> None:
    """RSA keys under 2048 bits can be factored."""
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505  (the point)
    provider.keys = [public_key(short, "rsa")]
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        token = with_header(short)(provider)

    with pytest.raises(RefusedError, match="cannot be verified"):
        await Authenticator(provider.options()).authenticate([f"Bearer {token}"])


async def test_refusal_of_a_token_names_the_required_scope(provider: Provider) -> None:
    """The client then knows which scope to request (RFC 6750, section 3.1)."""
    authenticator = Authenticator(provider.options(required_scopes=["tools.use"]))
    await authenticator.authenticate([f"Bearer {provider.token(scope='other tools.use')}"])

    with pytest.raises(RefusedError) as refused:
        await authenticator.authenticate([f"Bearer {provider.token(scope='other')}"])

    header = (refused.value.headers or {})["WWW-Authenticate"]
    assert 403 == refused.value.status
    assert 'error="insufficient_scope", scope="tools.use", resource_metadata="http' in header


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)
CLAIMS = st.sampled_from(
    ["iss", "sub", "aud", "exp", "nbf", "iat", "scope", "scp", "groups", "typ", "token_use", "cnf"]
)
HEADERS = st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jku", "jwk", "zip", "cty"])


@given(
    header=st.dictionaries(HEADERS, JSON, max_size=4),
    claims=st.dictionaries(CLAIMS, JSON, max_size=4),
    signature=st.none() | st.binary(max_size=30),
)
def test_any_token_is_accepted_or_refused(
    shared_provider: Provider,
    accepting_authenticator: Authenticator,
    header: dict[str, Any],
    claims: dict[str, Any],
    signature: bytes | None,
) -> None:
    """Claims of unexpected types must not raise other errors, even if the provider signed them."""
    good = {"alg": "RS256", "kid": "rsa", "typ": "at+jwt"}
    text = f"{encode_part(good | header)}.{encode_part(shared_provider.claims() | claims)}"
    if signature is None:
        signature = RSAAlgorithm(RSAAlgorithm.SHA256).sign(text.encode(), RSA_KEY)
    token = f"{text}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"

    named = asyncio.run(attempt(accepting_authenticator.authenticate([f"Bearer {token}"])))

    if isinstance(named, Failed):
        assert isinstance(named.error, RefusedError), named
        assert 401 == named.error.status
    else:
        assert named.caller.user.startswith(f"{shared_provider.url}#")
        assert not named.caller.scopes
