"""Access to the API, and its error responses."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import MutableMapping, Sequence

import httpx2
import pytest

from gateway import errors
from gateway.embed import Embedded, EmbedderInfo, Role
from gateway.serve.api.app import api_app
from gateway.serve.api.problems import refusal
from gateway.serve.auth import ADMIN, WRITE, BearerToken
from gateway.serve.http_options import HttpOptions
from gateway.types import ALL_SCOPES, ANYONE
from tests.apps.serve.api.client import SECRET, open_client, until
from tests.apps.serve.api.conftest import Mixed
from tests.conftest import OpenGateway

PROBLEM = "application/problem+json"


def code(answer: httpx2.Response) -> tuple[int, str]:
    """Return the HTTP status and the problem code of a response, after checking its form."""
    assert PROBLEM == answer.headers["content-type"]
    body = answer.json()
    assert ("about:blank", answer.status_code) == (body["type"], body["status"])
    assert body["title"]
    assert body["detail"]
    return answer.status_code, body["code"]


@pytest.mark.parametrize("path", ["/api/health", "/openapi.json", "/api/nothing"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
async def test_api_refuses_foreign_host_and_origin_headers(
    empty_client: httpx2.AsyncClient, path: str, headers: dict[str, str], status: int
) -> None:
    """The check prevents DNS rebinding, and comes before any other check."""
    answer = await empty_client.get(path, headers=headers)

    assert (status, "foreign") == code(answer)


async def test_listed_hosts_and_origins_are_accepted(open_gateway: OpenGateway) -> None:
    http = HttpOptions(hosts=("gateway.example",), origins=("https://console.example",))
    async with open_client(open_gateway(), http) as client:
        answer = await client.get(
            "/api/health", headers={"Host": "gateway.example", "Origin": "https://console.example"}
        )

    assert 200 == answer.status_code


async def test_app_accepts_lifespan_events(open_gateway: OpenGateway) -> None:
    """ASGI servers send these events before and after the requests, without a Host header."""
    announced = iter(["lifespan.startup", "lifespan.shutdown"])
    answers: list[object] = []

    async def receive() -> dict[str, object]:
        return {"type": next(announced)}

    async def send(message: MutableMapping[str, object]) -> None:
        answers.append(message["type"])

    await api_app(open_gateway(), HttpOptions())({"type": "lifespan"}, receive, send)

    assert ["lifespan.startup.complete", "lifespan.shutdown.complete"] == answers


async def test_unknown_path_or_method_returns_a_problem_document(
    empty_client: httpx2.AsyncClient,
) -> None:
    nowhere = await empty_client.get("/api/nothing")
    slash = await empty_client.get("/api/search/tags/")
    wrong = await empty_client.delete("/api/entities")
    head = await empty_client.head("/api/health")

    assert (404, "unknown_path") == code(nowhere)
    assert (404, "unknown_path") == code(slash)
    assert (405, "wrong_method") == code(wrong)
    assert {"GET", "HEAD", "POST"} == set(wrong.headers["allow"].split(", "))
    assert 200 == head.status_code


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer  ", f"Basic {SECRET}", SECRET])
async def test_api_refuses_requests_without_a_valid_token(
    open_gateway: OpenGateway, header: str
) -> None:
    """RFC 6750, section 3, requires a challenge, with an error code if a token was sent."""
    async with open_client(open_gateway(), HttpOptions(token=SECRET)) as client:
        answer = await client.get("/api/search/tags", headers={"Authorization": header})
        wrong = await client.get("/api/search/tags", headers={"Authorization": "Bearer guess"})
        public = [await client.get(path) for path in ("/api/health", "/openapi.json")]

    assert (401, "token_missing") == code(answer)
    assert 'Bearer realm="gateway"' == answer.headers["www-authenticate"]
    assert (401, "token_unknown") == code(wrong)
    assert 'error="invalid_token"' in wrong.headers["www-authenticate"]
    assert "guess" not in wrong.text
    assert [200, 401] == [response.status_code for response in public]


@pytest.mark.parametrize(
    ("scopes", "expected"),
    [
        ((), [200, 403, 403]),
        ((WRITE,), [200, 201, 403]),
        ((ADMIN,), [200, 403, 202]),
        ((ALL_SCOPES,), [200, 201, 202]),
    ],
)
async def test_api_operations_require_the_scopes_of_the_token(
    create_mail_gateway: Mixed, scopes: tuple[str, ...], expected: list[int]
) -> None:
    other = BearerToken.from_secret("other", "another-secret", ANYONE)
    async with open_client(create_mail_gateway(), scopes=scopes, tokens=[other]) as client:
        answers = [
            await client.get("/api/search/tags"),
            await client.post("/api/entities", json={"kind": "agent", "name": "anybody"}),
            await client.post("/api/index/rebuild"),
        ]
        await until(client, "/api/index", "rebuilding", value=False)

    assert expected == [response.status_code for response in answers]
    refused = [response for response in answers if response.status_code == 403]
    assert all(code(response) == (403, "scope_missing") for response in refused)
    assert all("insufficient_scope" in response.headers["www-authenticate"] for response in refused)


@pytest.mark.parametrize("content", [b"{", b" " * 1_500_000])
async def test_api_does_not_read_the_body_without_the_required_scope(
    create_mail_gateway: Mixed, content: bytes
) -> None:
    async with open_client(create_mail_gateway(), scopes=()) as client:
        answer = await client.post(
            "/api/entities", content=content, headers={"Content-Type": "application/json"}
        )

    assert (403, "scope_missing") == code(answer)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/entities/agent:catalog%2Fcourier", 200),
        ("HEAD", "/api/entities/agent:catalog/courier", 200),
        ("DELETE", "/api/entities/agent:catalog/courier", 204),
        ("GET", "/openapi.json", 200),
        ("GET", "/api/entities?limit=0", 422),
        ("GET", "/api/nothing", 404),
        ("POST", "/api/entities/agent:catalog/courier", 405),
    ],
)
async def test_api_responses_forbid_caching(
    writer_client: httpx2.AsyncClient, method: str, path: str, status: int
) -> None:
    answer = await writer_client.request(method, path)

    assert status == answer.status_code
    assert "no-store" == answer.headers["cache-control"]
    assert "nosniff" == answer.headers["x-content-type-options"]


async def test_405_response_lists_all_methods_of_the_path(empty_client: httpx2.AsyncClient) -> None:
    answer = await empty_client.post("/api/entities/agent:catalog/courier")

    assert {"DELETE", "GET", "HEAD", "PATCH", "PUT"} == set(answer.headers["allow"].split(", "))


OBSERVED = """
import asyncio

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.gateway import Gateway
from tests.apps.serve.api.client import open_client

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)


async def main():
    async with Gateway(strategy="graph") as gateway, open_client(gateway) as client:
        assert 422 == (await client.get("/api/entities?limit=0")).status_code
        assert 200 == (await client.get("/api/entities")).status_code


asyncio.run(main())
names = {span.instrumentation_scope.name for span in exporter.get_finished_spans()}
print(names - {"tool-gateway"})
"""


def test_fastapi_records_no_telemetry_spans() -> None:
    """FastAPI would record messages of exceptions, which may contain a secret."""
    done = subprocess.run(
        [sys.executable, "-c", OBSERVED], capture_output=True, text=True, check=True
    )

    assert "set()" == done.stdout.strip()


class Endless:
    """Embedder that never returns."""

    def __init__(self) -> None:
        self.info = EmbedderInfo(model_id="endless", provider="test", dimensions=8)

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        await asyncio.Event().wait()
        raise AssertionError


async def test_slow_api_request_times_out(create_mail_gateway: Mixed) -> None:
    async with open_client(create_mail_gateway(embedder=Endless()), time_limit_s=0.05) as client:
        answer = await client.post("/api/search/semantic", json={"query": "a refund"})

    assert (503, "too_slow") == code(answer)
    assert "1" == answer.headers["retry-after"]


async def test_api_of_a_closed_gateway_returns_503(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    await gateway.aclose()
    async with open_client(gateway) as client:
        answers = [await client.get("/api/health"), await client.get("/api/search/tags")]

    assert [(503, "closed")] * 2 == [code(answer) for answer in answers]


@pytest.mark.parametrize(
    ("error", "status", "is_shown"),
    [
        (errors.InvalidRequestError("message"), 422, True),
        (errors.ConfigError("message"), 422, True),
        (errors.StoreError("message"), 503, True),
        (errors.EmbeddingError("message"), 503, True),
        (errors.UpstreamError("server", "message"), 502, True),
        (errors.ClosedError("message"), 503, True),
        (ValueError("message"), 500, False),
    ],
)
def test_api_shows_only_messages_of_gateway_errors(
    error: Exception, status: int, is_shown: bool
) -> None:
    """Gateway errors contain no secret and no query. Other exceptions may contain anything."""
    refused = refusal(errors.Failed(error))

    assert (status, is_shown) == (refused.status, "message" in refused.details.detail)
