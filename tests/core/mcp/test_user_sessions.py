"""Calls with the credentials of each user, against a server that records the users."""

from __future__ import annotations

import asyncio
import json
import pickle
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import jwt
import pytest

from gateway.errors import (
    InvalidRequestError,
    SignInRequiredError,
    StoreError,
    UpstreamError,
    UpstreamTimeoutError,
    UpstreamUnavailableError,
)
from gateway.mcp import HttpServer, OAuth, TokenExchange
from gateway.mcp.token_exchange import grant_of
from gateway.mcp.user_sessions import user_key
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.sources import McpSource
from gateway.storage import FileTokens
from gateway.types import Caller, InvokeResult, Secret, WatchCallbacks, acting_for
from tests.core.mcp.conftest import PATIENCE_S, PATIENT, placed, served, until
from tests.core.mcp.servers.delegated import Delegation

pytestmark = pytest.mark.usefixtures("no_secrets_in_logs")

USERS = 50
SERVICE = {"Authorization": "Bearer service-SECRET"}


@dataclass
class Place:
    """A server with the credentials of each user, its token endpoint, and the folder of sign-in
    records.
    """

    bridge: Bridge
    delegation: Delegation
    url: str
    folder: Path

    def tokens(self, key: str) -> FileTokens:
        return FileTokens(self.folder / key)

    def sign_in(self, user: str) -> None:
        """Store tokens of *user* in the way that a sign-in stores them."""
        self.tokens(user_key(caller(user))).write(self.delegation.record(user))

    def sign_out(self, user: str) -> None:
        self.tokens(user_key(caller(user))).forget()

    @asynccontextmanager
    async def source(
        self, auth: OAuth | TokenExchange | None = None, options: UpstreamOptions = PATIENT
    ) -> AsyncIterator[McpSource]:
        target_auth = OAuth(per_user=True, user_tokens=self.tokens) if auth is None else auth
        target = HttpServer(self.url, SERVICE, target_auth)
        source = McpSource(
            "srv", target, bridge=self.bridge, options=options, public_url="https://gw.example"
        )
        try:
            yield source
        finally:
            await source.close()

    def exchange(self) -> TokenExchange:
        return TokenExchange(
            token_url=f"http://127.0.0.1:{self.delegation.port}/token",
            audience="https://srv.example",
            scope="read",
            client_id="gateway",
            client_secret="client-SECRET",
        )


@pytest.fixture
async def place(bridge: Bridge, record: Path, tmp_path: Path) -> AsyncIterator[Place]:
    """Running server that needs the credentials of each user, and its token endpoint."""
    delegation = Delegation()
    async with (
        placed(bridge, delegation.endpoint),
        served(bridge, delegation.guarded(record)) as port,
    ):
        yield Place(bridge, delegation, f"http://127.0.0.1:{port}/mcp", tmp_path / "tokens")


def caller(user: str, *, tenant: str = "acme") -> Caller:
    return Caller(user=user, tenant=tenant, token=Secret(f"subject-SECRET-{user}"))


async def call(source: McpSource, user: str, text: str) -> InvokeResult:
    with acting_for(caller(user)):
        return await source.call("echo", {"text": text}, tool_id="t")


@dataclass
class UserActions:
    """Random calls, sign-ins and token changes of one user. Each answered call has its own text."""

    place: Place
    source: McpSource
    user: str
    rng: random.Random
    uses_sign_in: bool
    done: list[str] = field(default_factory=list)

    async def run(self) -> None:
        steps: list[Callable[[str], Awaitable[None]]] = [
            self.work,
            self.work,
            self.cancel,
            self.expire,
        ]
        steps += [self.leave] if self.uses_sign_in else []
        for number in range(3 if self.uses_sign_in else 2):
            step = self.rng.choice(steps)
            await step(f"{self.user}/{number}")

    async def work(self, text: str) -> None:
        answer = await call(self.source, self.user, text)
        assert text == answer.text
        self.done.append(text)

    async def cancel(self, text: str) -> None:
        task = asyncio.create_task(call(self.source, self.user, text))
        for _ in range(self.rng.randrange(6)):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def expire(self, text: str) -> None:
        self.place.delegation.revoke(self.user)
        await self.work(text)

    async def leave(self, text: str) -> None:
        self.place.sign_out(self.user)
        with pytest.raises(SignInRequiredError):
            await call(self.source, self.user, text)
        self.place.sign_in(self.user)
        await self.work(text)


@pytest.mark.parametrize(
    ("seed", "uses_sign_in"), [(1, True), (2, False)], ids=["sign-in", "exchange"]
)
async def test_token_of_a_user_is_never_sent_for_another_user(
    place: Place, seed: int, uses_sign_in: bool
) -> None:
    """Fifty users share thirty sessions. Calls are cancelled, and tokens expire."""
    rng = random.Random(seed)
    users = [f"user{number}" for number in range(USERS)]
    for user in users if uses_sign_in else ():
        place.sign_in(user)
    options = replace(PATIENT, max_user_sessions=30, call_timeout_s=120)
    auth = None if uses_sign_in else place.exchange()
    async with place.source(auth, options) as source:
        gate = asyncio.Semaphore(20)
        plans = [UserActions(place, source, user, rng, uses_sign_in) for user in users]

        async def begin(plan: UserActions) -> None:
            async with gate:
                await plan.run()

        await asyncio.gather(*map(begin, plans))

    received = place.delegation.calls
    assert [] == [(text, user) for text, user in received if text.partition("/")[0] != user]
    assert {text for plan in plans for text in plan.done} <= {text for text, _ in received}
    assert {"refresh_token" if uses_sign_in else "token-exchange"} == {*place.delegation.requests}


async def test_own_credential_of_the_gateway_is_used_only_to_list_tools(place: Place) -> None:
    """A call without a user or a sign-in is not sent. Its error contains the URL of the sign-in."""
    async with place.source() as source:
        listing = await source.list_tools()
        with pytest.raises(UpstreamError, match="this caller has no name"):
            await call(source, "", "nobody/1")
        with pytest.raises(UpstreamError, match="this caller has no name"):
            await source.call("echo", {"text": "nobody/2"}, tool_id="t")
        with pytest.raises(SignInRequiredError) as raised:
            await call(source, "ada", "ada/1")
        watched = WatchCallbacks(on_start=lambda: None, on_change=lambda: None)
        with pytest.raises(InvalidRequestError, match="does not report changes"):
            await source.watch("file:///a", watched)

    assert (4, []) == (len(listing.tools), place.delegation.calls)
    assert "https://gw.example/sign-in/srv" == raised.value.address
    assert "sign in at https://gw.example/sign-in/srv and call again" in str(raised.value)


async def test_refused_tokens_require_a_new_sign_in(place: Place) -> None:
    """Users with the same name in different tenants are different users."""
    place.sign_in("ada")
    async with place.source() as source:
        await call(source, "ada", "ada/1")
        place.delegation.revoke("ada")
        place.delegation.refreshes.clear()
        with pytest.raises(SignInRequiredError) as raised:
            await call(source, "ada", "ada/2")
        with pytest.raises(SignInRequiredError), acting_for(caller("ada", tenant="other")):
            await source.call("echo", {"text": "other/1"}, tool_id="t")
        healthy = source.healthy

    assert ([("ada/1", "ada")], True) == (place.delegation.calls, healthy)
    assert raised.value.previous


async def test_user_keeps_the_session_while_the_token_store_is_down(place: Place) -> None:
    """The call of a user without a session raises the error of the store."""
    place.sign_in("ada")
    down = Event()
    oauth = OAuth(per_user=True, user_tokens=lambda key: DownTokens(place.tokens(key), down))
    async with place.source(oauth) as source:
        await call(source, "ada", "ada/1")
        down.set()
        await call(source, "ada", "ada/2")
        with pytest.raises(StoreError):
            await call(source, "eve", "eve/1")

    assert [("ada/1", "ada"), ("ada/2", "ada")] == place.delegation.calls


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "at another replica"])
async def test_signed_out_user_stays_signed_out_while_the_token_store_is_down(
    place: Place, *, elsewhere: bool
) -> None:
    place.sign_in("ada")
    down = Event()
    oauth = OAuth(per_user=True, user_tokens=lambda key: DownTokens(place.tokens(key), down))
    async with place.source(oauth) as source:
        users = source.users
        assert users is not None
        await call(source, "ada", "ada/1")
        if elsewhere:
            place.sign_out("ada")
            with pytest.raises(SignInRequiredError):
                await call(source, "ada", "ada/2")
        else:
            await place.bridge.run(lambda: users.sign_out(caller("ada")))
        down.set()
        with pytest.raises(StoreError):
            await call(source, "ada", "ada/3")

    assert [("ada/1", "ada")] == place.delegation.calls


@pytest.mark.parametrize("uses_sign_in", [False, True], ids=["out", "in anew"])
async def test_token_refresh_does_not_undo_a_sign_out_or_a_new_sign_in(
    place: Place, *, uses_sign_in: bool
) -> None:
    """The refreshed tokens of the old sign-in must not replace the new state."""
    delegation, received, may_answer = place.delegation, Event(), Event()

    async def pause() -> None:
        received.set()
        await asyncio.to_thread(may_answer.wait, PATIENCE_S)

    place.sign_in("ada")
    delegation.revoke("ada")
    delegation.before_answer = pause
    async with place.source() as source:
        first = asyncio.create_task(call(source, "ada", "ada/1"))
        assert await asyncio.to_thread(received.wait, PATIENCE_S)
        place.sign_out("ada")
        if uses_sign_in:
            place.tokens(user_key(caller("ada"))).write(delegation.record("countess"))
        may_answer.set()
        with suppress(UpstreamError):
            await first
        delegation.calls.clear()
        with nullcontext() if uses_sign_in else pytest.raises(SignInRequiredError):
            await call(source, "ada", "ada/2")

    assert ([("ada/2", "countess")] if uses_sign_in else []) == delegation.calls


async def test_refreshed_tokens_are_stored_again_after_a_failed_write(place: Place) -> None:
    """The old refresh token is already invalid. If the new tokens were lost, the user would have to
    sign in again.
    """
    place.sign_in("ada")
    failing = Event()
    oauth = OAuth(
        per_user=True, user_tokens=lambda key: DownTokens(place.tokens(key), failing=failing)
    )
    async with place.source(oauth) as source:
        await call(source, "ada", "ada/1")
        place.delegation.revoke("ada")
        failing.set()
        await call(source, "ada", "ada/2")

    assert not failing.is_set()
    assert [("ada/1", "ada"), ("ada/2", "ada")] == place.delegation.calls


@dataclass
class DownTokens:
    """A token store that cannot be read while it is down."""

    inner: FileTokens
    down: Event = field(default_factory=Event)
    failing: Event = field(default_factory=Event)
    """If set, the next write fails."""
    fault: str = ""

    def read(self) -> str | None:
        if self.down.is_set():
            raise StoreError("down")
        return self.inner.read()

    def write(self, text: str) -> None:
        if self.failing.is_set():
            self.failing.clear()
            raise StoreError("failing")
        self.inner.write(text)

    def forget(self) -> None:
        self.inner.forget()

    def lock(self) -> AbstractContextManager[None]:
        return nullcontext()


async def test_token_is_exchanged_once_until_it_expires_or_is_refused(place: Place) -> None:
    """The user's own token is sent only to the token endpoint."""
    exchanges: list[int] = []
    async with place.source(place.exchange()) as source:

        async def work(text: str, scopes: frozenset[str] = frozenset()) -> None:
            with acting_for(replace(caller("ada"), scopes=scopes)):
                await source.call("echo", {"text": text}, tool_id="t")
            exchanges.append(place.delegation.requests["token-exchange"])

        await work("ada/1")
        await work("ada/2")
        place.delegation.revoke("ada")
        await work("ada/3")
        await work("ada/4", frozenset({"more"}))
        place.delegation.life_s = 0
        place.delegation.revoke("ada")
        await work("ada/5")
        await work("ada/6")

    assert [1, 1, 2, 3, 4] == exchanges[:5]
    assert exchanges[5] > exchanges[4]
    form = place.delegation.forms[0]
    assert ("https://srv.example", "read", "subject-SECRET-ada") == (
        form["audience"],
        form["scope"],
        form["subject_token"],
    )
    assert "client_id" not in form
    assert place.delegation.secrets[0].startswith("Basic ")


async def test_token_with_a_narrower_scope_gets_its_own_exchange(place: Place) -> None:
    """A renewed token with the same scope uses the existing exchanged token."""
    place.delegation.subject = lambda token: json.dumps(
        jwt.decode(token, options={"verify_signature": False})["scope"]
    )

    async def work(source: McpSource, text: str, **claims: object) -> None:
        token = jwt.encode({"sub": "ada", **claims}, "k" * 32)
        with acting_for(Caller(user="ada", token=Secret(token))):
            await source.call("echo", {"text": text}, tool_id="t")

    async with place.source(place.exchange()) as source:
        await work(source, "1", scope="read write", jti="a", exp=1)
        await work(source, "2", scope="read", jti="b", exp=1)
        await work(source, "3", scope="read write", jti="c", exp=2)

    wide = '"read write"'
    assert [("1", wide), ("2", '"read"'), ("3", wide)] == place.delegation.calls
    assert 2 == place.delegation.requests["token-exchange"]


@pytest.mark.parametrize("text", ["opaque", "a.b", "a.!.c", "a.W10.c", "ä.ö.ü", "\ud800"])
def test_token_that_is_not_a_jwt_is_digested_as_a_whole(text: str) -> None:
    assert grant_of(Secret(text)) == grant_of(Secret(text))
    assert grant_of(Secret(text)) != grant_of(Secret(f"{text}2"))


async def test_error_of_a_refused_token_exchange_contains_only_the_error_code(place: Place) -> None:
    """Other texts of the endpoint are not trusted."""
    async with place.source(place.exchange()) as source:
        with (
            pytest.raises(
                UpstreamError, match=r"refused to exchange your token \(invalid_grant\)$"
            ),
            acting_for(Caller(user="eve", token=Secret("other-SECRET-eve"))),
        ):
            await source.call("echo", {"text": "eve/1"}, tool_id="t")
        needed = "has no token of the identity provider"
        with pytest.raises(UpstreamError, match=needed), acting_for(Caller(user="eve")):
            await source.call("echo", {"text": "eve/2"}, tool_id="t")

    assert [] == place.delegation.calls


async def test_token_exchange_at_a_silent_endpoint_times_out(place: Place) -> None:
    ended = Event()
    place.delegation.before_answer = lambda: asyncio.to_thread(ended.wait, PATIENCE_S)
    options = replace(PATIENT, connect_timeout_s=0.2)
    async with place.source(place.exchange(), options) as source:
        with pytest.raises(UpstreamTimeoutError, match=r"did not answer within 0\.2 s"):
            await call(source, "ada", "ada/1")
        ended.set()


async def test_unavailable_authorization_server_does_not_cause_a_sign_in(place: Place) -> None:
    """Signing in again would not help, because the authorization server is needed for it."""
    stored = place.tokens(user_key(caller("ada")))
    record = place.delegation.record("ada")
    place.delegation.revoke("ada")
    stored.write(record.replace(f":{place.delegation.port}/token", ":9/token"))
    async with place.source() as source:
        with pytest.raises(UpstreamError, match=r"cannot be refreshed \(ConnectError\)") as raised:
            await call(source, "ada", "ada/1")
        stored.write(record)
        await call(source, "ada", "ada/2")

    assert not isinstance(raised.value, SignInRequiredError)


async def test_number_of_user_sessions_is_limited(place: Place) -> None:
    """The least recently used session is closed. If all are in use, the call fails."""
    for user in ("ada", "eve"):
        place.sign_in(user)
    async with place.source(options=replace(PATIENT, max_user_sessions=1)) as source:
        await call(source, "ada", "ada/1")
        await call(source, "eve", "eve/1")
        with acting_for(caller("ada")):
            waiting = asyncio.create_task(source.call("wait", {}, tool_id="t"))
        await until(lambda: ("", "ada") in place.delegation.calls)
        with pytest.raises(UpstreamUnavailableError, match="max_user_sessions"):
            await call(source, "eve", "eve/2")
        waiting.cancel()

    assert ["ada", "eve", "ada"] == [user for _, user in place.delegation.calls]


def test_token_of_a_caller_is_not_printed_or_serialized() -> None:
    """Callers that differ only in their token are equal."""
    ada = caller("ada")

    assert "SECRET" not in repr(ada) + str(ada.token) + f"{ada.token!r}"
    assert ada == replace(ada, token=None)
    with pytest.raises(TypeError):
        pickle.dumps(ada)
    with pytest.raises(TypeError):
        json.dumps(ada.token)
