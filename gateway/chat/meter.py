"""Counts what one call of the wrapper does, while it does it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from gateway.chat.accounting import Accounting
from gateway.chat.usage import added
from gateway.discovery.call_handler import Answer


class Meter:
    """The counts of one call. Bytes are counted from the second request on, as they grow."""

    def __init__(self) -> None:
        self.turns = 0
        self.searches = 0
        self.tool_calls = 0
        self.errors = 0
        self.failed_turns = 0
        """In a row, up to now."""
        self.definition_tokens = 0
        self.estimated = 0
        """Tokens of turns whose usage nobody reported; for the budget alone."""
        self.usage: BaseModel | None = None
        self._tools: Sequence[object] = ()
        self._sizes: list[int] = []
        self._prefix = 0
        self._bytes = 0
        self._spoken = 0

    def sent(
        self, tools: Sequence[object], messages: Sequence[Mapping[str, object]], tokens: int
    ) -> None:
        """Count one request."""
        self.turns += 1
        self.definition_tokens += tokens
        if self.turns > 1:
            self._compare(tools, messages)
        else:
            self._tools, self._told = tools, len(messages)
            self._messages = messages

    def _compare(self, tools: Sequence[object], messages: Sequence[Mapping[str, object]]) -> None:
        """Messages are only ever added within one call: they are equal as far as they went."""
        if self.turns == 2:
            self._sizes = [_size(tool) for tool in self._tools]
            self._spoken = sum(map(_size, messages[: self._told]))
        same = _alike(self._tools, tools)
        sizes = [*self._sizes[:same], *(_size(tool) for tool in tools[same:])]
        before, changed = self._spoken, same < max(len(self._tools), len(tools))
        self._spoken += sum(map(_size, messages[self._told :]))
        self._prefix += sum(sizes[:same]) + (0 if changed else before)
        self._bytes += sum(sizes) + self._spoken
        self._tools, self._sizes, self._told = tools, sizes, len(messages)

    def replied(self, usage: BaseModel | None) -> None:
        """Count what a reply cost."""
        if usage is not None:
            self.usage = added(self.usage, usage)

    def answered(self, answers: Sequence[Answer]) -> None:
        """Count what the calls of one turn came to."""
        failed = sum(done.failed for done in answers)
        self.searches += sum(done.search is not None for done in answers)
        self.tool_calls += sum(done.search is None for done in answers)
        self.errors += failed
        self.failed_turns = self.failed_turns + 1 if failed == len(answers) else 0

    @property
    def tokens(self) -> int:
        """All tokens so far, as the service reports them; estimated where it does not."""
        return self._reported("total_tokens") + self.estimated

    def accounting(
        self, *, catalog_tokens: int, messages: tuple[Mapping[str, object], ...], response_id: str
    ) -> Accounting:
        """Give the counts; *catalog_tokens* is that of one request."""
        return Accounting(
            turns=self.turns,
            searches=self.searches,
            tool_calls=self.tool_calls,
            errors=self.errors,
            definition_tokens=self.definition_tokens,
            catalog_tokens=catalog_tokens * self.turns,
            prefix_bytes=self._prefix,
            request_bytes=self._bytes,
            prompt_tokens=self._reported("prompt_tokens", "input_tokens"),
            completion_tokens=self._reported("completion_tokens", "output_tokens"),
            cached_tokens=self._cached(),
            messages=messages,
            response_id=response_id,
        )

    def _reported(self, *names: str) -> int:
        found = (getattr(self.usage, name, None) for name in names)
        return next((value for value in found if isinstance(value, int)), 0)

    def _cached(self) -> int:
        for name in ("prompt_tokens_details", "input_tokens_details"):
            cached = getattr(getattr(self.usage, name, None), "cached_tokens", None)
            if isinstance(cached, int):
                return cached
        return 0


def _size(value: object) -> int:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return len(text.encode("utf-8", "surrogatepass"))


def _alike(first: Sequence[object], second: Sequence[object]) -> int:
    """How many of the first entries are equal."""
    for place, (old, new) in enumerate(zip(first, second, strict=False)):
        if old is not new and old != new:
            return place
    return min(len(first), len(second))
