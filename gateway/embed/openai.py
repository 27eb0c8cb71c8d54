"""Embedder for any service with OpenAI's embeddings API."""

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
    """Return the model and the service of *client*, for telemetry."""
    is_azure = isinstance(client, AzureOpenAI | AsyncAzureOpenAI)
    provider = "azure.ai.openai" if is_azure else ""
    return ModelEndpoint.at(model, str(client.base_url), provider=provider)


class OpenAIEmbedder:
    """Embeds texts by an OpenAI-compatible service. The client's settings limit retries and time.

    Args:
        client: Sync or async client. A sync client is called in a worker thread. An async client
            must belong to the gateway alone, because its connections use the gateway's event loop.
        model: The service's name for the model.
        dimensions: Length of the requested vectors, if the model supports shorter ones.
        limits: Limits of one request. The defaults are OpenAI's.
        query_prefix: Text before each query, for models trained with a prefix.
        document_prefix: Text before each document, for models trained with a prefix.

    Example:
        >>> client = OpenAI(base_url="http://127.0.0.1:8080/v1", api_key="unused")
        >>> OpenAIEmbedder(client, model="bge-m3").info.model_id
        '127.0.0.1:8080/bge-m3'
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
        """Identity of the embedding model, and limits of a request."""
        return self._info

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Embed *texts* in one request; return the vectors in the same order.

        Raises:
            openai.OpenAIError: If the client still fails after its own retries.
            EmbeddingError: If the vectors do not match the texts.
        """
        prefixed = [self._prefixes[role] + text for text in texts]
        answer = await self._request(prefixed)
        rows = sorted(answer.data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(len(texts))):
            raise EmbeddingError(f"{self._model!r} answered {len(rows)} of {len(texts)} texts")
        if len({len(row.embedding) for row in rows}) > 1:
            raise EmbeddingError(f"{self._model!r} gave vectors of different lengths")
        vectors = np.asarray([row.embedding for row in rows], dtype=np.float32)
        # Some servers omit the usage, although OpenAI's type requires it.
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
