"""A team's installation under load while replicas are killed and the store goes away.

    python -m benchmarks.team --json [--replicas 3] [--callers 200] [--soak MINUTES]

Callers with tokens and scopes of their own search and call through whichever replica is next, as
behind a load balancer: one that does not answer is left for the next. At the same time replicas
are killed and started again, and the database is stopped for a while. Every request has a word of
its own, and tools repeat it; a desk's tools are for its own callers. So an answer with another's
word is cross-talk, and one that names or calls another desk's tool was not authorized. What was
put and acknowledged has to be there in the end, at each replica. Then cached searches are timed at
a fixed rate. This process plays the clients and the server behind, on the same cores.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import httpx2
import numpy as np
import psycopg
import typer

from benchmarks.tables import print_figures
from benchmarks.team_replicas import DESKS, TASKS, Replica, Team, TeamCaller, team
from tests.postgres_server import PostgresServer, running_server

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "team", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
WORKERS = 32
"""Requests under way at once while there are faults."""
PATIENCE_S = 60.0
"""A request that no replica has answered by then is lost."""
_AGAIN_S = 0.05
_WRITE_EVERY = 100
_TRESPASS_EVERY = 20
_FRESH_EVERY = 10
"""One of so many searches has words that nobody used before."""
_WORD = re.compile(r"word[0-9]+x")
_TOOL = re.compile(r"\b(?:open|desk[0-9]+)_[a-z]+\b")
_SAMPLES = 12
_ENTITIES = "/api/entities"

Job = Callable[[], Coroutine[Any, Any, None]]


@dataclass(kw_only=True)
class Plan:
    """How much is done, and what goes wrong meanwhile."""

    replicas: int = 3
    callers: int = 200
    searches: int = 20_000
    calls: int = 5_000
    kills: int = 6
    outages: int = 2
    outage_s: float = 10.0
    shares: int = 5
    """Entries that each replica puts, to see how soon the others show them."""
    rate: float = 200.0
    """Cached searches a second when they are timed."""
    timed_s: float = 30.0
    """How long they are timed."""
    soak_min: float = 0.0
    strategy: str = "graph"


@dataclass(kw_only=True)
class Load:
    """The requests of all callers, and what came of them."""

    team: Team
    http: httpx2.AsyncClient
    counts: Counter[str] = field(default_factory=Counter)
    latencies_ms: list[float] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    """The ids of entities that a replica says it has put."""
    _turns: Iterator[int] = field(default_factory=itertools.count)
    _words: Iterator[int] = field(default_factory=itertools.count)

    async def search(self, caller: TeamCaller, number: int) -> None:
        """Search for a tool of the caller's desk, and look at what is found."""
        word, task = self._word(), TASKS[number // len(self.team.callers) % len(TASKS)]
        fresh = f" {word}" if number % _FRESH_EVERY == 0 else ""
        query = f"write into the {task} of {caller.desk}{fresh}"
        began = time.perf_counter()
        text = await self.use(caller, "search_tools", {"query": query})
        self.latencies_ms.append((time.perf_counter() - began) * 1000)
        found = {*_TOOL.findall(text)}
        self._judge(text, word, is_right=f"{caller.desk}_{task}" in found)
        others = [name for name in found if name.split("_")[0] not in {"open", caller.desk}]
        self.counts["unauthorized"] += bool(others)
        self.counts["searches"] += 1

    async def call(self, caller: TeamCaller, number: int) -> None:
        """Call a tool that repeats a word; at times one of another desk, which must be refused."""
        word, task = self._word(), TASKS[number % len(TASKS)]
        if number % _TRESPASS_EVERY == 0:
            other = f"desk{(caller.number + 1) % DESKS}_{task}"
            text = await self.use(
                caller, "call_tool", {"name": other, "arguments": {"nonce": word}}
            )
            self.counts["unauthorized"] += f"{other} says" in text
            self.counts["trespasses"] += 1
        text = await self.use(
            caller, "call_tool", {"name": f"{caller.desk}_{task}", "arguments": {"nonce": word}}
        )
        self._judge(text, word, is_right=f"{caller.desk}_{task} says {word}" in text)
        self.counts["calls"] += 1

    async def intrude(self) -> None:
        """Send a request without a token, and one with a wrong token."""
        body = _request("search_tools", {"query": "ledger"})
        for token in ({}, {"Authorization": "Bearer of-nobody-at-all-here"}):
            response = await self._send("POST", "/mcp", json=body, headers=_headers(body) | token)
            is_refused = response is not None and response.status_code == httpx2.codes.UNAUTHORIZED
            self.counts["unauthorized"] += not is_refused

    async def write(self) -> None:
        """Put an entry; what is refused while the store is away was not acknowledged."""
        key = f"agent:catalog/{self._word()}"
        body = {"description": f"Plans the journeys of {key}."}
        path, headers = f"{_ENTITIES}/{key}", self.team.keeper
        response = await self._send("PUT", path, json=body, headers=headers)
        if response is not None and response.is_success:
            self.acknowledged.append(key)
        else:
            self.counts["refused_writes"] += 1

    async def count_lost_writes(self) -> int:
        """Return how many of the acknowledged entries a replica does not have in the end."""
        lost = 0
        for replica in self.team.replicas:
            # One that was started just now, or whose connection was lost, has to hear of them.
            until = time.perf_counter() + PATIENCE_S / 2
            lacking = await self._lacking(replica)
            while lacking and time.perf_counter() < until:
                lacking = await self._lacking(replica)
            lost += len(lacking)
        return lost

    async def share(self, replica: Replica) -> float:
        """Put an entry through *replica*; return after how many ms all others show it."""
        path = f"{_ENTITIES}/agent:catalog/{self._word()}"
        body = {"description": "Plans a journey."}
        headers = self.team.keeper
        answer = await self.http.put(f"{replica.url}{path}", json=body, headers=headers)
        answer.raise_for_status()
        began = time.perf_counter()
        for other in self.team.replicas:
            # Nothing but an answer says what a replica has heard.
            while not (await self.http.get(f"{other.url}{path}", headers=headers)).is_success:
                if time.perf_counter() - began > PATIENCE_S:
                    raise TimeoutError(f"{other.url} does not show {path}")
        return (time.perf_counter() - began) * 1000

    async def _lacking(self, replica: Replica) -> set[str]:
        found: set[str] = set()
        query: dict[str, str] = {"kind": "agent", "limit": "100"}
        while True:
            url = f"{replica.url}{_ENTITIES}"
            answer = (await self.http.get(url, params=query, headers=self.team.keeper)).json()
            found |= {each["id"] for each in answer["entities"]}
            if not (cursor := answer["metadata"]["nextCursor"]):
                return {*self.acknowledged} - found
            query["cursor"] = cursor

    def _word(self) -> str:
        return f"word{next(self._words)}x"

    def _judge(self, text: str, word: str, *, is_right: bool) -> None:
        is_foreign = bool({*_WORD.findall(text)} - {word})
        self.counts["cross_talk"] += is_foreign
        self.counts["lost"] += not is_right

    async def use(self, caller: TeamCaller, name: str, arguments: Mapping[str, object]) -> str:
        """Return the answer of a meta-tool; empty if there was none."""
        body = _request(name, arguments)
        headers = {**_headers(body), **caller.headers}
        response = await self._send("POST", "/mcp", json=body, headers=headers)
        return response.text if response is not None and response.is_success else ""

    async def _send(self, method: str, path: str, **request: Any) -> httpx2.Response | None:
        """Send a request to one replica after the other until one answers; None is never."""
        began, response = time.perf_counter(), None
        while time.perf_counter() - began < PATIENCE_S:
            replicas = self.team.replicas
            replica = replicas[next(self._turns) % len(replicas)]
            try:
                response = await self.http.request(method, f"{replica.url}{path}", **request)
            except httpx2.HTTPError:
                self.counts["retried"] += 1
                await asyncio.sleep(_AGAIN_S)
            else:
                return response
        return response


def _request(name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments, "_meta": META}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def _headers(body: Mapping[str, Any]) -> dict[str, str]:
    return {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": body["params"]["name"],
    }


def jobs_of(plan: Plan, load: Load) -> list[Job]:
    """Return the requests of *plan*, in an order that is the same each time."""
    callers = itertools.cycle(load.team.callers)
    jobs: list[Job] = [
        partial(load.search, caller, number)
        for number, caller in zip(range(plan.searches), callers, strict=False)
    ]
    jobs += [
        partial(load.call, caller, number)
        for number, caller in zip(range(plan.calls), callers, strict=False)
    ]
    random.Random(1).shuffle(jobs)
    for at in range(0, len(jobs), _WRITE_EVERY):
        jobs[at:at] = [load.write, load.intrude]
    return jobs


async def run_with_faults(plan: Plan, load: Load, store: PostgresServer) -> None:
    """Do all that *plan* says, with a fault after each of as many equal parts.

    The next fault waits until the one before is over; the last part goes on until that is so.
    """
    faults: list[Job] = [partial(_restart, load, number) for number in range(plan.kills)]
    faults += [partial(_take_away, store, plan.outage_s)] * plan.outages
    random.Random(2).shuffle(faults)
    jobs = iter(jobs_of(plan, load))
    parts = len(faults) + 1
    size = (plan.searches + plan.calls) // parts
    for fault in faults:
        broken = asyncio.create_task(fault())
        await _work(itertools.islice(jobs, size))
        await broken
    await _work(jobs)


async def _work(jobs: Iterator[Job]) -> None:
    """Do *jobs*, so many at once."""

    async def worker() -> None:
        for job in jobs:
            await job()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(WORKERS):
            tasks.create_task(worker())


async def _restart(load: Load, number: int) -> None:
    replica = load.team.replicas[number % len(load.team.replicas)]
    await asyncio.to_thread(replica.kill)
    load.counts["kills"] += 1
    await replica.start()


async def _take_away(store: PostgresServer, seconds: float) -> None:
    await asyncio.to_thread(store.stop)
    await asyncio.sleep(seconds)
    await asyncio.to_thread(store.start)


async def timed(load: Load, rate: float, seconds: float) -> Mapping[str, float]:
    """Search at a fixed rate for so long, whether answered or not, and return how long it took."""
    load.latencies_ms.clear()
    callers, began = itertools.cycle(load.team.callers), time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, int(rate * seconds) + 1):
            await asyncio.sleep(began + number / rate - time.perf_counter())
            # None of these is fresh.
            asked = number * _FRESH_EVERY + 1
            tasks.create_task(load.search(next(callers), asked))
    return {
        f"p{at}_ms": round(float(np.percentile(load.latencies_ms, at)), 1) for at in (50, 95, 99)
    }


async def soak(load: Load, plan: Plan) -> None:
    """Search at the rate of *plan* for as long as it says, and note the memory of each replica."""
    for _ in range(_SAMPLES):
        await timed(load, plan.rate, max(plan.soak_min * 60 / _SAMPLES, 1 / plan.rate))
        for replica in load.team.replicas:
            replica.note_memory()


async def measure(plan: Plan) -> Mapping[str, object]:
    """Run *plan*, and return the figures."""
    with tempfile.TemporaryDirectory() as folder, running_server() as store:
        running = team(
            Path(folder),
            store.url,
            replicas=plan.replicas,
            callers=plan.callers,
            strategy=plan.strategy,
        )
        limits = httpx2.Limits(max_connections=4 * WORKERS)
        async with (
            running as installation,
            httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S, limits=limits) as http,
        ):
            return await measure_team(plan, Load(team=installation, http=http), store)


async def measure_team(plan: Plan, load: Load, store: PostgresServer) -> Mapping[str, object]:
    """Run *plan* on an installation that is there."""
    await run_with_faults(plan, load, store)
    faulty = round(float(np.percentile(load.latencies_ms, 95)), 1)
    lost_writes = await load.count_lost_writes()
    counts = Counter(load.counts)
    shared_ms = [await load.share(each) for _ in range(plan.shares) for each in load.team.replicas]
    quick = await timed(load, plan.rate, plan.timed_s)
    await soak(load, plan)
    names = ("searches", "calls", "kills", "trespasses", "refused_writes", "retried")
    return {
        "replicas": plan.replicas,
        "callers": plan.callers,
        **{name: counts[name] for name in names},
        "outages": plan.outages,
        "writes": len(load.acknowledged),
        "noted_calls": _noted_calls(store),
        **{name: load.counts[name] for name in ("lost", "cross_talk", "unauthorized")},
        "lost_writes": lost_writes,
        **quick,
        "p95_with_faults_ms": faulty,
        "slowest_share_ms": round(max(shared_ms), 1),
        # What is made once is made after a third.
        "memory_mb": [
            [each.memory_mb[len(each.memory_mb) // 3], each.memory_mb[-1]]
            for each in load.team.replicas
        ],
    }


def _noted_calls(store: PostgresServer) -> int:
    with psycopg.connect(store.url) as connection:
        row = connection.execute("SELECT count(*) FROM gateway.calls").fetchone()
    return int(row[0]) if row else 0


def main(
    *,
    replicas: Annotated[int, typer.Option(help="Processes of the gateway.")] = Plan.replicas,
    callers: Annotated[int, typer.Option(help="Tokens, each of one desk.")] = Plan.callers,
    searches: Annotated[int, typer.Option(help="While there are faults.")] = Plan.searches,
    calls: Annotated[int, typer.Option(help="While there are faults.")] = Plan.calls,
    kills: Annotated[int, typer.Option(help="Replicas killed and started again.")] = Plan.kills,
    outages: Annotated[int, typer.Option(help="Times that the database stops.")] = Plan.outages,
    outage_s: Annotated[float, typer.Option(help="How long.")] = Plan.outage_s,
    rate: Annotated[float, typer.Option(help="Searches a second when timed.")] = Plan.rate,
    timed_s: Annotated[float, typer.Option(help="How long they are timed.")] = Plan.timed_s,
    soak_min: Annotated[float, typer.Option("--soak", help="Minutes of more searches.")] = 0.0,
    strategy: Annotated[str, typer.Option(help="How replicas search.")] = Plan.strategy,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure, and print the figures."""
    plan = Plan(
        replicas=replicas,
        callers=callers,
        searches=searches,
        calls=calls,
        kills=kills,
        outages=outages,
        outage_s=outage_s,
        rate=rate,
        timed_s=timed_s,
        soak_min=soak_min,
        strategy=strategy,
    )
    print_figures(asyncio.run(measure(plan)), as_json=as_json)


if __name__ == "__main__":
    typer.run(main)
