"""The normalizer: rewrites queries in English with a chat model that the host chooses.

Literals of the query (names, numbers, quotes) stay in the rewrite even if the model drops them.
"""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from gateway.runtime.cache import Cache, Share
from gateway.runtime.json_schema import as_texts
from gateway.runtime.model_endpoint import ModelEndpoint, TokenUsage
from gateway.runtime.telemetry import Attributes, Telemetry
from gateway.runtime.telemetry_names import OTHER
from gateway.runtime.text import clean, literals

MAX_CHARS = 600
"""Maximum length of a rewrite, in characters."""
MAX_GROWTH, MIN_CHARS = 4, 100
"""A rewrite is rejected if it is longer than both: `MAX_GROWTH` times the query's length, and
`MIN_CHARS` characters."""
MAX_STEPS = 4
"""Maximum number of steps in a rewrite. Each becomes a query of its own."""
_LABEL = (
    r"(?i)^(?:(?:sure|certainly|here|is|s|the|your|an?|in|short|concise|english|search|rewritten"
    r"|normalized|corrected|final)[\W_]+)*"
    r"(?:query|queries|steps|request|rewrite|translation|output|answer|search|english)[\W_]*?[:\uff1a][\W_]*"
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
_REASONING = r"(?is)<(think(?:ing)?|reasoning)>.*?(?:</\1>|\Z)"
"""The reasoning of a model before its answer, possibly without an end."""
_BULLET = r"^\s*(?:[-*\u2022]|\(?\d{1,2}[.)])\s+"
_SENTENCE_ENDS = ".:!?\u2026"
"""Last characters of a line after the first one that is not a step, but an explanation."""
_ENGLISH_WORDS = frozenset({"and", "for", "from", "the", "to", "with"})
"""Function words that only English has."""
_FOREIGN_WORDS = frozenset(
    {
        "avec", "bir", "che", "com", "dans", "das", "del", "dem", "den", "der", "di", "dla", "een",
        "ein", "eine", "einen", "el", "est", "et", "för", "für", "gli", "het", "için", "il", "ist",
        "jest", "las", "les", "los", "mit", "nel", "não", "och", "os", "para", "por", "pour", "på",
        "się", "uma", "una", "und", "une", "ve", "von", "voor", "và", "wie", "của",
    }
)  # fmt: skip
"""Function words of other languages in Latin letters."""
_MARKS = "`\"'\u201c\u201d\u201e\u00ab\u00bb*#> "
"""Quotes, code fences and Markdown marks around a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """One answer of a chat model."""

    text: str
    """The answer. From a normalizer, a short English query, or one on each line; if blank, the
    original query is used."""
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


def settle(query: str, answer: str) -> tuple[str, ...]:
    """Extract the rewritten query from the model's *answer*: one line, or one for each step.

    A step is a line that is more than a label, or a text in JSON. Return only *query* if the first
    step is not a rewrite: if it refuses, talks to the user, is too long, has few Latin letters or
    is in the query's own language. Literals of *query* that all steps lack are added to the first.
    """
    steps: list[str] = []
    for line in _lines(answer):
        text = clean(re.sub(_LABEL, "", line, count=1).strip(_MARKS), limit=MAX_CHARS + 1)
        if not text:
            continue
        if not _is_rewrite(query, text) or (steps and text[-1] in _SENTENCE_ENDS):
            break
        steps.append(text)
    steps = list(dict.fromkeys(steps))[:MAX_STEPS]
    if not steps or [step.casefold() for step in steps] == [query.casefold()]:
        return (query,)
    every = "\n".join(steps).casefold()
    lost = [literal for literal in literals(query) if literal.casefold() not in every]
    return (" ".join([steps[0], *lost]), *steps[1:])


def _lines(answer: str) -> list[str]:
    """Return the lines of *answer* without its reasoning, list marks and fences; or the texts in
    JSON.
    """
    said = re.sub(_REASONING, "", answer)
    lines = [line.strip().strip("`") for line in said.splitlines()]
    try:
        texts = as_texts(_values(json.loads("\n".join(line for line in lines if line != "json"))))
    except (ValueError, RecursionError):
        texts = []
    return texts or [re.sub(_BULLET, "", line, count=1).strip(_MARKS) for line in lines]


def _values(parsed: object) -> list[object]:
    """Return the texts in a JSON text, list or object, in order."""
    if isinstance(parsed, dict):
        return [value for part in parsed.values() for value in _values(part)]
    if isinstance(parsed, list):
        return [value for part in parsed for value in _values(part)]
    return [parsed]


def _is_rewrite(query: str, text: str) -> bool:
    # Vowel signs of many scripts are marks, so marks count as letters.
    letters = [char for char in text if unicodedata.category(char)[0] in "LM"]
    latin = sum(char < "\u0250" or "\u1e00" <= char < "\u1f00" for char in letters)
    is_short = len(text) <= min(MAX_CHARS, max(MIN_CHARS, MAX_GROWTH * len(query)))
    is_talk = re.match(_REFUSAL, text) or re.match(_CHAT, text)
    return is_short and 2 * latin >= len(letters) and not is_talk and not _is_foreign(query, text)


def _is_foreign(query: str, text: str) -> bool:
    """Return whether *text* is in the language of *query*, and that is not English."""
    words, asked = ({*re.findall(r"\w+", part.casefold())} for part in (text, query))
    return bool(words & asked & _FOREIGN_WORDS) and words.isdisjoint(_ENGLISH_WORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedNormalizer:
    """A normalizer with a cache. Failures are not cached."""

    normalizer: Normalizer
    cache: Cache[tuple[str, ...]]
    share: Share[tuple[str, ...]]
    """Lets equal requests at the same time share one answer."""
    telemetry: Telemetry
    timeout_s: float | None = None
    """Timeout of a request, in seconds; None for no timeout."""

    async def __call__(self, query: str) -> tuple[str, ...]:
        """Return the English form of *query* or of each of its steps, or *query* itself.

        Raises:
            GatewayError: If the circuit breaker skips the normalizer because it hangs.
            Exception: Any exception of the normalizer.
        """
        key = (self.normalizer.model_id, query)
        rewritten = self.cache.get(key)
        if rewritten is None:
            rewritten = await self.share(key, partial(self._rewrite, query))
        return rewritten

    async def _rewrite(self, query: str) -> tuple[str, ...]:
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
