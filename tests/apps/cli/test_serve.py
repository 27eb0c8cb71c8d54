"""`gateway serve`, started like an MCP client starts it."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters

from benchmarks import flood_server
from gateway.testing import ScriptedModel, Turn
from tests.apps.cli.running import BIN, REAL_TIME, TIME, Place
from tests.fakes import is_running


def over_pipes(place: Place, config: str, *more: str, **env: str) -> Client:
    """Return an MCP client of ``gateway serve`` over pipes."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "gateway", "serve", "--config", config, "--strategy", "graph", *more],
        env={"PATH": str(BIN), "GATEWAY_CACHE_DIR": str(place.cache), **env},
    )
    return Client(server)


def test_serve_over_pipes_finds_and_calls_tools(place: Place) -> None:
    """Messages for people go to standard error only."""

    async def talk() -> tuple[list[str], str]:
        async with over_pipes(place, place.config({"time": REAL_TIME})) as client:
            names = [item.name for item in (await client.list_tools()).tools]
            async with asyncio.timeout(120):
                # A busy machine may start the server after the first search has timed out.
                while not (result := await search(client))["tools"]:
                    pass
            return names, result["tools"][0]["id"]

    async def search(client: Client) -> dict[str, Any]:
        result = await client.call_tool("search_tools", {"query": "current time"})
        return result.structured_content or {}

    names, result = asyncio.run(talk())

    assert ["search_tools", "call_tool"] == names
    assert "time/get_current_time" == result


def test_serve_with_with_offers_additional_meta_tools(place: Place) -> None:
    more = [f"--with={item}" for item in ("discover", "provision", "next", "route")]

    async def talk() -> tuple[list[str], dict[str, Any]]:
        async with over_pipes(place, place.config({}), *more) as client:
            names = [item.name for item in (await client.list_tools()).tools]
            data = await client.call_tool("provision", {"intent": "crawl a whole website"})
            return names, data.structured_content or {}

    names, data = asyncio.run(talk())

    meta = ["search_tools", "call_tool", "route_tools", "next_tools"]
    assert [*meta, "discover", "provision"] == names
    assert "firecrawl/firecrawl" == data["server"]


def test_serve_with_confirm_selects_the_calls_that_a_user_has_to_confirm(place: Place) -> None:
    """The client of this test cannot ask its user, so selected calls are refused."""

    async def talk() -> str:
        async with over_pipes(place, place.config(), "--confirm", "all") as client:
            call = {"name": "get_current_time", "arguments": {"timezone": "Asia/Tokyo"}}
            async with asyncio.timeout(120):
                # A busy machine may start the server after the first call has timed out.
                while "unknown tool" in (told := str(await client.call_tool("call_tool", call))):
                    pass
            return told

    assert "gateway serve --confirm never" in asyncio.run(talk())


def test_serve_refuses_with_together_with_expose_all(place: Place) -> None:
    """A tool of the catalog may have the name of an additional tool."""
    ran = place.run("serve", "--expose", "all", "--with", "discover", "-c", place.config({}))
    odd = place.run("serve", "--with", "everything", "-c", place.config({}))

    assert (2, True) == (ran.code, "--with requires --expose meta" in ran.err)
    assert (2, True) == (odd.code, "must be 'discover', 'provision', 'install'" in odd.err)


def test_serve_over_pipes_refuses_options_for_http(place: Place) -> None:
    """A user who names a token must not be served without it."""
    ran = place.run("serve", "--token-env", "X", "--port", "9", "-c", place.config({}))

    usual = place.run("serve", "--host", "127.0.0.1", "--port", "8930", "-c", place.config({}))

    assert (2, True) == (ran.code, "--port, --token-env: only for HTTP" in ran.err)
    assert (2, True) == (usual.code, "--host, --port: only for HTTP" in usual.err)


def test_serve_refuses_the_removed_option_part_and_names_its_replacement(place: Place) -> None:
    ran = place.run("serve", "--http", "--part", "1/4", "-c", place.config({}))

    assert 2 == ran.code
    assert "--part was removed, because one process can hold a million tools" in ran.err
    assert "replicas" in ran.err


def test_serve_over_http_prints_its_address_and_ends_at_sigterm(place: Place) -> None:
    with place.serve("--config", place.config()) as (_, messages, url):

        async def listed() -> list[str]:
            async with Client(url) as client:
                return [item.name for item in (await client.list_tools()).tools]

        api, names = next(messages), asyncio.run(listed())

    assert ["search_tools", "call_tool"] == names
    assert f"{url.removesuffix('/mcp')}/openapi.json\n" in api


def test_serve_reloads_a_changed_configuration_and_reports_a_broken_one(place: Place) -> None:
    """Both a changed file and SIGHUP cause a reload."""
    config = Path(place.config())
    whole = config.read_text()

    def replace(text: str) -> None:
        # The file is replaced in one step, because a half-written file would be reported too.
        place.put("new", text).replace(config)

    with place.serve("--config", str(config)) as (process, messages, _):
        replace("{")
        broken = next(item for item in messages if "servers unchanged" in item)
        replace(json.dumps({"mcpServers": {"time": TIME, "second": TIME}}))
        changed = next(item for item in messages if "configuration reloaded" in item)
        replace(whole)
        gone = next(item for item in messages if "configuration reloaded" in item)
        process.send_signal(signal.SIGHUP)
        same = next(item for item in messages if "configuration reloaded" in item)

    assert "servers.json" in broken
    assert "line 1, column 2" in broken
    assert "added second" in changed
    assert "removed second" in gone
    assert "no changes" in same


def test_serve_reports_missing_tokens_open_addresses_and_missing_files(place: Place) -> None:
    config = place.config()
    unset = place.run("serve", "--http", "--token-env", "NOT_SET_HERE", "--config", config)
    opened = place.run("serve", "--http", "--host", "0.0.0.0", "--config", config)
    missing = place.run("serve", "--config", "no-such.json")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        busy = place.run("serve", "--http", "--port", port, "--config", place.config({}))
        bare = place.run("serve", "--http", "--port", port, "--no-api", "--config", config)

    assert [2, 2, 2, 2, 2] == [item.code for item in (unset, opened, missing, busy, bare)]
    assert "NOT_SET_HERE" in unset.err
    assert "token" in opened.err
    assert "no-such.json" in missing.err
    assert "choose another port (--host, --port)" in busy.err
    assert "choose another port (--host, --port)" in bare.err


def test_serve_without_the_api_serves_only_mcp(place: Place) -> None:
    with (
        place.serve("--config", place.config({}), "--no-api") as (_, _, url),
        httpx2.Client(trust_env=False) as client,
    ):
        tags = client.get(url.replace("/mcp", "/api/search/tags"))
        protocol = client.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})

    assert [404, 400] == [tags.status_code, protocol.status_code]


def test_serve_reloads_the_callers_of_the_token_file(place: Place) -> None:
    """A removed caller is refused without a restart."""
    path = place.put("tokens.toml", '[tokens.me]\ntoken = "${MY_TOKEN}"\n')
    secrets = {"MY_TOKEN": "0123456789abcdef", "OTHER_TOKEN": "fedcba9876543210"}
    started = place.serve("--config", place.config({}), "--tokens", str(path), **secrets)
    with started as (_, messages, url), httpx2.Client(trust_env=False) as client:

        def replace(text: str) -> str:
            place.put("new", text).replace(path)
            return next(item for item in messages if "accepted callers" in item)

        def statuses() -> list[int]:
            address = url.replace("/mcp", "/api/search/tags")
            bearers = [{"Authorization": f"Bearer {secret}"} for secret in secrets.values()]
            result = [client.get(address, headers=item) for item in ({}, *bearers)]
            result.append(client.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}))
            return [item.status_code for item in result]

        before = statuses()
        broken = replace("[tokens")
        stored = statuses()
        changed = replace(
            f'resource = "{url}"\n[issuers.a]\nissuer = "https://idp.example"\n'
            '[tokens.other]\ntoken = "${OTHER_TOKEN}"\n'
        )
        after = statuses()
        metadata = client.get(url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"))

    assert [401, 200, 401, 401] == before == stored
    assert [401, 401, 200, 401] == after
    assert "unchanged" in broken
    assert "tokens: 1, identity providers: 1" in changed
    assert ["https://idp.example"] == metadata.json()["authorization_servers"]


def test_serve_over_http_rewrites_queries_of_searches(place: Place) -> None:
    body = {"query": "Привіт", "max_results": 1}
    with (
        ScriptedModel(lambda _: Turn("convert time between zones")) as model,
        place.serve(
            "--config",
            place.config(),
            "--normalize",
            "small",
            GATEWAY_NORMALIZE_BASE_URL=model.base_url,
            GATEWAY_NORMALIZE_API_KEY="own-key",
        ) as (_, _, url),
        httpx2.Client(trust_env=False, timeout=60) as client,
    ):
        # A busy machine may start the server after the first search has timed out.
        address = url.replace("/mcp", "/api/search/semantic")
        answers = (client.post(address, json=body).json() for _ in range(1000))
        found = next(answer for answer in answers if answer["results"])

    assert "query_normalized" in {note["code"] for note in found["diagnostics"]}
    assert ["time/convert_time"] == [result["id"] for result in found["results"]]
    assert "small" == model.requests[0].model


def test_serve_ends_its_servers_after_sigterm_before_it_exits(place: Place) -> None:
    """One server ignores its closed pipe, and the client holds its pipe open."""
    data = place.folder / "pid"
    os.mkfifo(data)
    script = f"trap '' HUP; echo $$ > {data}; while :; do sleep 600; done"
    config = place.config({"deaf": {"command": "sh", "args": ["-c", script]}})
    server = subprocess.Popen(
        [sys.executable, "-m", "gateway", "serve", "--config", config, "--strategy", "graph"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "GATEWAY_CACHE_DIR": str(place.cache)},
    )
    with server, os.fdopen(os.open(data, os.O_RDONLY | os.O_NONBLOCK)) as pipe:
        assert select.select([pipe], [], [], 300)[0]
        deaf = int(pipe.readline())
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=120)

    assert 128 + signal.SIGTERM == code
    assert not Path(f"/proc/{deaf}").exists()


STUBBORN = """
import json, os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
inner = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "tools/call":
        started = subprocess.Popen([sys.executable, "-c", inner], start_new_session=True)
        with open(sys.argv[1], "w") as pids:
            pids.write(f"{os.getpid()} {started.pid}\\n")
        os.kill(os.getpid(), signal.SIGSTOP)
    results = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "x", "version": "0"},
        },
        "tools/list": {"tools": [{"name": "good", "inputSchema": {"type": "object"}}]},
    }
    found = results.get(message["method"])
    answer = {"result": found} if found else {"error": {"code": -32601, "message": "unknown"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


def test_serve_ends_a_hanging_server_at_a_second_sigterm(place: Place) -> None:
    """The server's child process ignores SIGTERM and has a session of its own."""
    data = place.folder / "pids"
    os.mkfifo(data)
    config = place.config(
        {"stuck": {"command": sys.executable, "args": ["-c", STUBBORN, str(data)]}}
    )

    async def call(url: str) -> None:
        async with Client(url) as client:
            await client.call_tool("call_tool", {"name": "stuck/good"})

    with place.serve("--config", config, "--confirm", "never") as (process, _, url):
        calling = threading.Thread(target=lambda: suppressed(call(url)), daemon=True)
        calling.start()
        stuck = data.read_text().split()
        process.send_signal(signal.SIGTERM)
        with httpx2.Client(trust_env=False) as client:
            while client.get(url.replace("/mcp", "/readyz")).status_code != 503:
                pass
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=120)

    assert 128 + signal.SIGTERM == code
    assert 2 == len(stuck)
    # The processes are killed before the end; the system needs a moment.
    while any(is_running(pid) for pid in stuck):
        pass


def suppressed(work: Coroutine[Any, Any, None]) -> None:
    with suppress(BaseException):
        asyncio.run(work)


def all_threads_children(process: int) -> list[str]:
    """Return the ids of the child processes of all threads of *process*."""
    files = Path(f"/proc/{process}/task").glob("*/children")
    return [child for file in files for child in file.read_text().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are read as Linux shows them")
def test_sigterm_ends_flooding_and_hanging_servers(place: Place) -> None:
    script = str(Path(flood_server.__file__))
    floods = ("ping", "progress", "worst_text", "hang")
    servers = {name: {"command": sys.executable, "args": [script, name]} for name in floods}

    async def stop(url: str, process: subprocess.Popen[str]) -> list[str]:
        heard = asyncio.Event()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            heard.set()

        with suppress(Exception):  # the server is stopped meanwhile
            async with Client(url, mode="legacy") as client, asyncio.TaskGroup() as calls:
                for name in ("ping", "hang", "progress"):
                    call = {"name": f"{name}/good", "arguments": {}}
                    work = client.call_tool("call_tool", call, progress_callback=on_progress)
                    calls.create_task(work)
                await heard.wait()
                children = all_threads_children(process.pid)
                process.terminate()
                await asyncio.to_thread(process.wait, 30)
        return children

    config = place.config(servers, options={"upstream": {"first_listing_s": 4}})
    with place.serve("--config", config, "--drain-timeout", "0") as (process, messages, url):
        reading = threading.Thread(target=list, args=(messages,), daemon=True)
        reading.start()
        children = asyncio.run(stop(url, process))
        reading.join()

    assert 0 == process.returncode
    assert len(children) >= len(floods)
    assert [] == [child for child in children if Path("/proc", child).exists()]
