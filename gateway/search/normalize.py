"""The normalizer: a chat model of the host's choice that rewrites queries in English.

It is named apart from the chat client that the conversation runs on, and nothing falls back from
one to the other. Rewrites are cached, and literals survive whatever a model says.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from gateway.runtime.cache import Cache, SingleFlight
from gateway.runtime.telemetry import Attributes, Telemetry
from gateway.runtime.text import clean, literals

MAX_CHARS = 600
"""What is kept of a rewrite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """One answer of a chat model."""

    text: str
    """Of a normalizer a short English search query; blank means that the query stays as it is."""
    input_tokens: int | None = None
    output_tokens: int | None = None


class Normalizer(Protocol):
    """Rewrites a query in English. May be called from any task of the gateway's own loop."""

    @property
    def model_id(self) -> str:
        """Names model and endpoint: part of the key of cached rewrites."""
        ...

    @property
    def provider(self) -> str:
        """For telemetry."""
        ...

    async def rewrite(self, query: str) -> ModelReply:
        """Rewrite *query* (not blank).

        Raises:
            Exception: Anything; the original query is then used.
        """
        ...


def settle(query: str, answer: str) -> str:
    """Make a query of what a model answered; the original if nothing is left of it.

    The first line counts, without quotes or fences; literals of the original that the rewriting
    lost are put back at its end.
    """
    lines = (line.strip().strip("`\"'“”„«» ") for line in answer.splitlines())
    text = clean(next((line for line in lines if line), ""), limit=MAX_CHARS)
    if not text or text.casefold() == query.casefold():
        return query
    lost = [literal for literal in literals(query) if literal.casefold() not in text.casefold()]
    return " ".join([text, *lost])


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedNormalizer:
    """Rewrites each query once while the cache remembers it; failures are not remembered."""

    normalizer: Normalizer
    cache: Cache[str]
    flights: SingleFlight[str]
    """Where equal queries meet."""
    telemetry: Telemetry
    timeout_s: float | None = None
    """Seconds until an unanswered request is given up; None is never."""

    async def __call__(self, query: str) -> str:
        """Return the English form of *query*, or *query* itself.

        Raises:
            Exception: Whatever the normalizer raises.
        """
        key = (self.normalizer.model_id, query)
        rewritten = self.cache.get(key)
        if rewritten is None:
            rewritten = await self.flights.run(key, lambda: self._rewrite(query))
        return rewritten

    async def _rewrite(self, query: str) -> str:
        model = self.normalizer.model_id
        provider = {"gen_ai.provider.name": self.normalizer.provider}
        labels: dict[str, str | int | float | bool] = {"gen_ai.operation.name": "chat", **provider}
        attributes: Attributes = {
            **provider,
            "gen_ai.request.model": model,
            "gateway.search.stage": "normalize",
        }
        with (
            self.telemetry.span("chat", model, attributes) as span,
            self.telemetry.timed("gen_ai.client.operation.duration", labels),
        ):
            async with asyncio.timeout(self.timeout_s):
                answer = await self.normalizer.rewrite(query)
            counts = {"input": answer.input_tokens, "output": answer.output_tokens}
            for kind, tokens in counts.items():
                if tokens is not None:
                    span.set_attribute(f"gen_ai.usage.{kind}_tokens", tokens)
                    usage = {**labels, "gen_ai.token.type": kind}
                    self.telemetry.record("gen_ai.client.token.usage", tokens, usage)
        rewritten = settle(query, answer.text)
        self.cache.put((model, query), rewritten)
        return rewritten
