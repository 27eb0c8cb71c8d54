"""Killed replicas under load, with a database that goes away, and their shared state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psycopg
import pytest

from benchmarks.team import Load, Plan, measure_team
from benchmarks.team_replicas import Team, team
from gateway.catalog import Entry
from gateway.gateway import Gateway
from gateway.options import Options, UpstreamOptions
from gateway.plugins.postgres import PostgresStore
from gateway.plugins.usage import call_log_of
from tests.conftest import OpenGateway
from tests.postgres_server import PostgresServer

PATIENCE_S = 120
SHORT = Plan(
    replicas=2,
    callers=20,
    searches=100,
    calls=20,
    kills=1,
    outages=1,
    outage_s=1,
    shares=1,
    timed_s=0.01,
)
LEDGER = "desk/open_ledger"


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """A database server without the schema that commands use."""
    drop = "DROP SCHEMA IF EXISTS gateway CASCADE"
    for number in range(2):
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(drop)
        if number == 0:
            yield postgres


@pytest.fixture
def person(open_gateway: OpenGateway, database: PostgresServer, tmp_path: Path) -> Gateway:
    """A gateway of this process, in which a person approves and looks at usage."""
    upstream = UpstreamOptions(on_change="block", first_listing_s=PATIENCE_S)
    options = Options(
        upstream=upstream, installation="team", catalog_store_path=tmp_path / "catalog.sqlite3"
    )
    return open_gateway(store=PostgresStore(database.url), vector_store=None, options=options)


async def test_three_processes_lose_nothing_and_share_their_state(
    database: PostgresServer, person: Gateway, tmp_path: Path
) -> None:
    """One process is killed by SIGKILL and restarted. The database is away for a second."""
    running = team(tmp_path, database.url, replicas=SHORT.replicas, callers=SHORT.callers)
    async with (
        running as installation,
        httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http,
        asyncio.timeout(PATIENCE_S),
    ):
        figures = await measure_team(SHORT, Load(team=installation, http=http), database)
        person.add_config(tmp_path / "0" / "mcp.json")
        await share_all(person, installation, http)

    noughts = ("lost", "lost_writes", "cross_talk", "unauthorized")
    assert dict.fromkeys(noughts, 0) == {name: figures[name] for name in noughts}, figures
    counts = ("searches", "calls", "kills", "outages", "trespasses")
    assert [100, 20, 1, 1, 1] == [figures[name] for name in counts]
    assert figures["writes"]


@dataclass(frozen=True, slots=True)
class Sharing:
    """Changes through one replica, and checks through another until it shows them."""

    person: Gateway
    team: Team
    http: httpx2.AsyncClient

    async def until(self, key: str, shows: Callable[[str], bool]) -> None:
        """Read an entity from the last replica until *shows* accepts it."""
        while not shows(await self._view(key)):
            pass

    async def _view(self, key: str) -> str:
        """Return the last replica's view of an entity; empty if it is unknown."""
        url = f"{self.team.replicas[-1].url}/api/entities/{key}"
        response = await self.http.get(url, headers=self.team.keeper)
        return response.text if response.is_success else ""

    async def send(self, method: str, path: str, body: object = None) -> None:
        """Send a change through the first replica."""
        url = f"{self.team.replicas[0].url}/api/{path}"
        response = await self.http.request(method, url, json=body, headers=self.team.keeper)
        response.raise_for_status()

    def calls(self) -> int:
        """Return the number of calls of the tool as seen by the person."""
        tallies = call_log_of(self.person.store).tallies()
        return sum(tally.succeeded for tally in tallies if tally.tool == LEDGER)


async def share_all(person: Gateway, installation: Team, http: httpx2.AsyncClient) -> None:
    """Change entries, rules, pins, approvals and usage, one after the other."""
    sharing = Sharing(person, installation, http)
    words = "jot it down in the big book"
    ledger = next(tool for tool in installation.tools if tool.name == "open_ledger")

    await person.catalog.put(Entry(kind="agent", name="planner"))
    await sharing.until("agent:catalog/planner", bool)
    await sharing.send("PATCH", f"entities/{LEDGER}", {"examples": [words]})
    await sharing.until(LEDGER, lambda text: words in text)
    ledger.description = "Write a note into another ledger."
    await sharing.send("POST", "index/rebuild")
    await sharing.until(LEDGER, lambda text: not text)
    await person.approve(LEDGER)
    await sharing.until(LEDGER, lambda text: "another ledger" in text)

    before, load = sharing.calls(), Load(team=installation, http=http)
    told = {"name": "open_ledger", "arguments": {"nonce": "word"}}
    await load.use(installation.callers[0], "call_tool", told)
    while sharing.calls() == before:
        pass
