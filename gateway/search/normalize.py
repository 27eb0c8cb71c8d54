"""The normalizer: rewrites queries in English with a chat model that the host chooses.

Literals of the query (names, numbers, quotes) stay in the rewrite even if the model drops them.
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
"""Maximum length of a rewrite, in characters."""
MAX_GROWTH, MIN_CHARS = 4, 100
"""A rewrite is rejected if it is longer than both: `MAX_GROWTH` times the query's length, and
`MIN_CHARS` characters."""
_LABEL = (
    r"(?i)^(?:(?:sure|certainly|here|is|s|the|your|an?|in|short|concise|english|search|rewritten"
    r"|normalized|corrected|final)[\W_]+)*"
    r"(?:query|request|rewrite|translation|output|answer|search|english)[\W_]*?[:\uff1a][\W_]*"
)
"""Labels before the rewritten query, such as ``Search query:``."""
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
"""First words of an answer that talks to the user instead of rewriting the query."""
_MARKS = "`\"'\u201c\u201d\u201e\u00ab\u00bb*#> "
"""Quotes, code fences and Markdown marks around a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """One answer of a chat model."""

    text: str
    """The answer. From a normalizer, a short English query; if blank, the original query is
    used."""
    input_tokens: int | None = None
    output_tokens: int | None = None


class Normalizer(Protocol):
    """Rewrites queries in English. Called from any task of the gateway's event loop."""

    @property
    def model_id(self) -> str:
        """Name of the model and its endpoint. Part of the key of cached rewrites."""
        ...

    @property
    def provider(self) -> str:
        """Name of the provider, for telemetry."""
        ...

    async def rewrite(self, query: str) -> ModelReply:
        """Rewrite *query*, which is not blank.

        Raises:
            Exception: Of any type. The original query is then used.
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
    """Await a chat model's reply and record the request with *telemetry*.

    *model* is identified by its ``endpoint``, or else by its ``provider`` and ``model_id``. With a
    *timeout_s* of None, the request has no timeout.
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
    """Extract the rewritten query from the model's *answer*. Return *query* if it is not a rewrite.

    The rewrite is the first line that is more than a label. An answer is rejected if it refuses,
    talks to the user, is too long or has few Latin letters. Missing literals of *query* are
    appended.
    """
    lines = (re.sub(_LABEL, "", line.strip(_MARKS), count=1) for line in answer.splitlines())
    first = next(filter(None, (line.strip(_MARKS) for line in lines)), "")
    text = clean(first, limit=MAX_CHARS + 1)
    if not text or text.casefold() == query.casefold() or not _is_rewrite(query, text):
        return query
    lost = [literal for literal in literals(query) if literal.casefold() not in text.casefold()]
    return " ".join([text, *lost])


def _is_rewrite(query: str, text: str) -> bool:
    # Vowel signs of many scripts are marks, so marks count as letters.
    letters = [char for char in text if unicodedata.category(char)[0] in "LM"]
    latin = sum(char < "\u0250" or "\u1e00" <= char < "\u1f00" for char in letters)
    is_short = len(text) <= min(MAX_CHARS, max(MIN_CHARS, MAX_GROWTH * len(query)))
    is_talk = re.match(_REFUSAL, text) or re.match(_CHAT, text)
    return is_short and 2 * latin >= len(letters) and not is_talk


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedNormalizer:
    """A normalizer with a cache. Failures are not cached."""

    normalizer: Normalizer
    cache: Cache[str]
    share: Share[str]
    """Lets equal requests at the same time share one answer."""
    telemetry: Telemetry
    timeout_s: float | None = None
    """Timeout of a request, in seconds; None for no timeout."""

    async def __call__(self, query: str) -> str:
        """Return the English form of *query*, or *query* itself.

        Raises:
            GatewayError: If the circuit breaker skips the normalizer because it hangs.
            Exception: Any exception of the normalizer.
        """
        key = (self.normalizer.model_id, query)
        rewritten = self.cache.get(key)
        if rewritten is None:
            rewritten = await self.share(key, partial(self._rewrite, query))
        return rewritten

    async def _rewrite(self, query: str) -> str:
        key = (self.normalizer.model_id, query)
        # An equal request may have finished in the meantime.
        if (cached := self.cache.peek(key)) is not None:
            return cached
        work = self.normalizer.rewrite(query)
        attributes = {"gateway.search.stage": "normalize"}
        answer = await ask(
            self.normalizer, work, self.telemetry, attributes, timeout_s=self.timeout_s
        )
        rewritten = settle(query, answer.text)
        self.cache.put(key, rewritten)
        return rewritten
