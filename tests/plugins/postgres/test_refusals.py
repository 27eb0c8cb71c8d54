"""Texts that an embedder refuses, in a shared store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from openai import OpenAI

from gateway import OpenAIEmbedder
from gateway.embed import embed_documents
from gateway.plugins.postgres import PostgresDatabase, PostgresVectorStore
from gateway.runtime.telemetry import Telemetry
from gateway.testing import ScriptedModel, script
from tests.core.embed.test_refusals import TEXTS
from tests.postgres_server import PostgresServer


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(script()) as model:
        yield model


@pytest.fixture
def embedder(model: ScriptedModel) -> Iterator[OpenAIEmbedder]:
    with OpenAI(base_url=model.base_url, api_key="test", max_retries=0) as client:
        yield OpenAIEmbedder(client, model="m")


async def test_text_refused_for_one_process_does_not_block_another_process(
    model: ScriptedModel, embedder: OpenAIEmbedder, postgres: PostgresServer, tmp_path: Path
) -> None:
    """The claimed vector never arrives in the store, so the waiting process has to request it
    itself.
    """
    model.refuse(TEXTS[3])
    stores = [PostgresVectorStore(PostgresDatabase(postgres.url, tmp_path.name)) for _ in range(2)]
    works = [
        embed_documents(TEXTS[:8], embedder=embedder, store=store, telemetry=Telemetry())
        for store in stores
    ]

    results = await asyncio.gather(*works)

    for store in stores:
        store.close()
    assert [7, 7] == [len(result.rows) for result in results]
    assert [[TEXTS[3]]] * 2 == [list(result.refused) for result in results]
