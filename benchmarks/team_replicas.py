"""An installation for a team: replicas of `gateway serve --http` over one PostgreSQL database, and
the server behind them, which only repeats what it is sent.

A desk has tools of its own, which need its scope. Each caller sits at one desk.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

import httpx2
import uvicorn
from mcp import types
from mcp.server import Server

DESKS = 8
TASKS = ("ledger", "calendar", "contract", "parcel", "ticket")
"""Each desk has a tool for each, and so has everybody."""
_READY_S = 120.0
_LOOK_S = 0.05
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamCaller:
    """Someone with a token."""

    number: int
    token: str

    @property
    def desk(self) -> str:
        """The desk whose tools it may use."""
        return f"desk{self.number % DESKS}"

    @property
    def headers(self) -> Mapping[str, str]:
        """What it sends with each request."""
        return {"Authorization": f"Bearer {self.token}"}


@dataclass(slots=True)
class Replica:
    """One process. Its port stays the same when it is killed and started again."""

    command: Sequence[str]
    env: Mapping[str, str]
    port: int
    log: Path
    process: Popen[bytes] | None = None
    memory_mb: list[float] = field(default_factory=list)
    """Samples of what it holds, since it was started."""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start it, and wait until it is ready."""
        self._launch()
        async with asyncio.timeout(_READY_S), httpx2.AsyncClient(trust_env=False) as http:
            while not await self._is_ready(http):
                if self.process is None or self.process.poll() is not None:
                    raise RuntimeError(self.log.read_text())
                await asyncio.sleep(_LOOK_S)

    def _launch(self) -> None:
        self.memory_mb.clear()
        command = [*self.command, "--port", str(self.port)]
        with self.log.open("ab") as log:
            self.process = Popen(command, env=self.env, stdin=DEVNULL, stdout=log, stderr=log)

    async def _is_ready(self, http: httpx2.AsyncClient) -> bool:
        try:
            return (await http.get(f"{self.url}/readyz")).status_code == httpx2.codes.OK
        except httpx2.HTTPError:
            return False

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it as an orchestrator does."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def note_memory(self) -> None:
        """Add a sample, if it runs."""
        if self.process is not None:
            pages = Path(f"/proc/{self.process.pid}/statm").read_text("ascii").split()[1]
            self.memory_mb.append(round(int(pages) * _PAGE_MB, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """What runs: replicas, and who calls them."""

    replicas: Sequence[Replica]
    callers: Sequence[TeamCaller]
    keeper: Mapping[str, str]
    """What the one sends who may write."""
    tools: list[types.Tool]
    """Of the server behind; it lists what is in here."""


@asynccontextmanager
async def team(
    folder: Path, store: str, *, replicas: int, callers: int, strategy: str = "graph"
) -> AsyncIterator[Team]:
    """Run an installation, each replica with a folder, and a path of the configuration, of its own.

    Args:
        folder: Where everything is.
        store: The address of the database.
        replicas: How many.
        callers: How many tokens.
        strategy: How they search.
    """
    people = [TeamCaller(number=number, token=secrets.token_hex(16)) for number in range(callers)]
    keeper = secrets.token_hex(16)
    env = {
        **os.environ,
        **{f"TOKEN_{each.number}": each.token for each in people},
        "TOKEN_KEEPER": keeper,
        "GATEWAY_STORE": store,
        "GATEWAY_HOST_KEY": secrets.token_hex(32),
        "GATEWAY_INSTALLATION": "team",
        "GATEWAY_USAGE": "on",
        "GATEWAY_ON_CHANGE": "block",
        # Else every call is refused while the database is away.
        "GATEWAY_AUDIT_ON_FAILURE": "continue",
    }
    tools = [*_tools()]
    async with _echo_server(tools) as upstream:
        made = [
            _replica(folder / str(number), upstream, people, env, strategy)
            for number in range(replicas)
        ]
        try:
            await asyncio.gather(*(each.start() for each in made))
            yield Team(
                replicas=made,
                callers=people,
                keeper={"Authorization": f"Bearer {keeper}"},
                tools=tools,
            )
        finally:
            for each in made:
                each.stop()


def _replica(
    folder: Path, upstream: str, people: Sequence[TeamCaller], env: Mapping[str, str], strategy: str
) -> Replica:
    folder.mkdir(parents=True)
    rules = {f"desk/{name}_*": {"scopes": [name]} for name in map("desk{}".format, range(DESKS))}
    document = {"mcpServers": {"desk": {"url": f"{upstream}/mcp"}}, "rules": rules}
    config, tokens = folder / "mcp.json", folder / "tokens.toml"
    config.write_text(json.dumps(document))
    rows = [_token_row("KEEPER", "keeper", ["catalog:write", "catalog:admin", "*"])]
    rows += [_token_row(each.number, f"user{each.number}", [each.desk]) for each in people]
    tokens.write_text("\n".join(rows))
    where = ["--config", str(config), "--tokens", str(tokens), "--strategy", strategy]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    return Replica(
        [sys.executable, "-m", "gateway", "serve", "--http", "--no-console", *where],
        {**env, "GATEWAY_CACHE_DIR": str(folder)},
        port,
        folder / "log",
    )


def _token_row(name: object, user: str, scopes: Sequence[str]) -> str:
    secret = f"${{TOKEN_{name}}}"
    return f'[tokens.{user}]\ntoken = "{secret}"\nuser = "{user}"\nscopes = {json.dumps(scopes)}\n'


def _tools() -> list[types.Tool]:
    schema = {"type": "object", "properties": {"nonce": {"type": "string"}}, "required": ["nonce"]}
    return [
        types.Tool(
            name=f"{owner}_{task}",
            description=f"Write a note into the {task} of {owner}.",
            input_schema=schema,
        )
        for owner in ("open", *map("desk{}".format, range(DESKS)))
        for task in TASKS
    ]


@asynccontextmanager
async def _echo_server(tools: list[types.Tool]) -> AsyncIterator[str]:
    async def listed(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def called(_context: object, params: Any) -> types.CallToolResult:
        text = f"{params.name} says {(params.arguments or {}).get('nonce')}"
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    server: Server[Any] = Server("desk", on_list_tools=listed, on_call_tool=called)
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    web = uvicorn.Server(
        uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1)
    )
    serving = asyncio.create_task(web.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        web.should_exit = True
        await serving
        listener.close()
