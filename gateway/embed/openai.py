"""Embeddings from any service that speaks the OpenAI wire format."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
from openai import AsyncAzureOpenAI, AsyncOpenAI, AzureOpenAI, OpenAI
from openai.types import CreateEmbeddingResponse

from gateway.embed.protocol import Embedded, EmbedderInfo, EmbeddingLimits, Role
from gateway.errors import EmbeddingError
from gateway.runtime.library_logs import quiet_libraries
from gateway.runtime.model_endpoint import ModelEndpoint


def endpoint_of(client: OpenAI | AsyncOpenAI, model: str) -> ModelEndpoint:
    """Return what *model* is to telemetry, asked by *client*."""
    is_azure = isinstance(client, AzureOpenAI | AsyncAzureOpenAI)
    provider = "azure.ai.openai" if is_azure else ""
    return ModelEndpoint.at(model, str(client.base_url), provider=provider)


class OpenAIEmbedder:
    """Embeds by an OpenAI-compatible endpoint; retries and time limits are the client's own.

    Args:
        client: Sync or async. A sync client is called in a worker thread. An async one must be
            for the gateway alone, since its connections belong to the gateway's loop.
        model: The service's name for the model.
        dimensions: Ask for shorter vectors, where the model can.
        limits: What one request may hold; the defaults are OpenAI's, other servers allow less.
        query_prefix: Put before a query, for models that were trained with one.
        document_prefix: Put before a document.
    """

    def __init__(
        self,
        client: OpenAI | AsyncOpenAI,
        *,
        model: str,
        dimensions: int | None = None,
        limits: EmbeddingLimits | None = None,
        query_prefix: str = "",
        document_prefix: str = "",
    ) -> None:
        self._client = client
        self._model = model
        self._dimensions = dimensions
        self._prefixes: dict[Role, str] = {"query": query_prefix, "document": document_prefix}
        host = client.base_url.netloc.decode()
        endpoint = endpoint_of(client, model)
        parts = (host, model, str(dimensions or ""), query_prefix, document_prefix)
        self._info = EmbedderInfo(
            model_id="/".join(part for part in parts if part),
            provider=endpoint.provider,
            endpoint=endpoint,
            dimensions=dimensions,
            limits=limits or EmbeddingLimits(),
        )

    @property
    def info(self) -> EmbedderInfo:
        """The model's name and bounds."""
        return self._info

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Embed *texts* in one request, order kept.

        Raises:
            openai.OpenAIError: As the client raises it, after its own retries.
            EmbeddingError: The service answered with other positions than were asked for.
        """
        prefixed = [self._prefixes[role] + text for text in texts]
        answer = await self._request(prefixed)
        rows = sorted(answer.data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(len(texts))):
            raise EmbeddingError(f"{self._model!r} answered {len(rows)} of {len(texts)} texts")
        if len({len(row.embedding) for row in rows}) > 1:
            raise EmbeddingError(f"{self._model!r} gave vectors of different lengths")
        vectors = np.asarray([row.embedding for row in rows], dtype=np.float32)
        # Some servers leave the usage out, whatever the type says.
        usage = getattr(answer, "usage", None)
        return Embedded(vectors=vectors, tokens=usage.prompt_tokens if usage else None)

    async def _request(self, texts: list[str]) -> CreateEmbeddingResponse:
        request: dict[str, Any] = {"input": texts, "model": self._model}
        if self._dimensions is not None:
            request["dimensions"] = self._dimensions
        with quiet_libraries(self._model):
            if isinstance(self._client, AsyncOpenAI):
                return await self._client.embeddings.create(**request)
            return await asyncio.to_thread(self._client.embeddings.create, **request)
