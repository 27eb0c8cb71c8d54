"""The normalizer: a chat model of the host's choice that rewrites queries in English.

It is named apart from the chat client that the conversation runs on, and nothing falls back from
one to the other. Rewrites are cached, and literals survive whatever a model says.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from gateway.runtime.cache import Cache, Share
from gateway.runtime.model_endpoint import ModelEndpoint, TokenUsage
from gateway.runtime.telemetry import Attributes, Telemetry
from gateway.runtime.telemetry_names import OTHER
from gateway.runtime.text import clean, literals

MAX_CHARS = 600
"""A longer answer is no rewrite …"""
MAX_GROWTH, MIN_CHARS = 4, 100
"""… nor is one of so many times the query's characters, if it has more than so many."""
_LABEL = (
    r"(?i)^(?:(?:sure|certainly|here|is|s|the|your|an?|in|short|concise|english|search|rewritten"
    r"|normalized|corrected|final)[\W_]+)*"
    r"(?:query|request|rewrite|translation|output|answer|search|english)[\W_]*?[:\uff1a][\W_]*"
)
"""What a model puts before a query, though nobody asked for it."""
_REFUSAL = (
    r"(?i)(?:i\W?m|i am|we are)\b.{0,20}\b(?:sorry|afraid|(?:unable|not able) to "
    r"(?:help|assist|comply|do that))\b"
    r"|sorry\b\W*(?:but|i|we)\b"
    r"|(?:unfortunately\W+)?(?:i|we) (?:can(?:no|\W)?t|won\W?t|will not|do(?:n\W?| no)t|must)\b"
    r".{0,20}\b(?:help|assist|comply|fulfil|answer|decline|do that|process|provide|understand)"
    r"|i apologi[sz]e|my apologies|as an? (?:ai|language|assistant)\b"
)
_CHAT = (
    r"(?i)(?:(?:sure|certainly|of course|absolutely|okay)\W+(?:here|i|you|we|let)"
    r"|here(?: is| are|\W?s) (?:what|how|some|your)"
    r"|you (?:can|could|may|might|should)|i (?:can(?!\W?t)|could|suggest|understand))\b"
)
"""How a model begins that talks to the user instead of rewriting."""
_MARKS = "`\"'\u201c\u201d\u201e\u00ab\u00bb*#> "
"""Quotes, fences and Markdown around a line."""


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


async def ask(
    model: object,
    work: Awaitable[ModelReply],
    telemetry: Telemetry,
    attributes: Attributes | None = None,
    *,
    timeout_s: float | None = None,
) -> ModelReply:
    """Await a chat model's reply as a request that is traced and measured.

    Args:
        model: The normalizer or proposer. What it has of ``endpoint``, or of ``provider`` and
            ``model_id``, says which model is asked.
        work: The request.
        telemetry: Records it.
        attributes: Others of its span.
        timeout_s: Seconds until it is given up; None is never.
    """
    endpoint = getattr(model, "endpoint", None)
    if not isinstance(endpoint, ModelEndpoint):
        name, provider = getattr(model, "model_id", ""), getattr(model, "provider", OTHER)
        endpoint = ModelEndpoint(model=name, provider=provider)
    with telemetry.model_request("chat", endpoint, attributes).within() as request:
        async with asyncio.timeout(timeout_s):
            reply = await work
        request.count(TokenUsage(input=reply.input_tokens, output=reply.output_tokens))
    return reply


def settle(query: str, answer: str) -> str:
    """Make a query of what a model answered; the original if that is no rewrite of it.

    The first line counts that holds more than a label, without quotes or fences. A refusal, chat, a
    text that is too long and one that is not in Latin letters are none. Literals of the original
    that the rewriting lost are put back at its end.
    """
    lines = (re.sub(_LABEL, "", line.strip(_MARKS), count=1) for line in answer.splitlines())
    first = next(filter(None, (line.strip(_MARKS) for line in lines)), "")
    text = clean(first, limit=MAX_CHARS + 1)
    if not text or text.casefold() == query.casefold() or not _is_rewrite(query, text):
        return query
    lost = [literal for literal in literals(query) if literal.casefold() not in text.casefold()]
    return " ".join([text, *lost])


def _is_rewrite(query: str, text: str) -> bool:
    # Vowel signs of many scripts are marks.
    letters = [char for char in text if unicodedata.category(char)[0] in "LM"]
    latin = sum(char < "\u0250" or "\u1e00" <= char < "\u1f00" for char in letters)
    is_short = len(text) <= min(MAX_CHARS, max(MIN_CHARS, MAX_GROWTH * len(query)))
    is_talk = re.match(_REFUSAL, text) or re.match(_CHAT, text)
    return is_short and 2 * latin >= len(letters) and not is_talk


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedNormalizer:
    """Rewrites each query once while the cache remembers it; failures are not remembered."""

    normalizer: Normalizer
    cache: Cache[str]
    share: Share[str]
    """Joins equal queries."""
    telemetry: Telemetry
    timeout_s: float | None = None
    """Seconds until an unanswered request is given up; None is never."""

    async def __call__(self, query: str) -> str:
        """Return the English form of *query*, or *query* itself.

        Raises:
            GatewayError: The normalizer is skipped, since it hangs.
            Exception: Whatever the normalizer raises.
        """
        key = (self.normalizer.model_id, query)
        rewritten = self.cache.get(key)
        if rewritten is None:
            rewritten = await self.share(key, partial(self._rewrite, query))
        return rewritten

    async def _rewrite(self, query: str) -> str:
        key = (self.normalizer.model_id, query)
        # An equal request may have ended since its caller looked.
        if (found := self.cache.peek(key)) is not None:
            return found
        work = self.normalizer.rewrite(query)
        attributes = {"gateway.search.stage": "normalize"}
        answer = await ask(
            self.normalizer, work, self.telemetry, attributes, timeout_s=self.timeout_s
        )
        rewritten = settle(query, answer.text)
        self.cache.put(key, rewritten)
        return rewritten
