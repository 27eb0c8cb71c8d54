"""A configurable identity provider on loopback, which signs any token."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import jwt
import pytest
import uvicorn
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from gateway.runtime.background_loop import Bridge
from gateway.serve.http_options import HttpOptions
from gateway.serve.identity import Issuer
from tests.apps.serve.conftest import RESOURCE

RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


@dataclass
class Provider:
    """An identity provider with configurable responses."""

    url: str
    keys: list[Mapping[str, Any]] = field(default_factory=list)
    document: object = None
    """Response to requests for the keys. None sends the keys."""
    status: int = 200
    metadata: dict[str, object] = field(default_factory=dict)
    """Members that replace those of the provider's metadata."""
    answer: dict[str, object] = field(default_factory=dict)
    """Response of the token endpoint."""
    redeemed: list[dict[str, list[str]]] = field(default_factory=list)
    """Forms that the token endpoint received, each with its ``Authorization`` headers."""
    fetches: int = 0
    """Number of requests for the keys."""

    def __post_init__(self) -> None:
        self.keys = [public_key(RSA_KEY, "rsa"), public_key(EC_KEY, "ec")]

    def app(self) -> Starlette:
        metadata = "/.well-known/oauth-authorization-server"
        return Starlette(
            routes=[
                Route(metadata, self._tell),
                Route("/jwks", self._send),
                Route("/token", self._give, methods=["POST"]),
            ]
        )

    async def _tell(self, _request: Request) -> Response:
        header = {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/jwks",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
        }
        return JSONResponse(header | self.metadata)

    async def _give(self, request: Request) -> Response:
        form = parse_qs((await request.body()).decode())
        self.redeemed.append(form | {"authorization": request.headers.getlist("authorization")})
        return JSONResponse(self.answer, self.status)

    async def _send(self, _request: Request) -> Response:
        self.fetches += 1
        if self.status in {301, 302}:
            return RedirectResponse(f"{self.url}/elsewhere", self.status)
        document = {"keys": self.keys} if self.document is None else self.document
        return JSONResponse(document, self.status)

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return the claims of a valid token with *changes*. None removes a claim."""
        good: dict[str, Any] = {
            "iss": self.url,
            "aud": RESOURCE,
            "sub": "ada",
            "exp": int(time.time()) + 300,
            "iat": int(time.time()),
            **changes,
        }
        return {name: value for name, value in good.items() if value is not None}

    def token(self, /, *, headers: Mapping[str, Any] | None = None, **changes: Any) -> str:
        """Return an access token with changed claims and headers."""
        header = {"kid": "rsa", "typ": "at+jwt", **(headers or {})}
        return jwt.encode(self.claims(**changes), RSA_KEY, "RS256", headers=header)

    def id_token(self, /, nonce: str, **changes: Any) -> str:
        """Return an ID token for the client ``browser`` with changed claims."""
        claims = {"aud": "browser", "nonce": nonce, **changes}
        return self.token(headers={"typ": "JWT"}, **claims)

    def issuer(self, **settings: object) -> Issuer:
        """Return the gateway's configuration of this provider."""
        return Issuer.model_validate({"issuer": self.url, **settings})

    def options(self, **settings: object) -> HttpOptions:
        """Return options of a server that accepts this provider."""
        return HttpOptions(issuers=(self.issuer(**settings),), resource=RESOURCE)


def public_key(key: Any, key_id: str) -> dict[str, Any]:
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": key_id, "use": "sig"}


@contextmanager
def running() -> Iterator[Provider]:
    listener = socket.create_server(("127.0.0.1", 0))
    provider = Provider(url=f"http://127.0.0.1:{listener.getsockname()[1]}")
    config = uvicorn.Config(provider.app(), log_config=None, ws="none", lifespan="off")
    server, bridge = uvicorn.Server(config), Bridge("provider")
    serving = bridge.submit(lambda: server.serve(sockets=[listener]))
    try:
        yield provider
    finally:
        server.should_exit = True
        serving.result(timeout=60)
        bridge.close()
        listener.close()


@pytest.fixture(scope="session")
def shared_provider() -> Iterator[Provider]:
    """An identity provider for tests that do not stop it."""
    with running() as provider:
        yield provider


@pytest.fixture
def provider(shared_provider: Provider) -> Provider:
    """The shared provider in its initial state."""
    vars(shared_provider).update(vars(Provider(url=shared_provider.url)))
    return shared_provider
