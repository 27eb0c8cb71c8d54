"""Catalogs with several kinds of entities, and clients of the API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx2
import pytest

from gateway.catalog import Entry
from gateway.gateway import Gateway
from gateway.testing import HashingEmbedder
from gateway.types import ALL_SCOPES, Hints
from tests.apps.serve.api.client import open_client
from tests.conftest import OpenGateway, with_own_store
from tests.fakes import Shelf, tool

Mixed = Callable[..., Gateway]

ENTRIES = (
    Entry(
        kind="agent",
        name="courier",
        title="Courier",
        description="Writes and sends e-mail for you.",
        hints=Hints(tags=("Mail", "prod")),
        metadata={"path": "/agents/courier-one", "config": {"region": "eu", "size": 3}},
    ),
    Entry(
        kind="agent",
        name="Rail Planner",
        description="Plans journeys by train.",
        metadata={"url": "https://agents.example/rail", "skills": [{"id": "plan"}]},
    ),
    Entry(
        kind="skill",
        name="letter-writing",
        description="How to write a good letter or an e-mail.",
        metadata={"author": "Ada", "version": "1.2", "skill_md_url": "https://a.example/SKILL.md"},
    ),
    Entry(
        kind="agent",
        name="drafted",
        description="An agent for e-mail that is not ready.",
        status="draft",
    ),
    Entry(
        kind="agent", name="retired", description="An agent for e-mail of old.", status="deprecated"
    ),
    Entry(
        kind="agent",
        name="asleep",
        description="An agent for e-mail that is switched off.",
        hints=Hints(enabled=False),
    ),
    Entry(
        kind="agent",
        name="accountant",
        description="Sends e-mail to debtors.",
        scopes=frozenset({"billing"}),
    ),
    Entry(
        kind="recipe",
        name="soup",
        status="beta",
        description="Cook a soup of onions.",
        hints=Hints(tags=("kitchen",)),
    ),
)


@pytest.fixture
def open_gateway(open_gateway: OpenGateway, tmp_path: Path) -> OpenGateway:
    """Create gateways with the test's own catalog store, because requests add entries."""
    return with_own_store(open_gateway, tmp_path)


@pytest.fixture
def create_mail_gateway(open_gateway: OpenGateway) -> Mixed:
    """Create gateways with a server of three tools."""

    def build(**options: object) -> Gateway:
        options.setdefault("strategy", "auto")
        options.setdefault("embedder", HashingEmbedder())
        gateway = open_gateway(**options)
        shelf = Shelf(
            (
                tool("send_email", "Send an e-mail to somebody."),
                tool("read_email", "Read the newest e-mail."),
                tool("play_music", "Play a song."),
            )
        )
        gateway.add_server("mail", server=shelf.server)
        return gateway

    return build


@pytest.fixture
async def full_gateway(create_mail_gateway: Mixed) -> Gateway:
    gateway = create_mail_gateway()
    await gateway.catalog.put(*ENTRIES)
    return gateway


@pytest.fixture
async def client(full_gateway: Gateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with open_client(full_gateway) as client:
        yield client


@pytest.fixture
async def writer_client(full_gateway: Gateway) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that sees all entities, so it may add to every namespace."""
    async with open_client(full_gateway, scopes=(ALL_SCOPES,)) as client:
        yield client


@pytest.fixture
async def empty_client(open_gateway: OpenGateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with open_client(open_gateway()) as client:
        yield client
