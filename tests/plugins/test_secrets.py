"""Secrets in logs, spans, metrics, errors, `--json` output and doctor.

All loggers of all libraries are set to their lowest level.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import OpenAI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway import AutoDiscoveryClient, OpenAIEmbedder, OpenAINormalizer
from gateway.errors import GatewayError
from gateway.gateway import Gateway
from gateway.mcp.json_fetch import ask_endpoint
from gateway.options import UpstreamOptions
from gateway.options.provision import ProvisionOptions
from gateway.plugins.provision import fetch
from gateway.runtime.background_loop import Bridge
from gateway.serve.api.app import api_routes
from gateway.serve.auth import BearerToken
from gateway.serve.http import http_app
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server
from gateway.testing.endpoint import Loopback
from gateway.types import Caller
from tests.apps.cli.running import Place
from tests.apps.serve.test_http import served as http_served
from tests.conftest import OpenGateway
from tests.core.mcp.conftest import served
from tests.core.mcp.servers.plain import plain
from tests.metrics import Watch

C = [f"c4nary{number:02}s3cret" for number in range(42)]
LIBRARIES = (
    "anyio", "asyncio", "client", "concurrent", "gateway", "h11", "httpcore", "httpcore2", "httpx",
    "httpx2", "keyring", "mcp", "openai", "opentelemetry", "pydantic", "rdflib", "server",
    "sse_starlette", "starlette", "typer", "urllib3", "uvicorn",
)  # fmt: skip
PLAIN = Path(__file__).parents[1] / "core" / "mcp" / "servers" / "plain.py"
OURS = {"tests", "gateway-testing"}
"""Threads of the servers of these tests, which record their requests."""


class Listener(logging.Handler):
    """Log handler that stores all records except those of the servers of these tests."""

    def __init__(self) -> None:
        super().__init__(1)
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if record.threadName not in OURS:
            self.lines.append(self.format(record))


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Set every existing and future logger to its lowest level and return a handler."""
    handler, root = Listener(), logging.getLogger()
    names = [n for n in root.manager.loggerDict if n.startswith(LIBRARIES)]
    loggers = [root, *map(logging.getLogger, {*names, *LIBRARIES})]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(1)
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def canaries_in(*texts: str) -> set[str]:
    """Return the canaries in *texts*."""
    return {canary for canary in C for text in texts if canary in text}


def with_secret_headers(app: ASGIApp, *secrets: str) -> ASGIApp:
    """Return *app* with *secrets* in the headers of every response."""
    names = ("set-cookie", "x-token", "www-authenticate", "etag", "x-trace")
    more = [(name.encode(), secret.encode()) for name, secret in zip(names, secrets, strict=False)]

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_more(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *more]
            await send(message)

        await app(scope, receive, send_more)

    return answer


@asynccontextmanager
async def loopback(app: ASGIApp) -> AsyncIterator[str]:
    """Serve *app* and yield its address."""
    server = Loopback(app)
    server.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.close()


async def model(request: Request) -> JSONResponse:
    """Respond like a model, an embedder, a registry or a SPARQL endpoint."""
    path = request.url.path
    if path.endswith("/embeddings"):
        texts = (await request.json())["input"]
        embedding = {"embedding": [1.0, 0.5], "object": "embedding"}
        data = [{"index": index, **embedding} for index, _ in enumerate(texts)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return JSONResponse({"object": "list", "model": "m", "data": data, "usage": usage})
    if path.endswith("/servers"):
        return JSONResponse({"servers": []})
    if path.endswith("/sparql"):
        return JSONResponse({"head": {"vars": []}, "results": {"bindings": []}})
    message = {"role": "assistant", "content": "say it again"}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    return JSONResponse({**body, "choices": choices})


MODELS = Starlette(routes=[Route("/{path:path}", model, methods=["GET", "POST"])])


TELLING = f"""
import os, runpy, sys
print("the token is", os.environ["A_TOKEN"], file=sys.stderr)
runpy.run_path({str(PLAIN)!r}, run_name="__main__")
"""


async def failing(_request: Request) -> PlainTextResponse:
    return PlainTextResponse(C[0], 500)


async def test_secrets_of_servers_are_not_in_logs_errors_spans_or_metrics(
    open_gateway: OpenGateway, listener: Listener, tmp_path: Path
) -> None:
    """Secrets are in headers, addresses, variables and arguments."""
    bridge, watch, errors = Bridge("tests"), Watch(), list[str]()
    app = with_secret_headers(plain(tmp_path / "record").streamable_http_app(), *C[1:6])
    every = Route("/{path:path}", failing, methods=["GET", "POST"])
    broken = with_secret_headers(Starlette(routes=[every]), *C[6:11])
    gateway = open_gateway(tracer_provider=watch.tracer, meter_provider=watch.meter)
    async with served(bridge, app) as port, served(bridge, broken) as bad:
        headers = {"Authorization": f"Bearer {C[11]}", "Cookie": C[12], "X-Api-Key": C[13]}
        url = f"http://u:{C[14]}@127.0.0.1:{port}/mcp?key={C[15]}"
        gateway.add_server("web", url=url, headers=headers)
        broken_url = f"http://127.0.0.1:{bad}/{C[16]}/mcp?k={C[17]}"
        gateway.add_server("bad", url=broken_url, headers={"X-Key": C[18]})
        gateway.add_server("off", url=f"http://127.0.0.1:1/{C[19]}?k={C[20]}")
        program = tmp_path / "own.py"
        program.write_text(TELLING)
        args = [str(program), str(tmp_path / "own"), C[22]]
        gateway.add_server("own", command=sys.executable, args=args, env={"A_TOKEN": C[21]})
        report = await gateway.report()
        answers: list[str] = []
        for name, arguments in (
            ("web/echo", {"text": C[23]}),
            ("own/echo", {"text": C[24]}),
            ("web/fail", {"x": C[25]}),
            ("web/add", {"a": C[26]}),
            ("web/echo", {"text": 1, "password": C[27]}),
            ("bad/x", {"y": C[28]}),
        ):
            try:
                answers.append((await gateway.invoke(name, arguments)).text)
            except GatewayError as error:
                errors.append(f"{error!r} {error}")
        gateway.close()
    bridge.close()

    assert {C[23], C[24]} <= set(answers)
    assert any("own: the token is" in line for line in listener.lines)
    assert set() == canaries_in(*listener.lines)
    assert set() == canaries_in(watch.written(), repr(report), *errors)


async def test_secrets_of_models_and_registries_are_not_in_logs_or_spans(
    open_gateway: OpenGateway, listener: Listener
) -> None:
    """Secrets are in keys, addresses, conversations and responses."""
    watch = Watch()
    async with loopback(with_secret_headers(MODELS, *C[29:34])) as url:
        with OpenAI(
            base_url=f"{url}/{C[36]}/v1",
            api_key=C[37],
            max_retries=0,
            default_headers={"X-Key": C[34]},
            default_query={"k": C[35]},
        ) as client:
            gateway: Gateway = open_gateway(
                strategy="auto",
                embedder=OpenAIEmbedder(client, model="m"),
                normalizer=OpenAINormalizer(client, model="m"),
                tracer_provider=watch.tracer,
                meter_provider=watch.meter,
            )
            gateway.add_tool(len_of)
            result = await gateway.search(f"how long is {C[38]}")
            messages: list[Any] = [{"role": "user", "content": C[39]}]
            create = AutoDiscoveryClient(client, gateway).chat.completions.create
            create(model="m", messages=messages)
            gateway.close()
        await fetch(f"{url}/{C[40]}", ProvisionOptions(), UpstreamOptions())
        await asyncio.to_thread(ask_endpoint, f"{url}/sparql?k={C[41]}", "ASK {}", timeout_s=60)

    assert result.matches
    assert set() == canaries_in(*listener.lines, watch.written())


def len_of(text: str) -> int:
    """Tell how long a text is."""
    return len(text)


async def test_secrets_of_clients_are_not_in_logs_responses_or_metrics(
    open_gateway: OpenGateway, listener: Listener
) -> None:
    """Requests are from admitted and from rejected clients."""
    gateway = open_gateway()
    gateway.add_tool(len_of)
    tokens = (BearerToken.from_secret("ci", C[1], Caller(scopes=frozenset({C[2]}))),)
    options = HttpOptions(token=C[0], tokens=tokens)
    app = http_app(mcp_server(gateway), options, routes=api_routes(gateway, options))
    call = {"name": "call_tool", "arguments": {"name": "len_of", "arguments": {"text": C[3]}}}
    bodies = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        {"jsonrpc": "2.0", "id": 2, "method": C[4], "params": {"x": C[5]}},
        {"query": 7, C[6]: C[7]},
    ]
    texts: list[str] = []
    async with (
        app.app.router.lifespan_context(app.app),
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1:8930"
        ) as client,
    ):
        logging.getLogger("httpx2").setLevel(logging.WARNING)  # the client of this test
        for token in (C[0], C[1], C[8], ""):
            for path in ("/mcp", "/api/search/semantic", f"/{C[9]}", f"/api/entities/{C[10]}"):
                for body in bodies:
                    headers = {
                        "Authorization": f"Bearer {token}",
                        "Cookie": C[11],
                        "Accept": "application/json, text/event-stream",
                        "X-Key": C[12],
                        "Mcp-Session-Id": C[13],
                    }
                    answer = await client.post(f"{path}?k={C[14]}", json=body, headers=headers)
                    texts.append(f"{answer.headers}" + (answer.text if token != C[0] else ""))

    assert set() == canaries_in(*listener.lines)
    assert {C[0], C[1], C[8], C[11], C[12], C[14]}.isdisjoint(canaries_in(*texts))


async def test_secrets_of_requests_are_not_in_logs_of_the_http_server(
    open_gateway: OpenGateway, listener: Listener
) -> None:
    """The server would log whole requests at its lowest level."""
    async with http_served(open_gateway(), HttpOptions(port=0)) as url:
        for name in ("httpx2", "httpcore2.http11", "httpcore2.connection"):
            logging.getLogger(name).setLevel(logging.WARNING)  # the client of this test
        async with httpx2.AsyncClient(trust_env=False) as client:
            for path in (f"?k={C[0]}", f"/{C[1]}"):
                await client.post(f"{url}{path}", json=C[2], headers={"X-Key": C[3]})

    assert set() == canaries_in(*listener.lines)


def test_secrets_are_not_in_the_output_of_commands(tmp_path: Path) -> None:
    place = Place(folder=tmp_path)
    own = {"command": sys.executable, "args": [str(PLAIN), str(tmp_path / "r"), C[0]]}
    oauth = {"type": "oauth", "client_id": "c", "client_secret": C[10]}
    servers = {
        "own": {**own, "env": {"A_TOKEN": C[1], "B_KEY": "${CANARY}"}},
        "off": {"url": f"http://127.0.0.1:1/{C[2]}?k={C[3]}", "headers": {"X-Token": C[4]}},
        "odd": {
            "url": f"http://u:{C[5]}@mcp.example/{C[6]}?k={C[7]}",
            "auth": {"type": "bearer", "token": C[8]},
        },
        "bad": {"command": 7, "env": {"A": C[9]}},
        "oauth": {"url": "https://127.0.0.1:1/x", "auth": oauth},
    }
    config = place.config(servers)
    env = {"CANARY": C[11], "OPENAI_API_KEY": C[12], "GATEWAY_NORMALIZE_API_KEY": C[13]}
    printed: list[str] = []
    for command in (
        ("doctor", "--connect"), ("servers", "list"), ("servers", "test"), ("tools",),
        ("search", "say it again", "--strategy", "graph"), ("call", "own/echo", "--help"),
    ):  # fmt: skip
        more = () if "--help" in command else ("--json", "-c", config)
        ran = place.run(*command, *more, env={**os.environ, **env})
        printed += [ran.out, ran.err]

    assert any("own" in text for text in printed)
    assert set() == canaries_in(*printed)
