"""OAuth tokens shared by several processes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Event

import httpx2
import psycopg
import pytest
from mcp.server.auth.provider import RefreshToken
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from gateway.errors import StoreError, UpstreamError
from gateway.mcp import HttpServer, OAuth, TokenStore
from gateway.mcp.bearer_auth import BearerAuth, RefreshError, locked
from gateway.mcp.oauth import SignInRecord
from gateway.options import Options
from gateway.plugins.postgres import PostgresStore
from gateway.runtime.background_loop import Bridge
from gateway.storage import FileTokens, open_tokens, with_token_store
from tests.core.mcp.conftest import PATIENCE_S
from tests.core.mcp.servers.authority import Authority
from tests.core.mcp.servers.delegated import Delegation
from tests.core.mcp.sign_in_place import Place, signing_place
from tests.postgres_server import PostgresServer

NEW, OLD = "n" * 32, "o" * 32


@dataclass
class PausingAuthority(Authority):
    """Authorization server that pauses before it answers a refresh."""

    pauses: bool = False
    has_come: Event = field(default_factory=Event)
    may_answer: Event = field(default_factory=Event)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        new_token = await super().exchange_refresh_token(client, refresh_token, scopes)
        if self.pauses:
            self.has_come.set()
            await asyncio.to_thread(self.may_answer.wait, PATIENCE_S)
        return new_token


@pytest.fixture
def authority() -> PausingAuthority:
    return PausingAuthority()


@pytest.fixture
async def place(
    bridge: Bridge, authority: Authority, record: Path, tmp_path: Path
) -> AsyncIterator[Place]:
    async with signing_place(bridge, authority, record, tmp_path / "srv.json") as found:
        yield found


@pytest.fixture
def stores(postgres: PostgresServer, tmp_path: Path) -> Iterator[list[PostgresStore]]:
    """Return two stores of one schema, as in two processes."""
    schema = f"bearer_{tmp_path.name}"
    stores = [PostgresStore(postgres.url, schema=schema) for _ in range(2)]
    yield stores
    for store in stores:
        store.close()


def with_store(place: Place, store: PostgresStore, key: str = NEW) -> Place:
    """Return *place* with its tokens in *store*, encrypted under *key*."""
    plain = HttpServer(place.url, auth=OAuth())
    auth = with_token_store("srv", plain, open_tokens(Options(host_key=key), store)).auth
    assert isinstance(auth, OAuth)
    assert auth.tokens is not None
    return replace(place, tokens=auth.tokens)


async def test_only_one_of_two_processes_refreshes_expired_tokens(
    place: Place, authority: PausingAuthority, stores: list[PostgresStore]
) -> None:
    """The other process waits and uses the new tokens, even if the caller of the first one is
    cancelled. A refresh token must be used once and never be lost.
    """
    places = [with_store(place, store) for store in stores]
    await places[0].sign_in()
    authority.tokens.clear()
    authority.pauses = True
    async with places[0].source() as one, places[1].source() as other:
        cancelled = asyncio.create_task(one.call("echo", {"text": "1"}, tool_id="t"))
        assert await asyncio.to_thread(authority.has_come.wait, PATIENCE_S)
        waiting = asyncio.create_task(other.call("echo", {"text": "2"}, tool_id="t"))
        cancelled.cancel()
        authority.may_answer.set()
        answers = [await waiting, await one.call("echo", {"text": "3"}, tool_id="t")]

    assert ["2", "3"] == [answer.text for answer in answers]
    assert 1 == authority.seen.count("refreshed")


async def test_sign_in_encrypted_under_an_unknown_key_counts_as_signed_out(
    place: Place, stores: list[PostgresStore]
) -> None:
    """The reason is reported. A key can be rotated if the old one is still given."""
    await with_store(place, stores[0], OLD).sign_in()
    async with with_store(place, stores[1], f"{NEW},{OLD}").source() as rotated:
        listing = await rotated.list_tools()
    async with with_store(place, stores[1]).source() as wrong:
        with pytest.raises(UpstreamError, match="encrypted under another host_key") as raised:
            await wrong.list_tools()

    assert (4, "authorization") == (len(listing.tools), raised.value.kind)
    assert "SECRET" not in str(raised.value)


def test_sign_in_copied_to_the_row_of_another_user_cannot_be_decrypted(
    stores: list[PostgresStore], postgres: PostgresServer, tmp_path: Path
) -> None:
    """Write access to the database must not give access to another user's credentials."""
    ada, eve = (stores[0].sign_in(user, [NEW.encode()]) for user in ("ada", "eve"))
    ada.write("text")
    path = f'-c search_path="bearer_{tmp_path.name}"'
    with psycopg.connect(postgres.url, options=path) as connection:
        connection.execute("INSERT INTO sign_ins SELECT 'eve', sealed FROM sign_ins")
        rows = connection.execute("SELECT sealed FROM sign_ins").fetchall()

    assert ("text", None) == (ada.read(), eve.read())
    assert 2 == len(rows)
    assert not any(b"text" in sealed for (sealed,) in rows)


async def test_last_tokens_are_used_while_the_store_is_down(
    place: Place, postgres: PostgresServer, stores: list[PostgresStore]
) -> None:
    stored = with_store(place, stores[0])
    await stored.sign_in()
    async with stored.source() as source:
        await source.list_tools()
        postgres.stop()
        try:
            answer = await source.call("echo", {"text": "hi"}, tool_id="t")
        finally:
            postgres.start()

    assert "hi" == answer.text


async def test_connection_uses_the_tokens_of_a_single_sign_in(tmp_path: Path) -> None:
    """Refreshed tokens of the sign-in are used. A new sign-in is not, because it may belong to
    another user.
    """
    delegation, tokens = Delegation(), FileTokens(tmp_path / "tokens")
    auth = BearerAuth(
        "https://srv.example", OAuth(tokens=tokens), httpx2.AsyncClient, timeout_s=PATIENCE_S
    )

    async def sent_header(record: SignInRecord) -> str:
        tokens.write(record.model_dump_json(exclude_none=True))
        request = await anext(auth.async_auth_flow(httpx2.Request("GET", "https://srv.example")))
        return request.headers.get("Authorization", "")

    first, second = (SignInRecord.model_validate_json(delegation.record("ada")) for _ in range(2))
    refreshed = first.with_tokens(delegation.give("ada"))

    sent_headers = [
        await sent_header(record_of_sign_in)
        for record_of_sign_in in (first, refreshed, second, SignInRecord(), first)
    ]
    expected = (first.access_token, refreshed.access_token, "", "", first.access_token)
    assert [
        record_of_sign_in and f"Bearer {record_of_sign_in}" for record_of_sign_in in expected
    ] == sent_headers


class LockedElsewhere(FileTokens):
    """Tokens whose lock is held too long by another process."""

    def lock(self) -> AbstractContextManager[None]:  # type: ignore[override]  # it gives none
        raise StoreError("busy")


@pytest.mark.parametrize(
    ("kind", "reason"), [(FileTokens, "TimeoutError"), (LockedElsewhere, "StoreError")]
)
async def test_token_refresh_times_out(tmp_path: Path, kind: type[FileTokens], reason: str) -> None:
    """The authorization server may not answer, or the lock may not be free."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        delegation = Delegation(port=silent.getsockname()[1], life_s=0)
        make_client = partial(httpx2.AsyncClient, trust_env=False)
        tokens = kind(tmp_path / "tokens")
        tokens.write(delegation.record("ada"))
        auth = BearerAuth("https://srv.example", OAuth(tokens=tokens), make_client, timeout_s=0.05)

        with pytest.raises(RefreshError, match=reason):
            await anext(auth.async_auth_flow(httpx2.Request("GET", "https://srv.example")))


async def test_many_concurrent_token_refreshes_do_not_run_out_of_threads_or_connections(
    stores: list[PostgresStore],
) -> None:
    """The holder of a lock needs an additional thread and connection."""
    users = [stores[0].sign_in(f"user{number}", [NEW.encode()]) for number in range(20)]

    async def refresh(tokens: TokenStore) -> str | None:
        async with locked(tokens):
            await asyncio.to_thread(tokens.write, "new")
        return await asyncio.to_thread(tokens.read)

    assert {"new"} == {*await asyncio.gather(*map(refresh, users))}


def test_sign_ins_stay_in_files_without_a_host_key(
    stores: list[PostgresStore], tmp_path: Path
) -> None:
    options = Options(catalog_store_path=tmp_path / "catalog.sqlite3")

    open_tokens(options, stores[0])("srv-1", "file").write("text")
    open_tokens(replace(options, host_key=NEW), stores[0])("srv-2", "file").write("text")

    assert ["srv-1.json"] == [item.name for item in (tmp_path / "tokens").iterdir()]
