"""Telemetry spans of one client call: ``invoke_agent``, with a ``chat`` span for each turn.

The spans are not context managers, because a stream may be abandoned at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from pydantic import BaseModel

from gateway.chat.accounting import Accounting, usage_of
from gateway.runtime.model_endpoint import ModelEndpoint
from gateway.runtime.telemetry import Labels, Telemetry, TimedSpan

AGENT = "gateway"
"""Default name of the agent in telemetry."""


class ConversationTrace:
    """Telemetry spans of one client call. The owner must call `end`."""

    def __init__(
        self, telemetry: Telemetry, *, agent: str, endpoint: ModelEndpoint, conversation: str
    ) -> None:
        self._telemetry = telemetry
        self._endpoint = endpoint
        self._labels: Labels = {"gen_ai.conversation.id": conversation} if conversation else {}
        labels = {"gen_ai.agent.name": agent, **endpoint.attributes, **self._labels}
        self._agent = telemetry.operation("invoke_agent", agent, labels=labels)
        self._turn: TimedSpan | None = None

    def within(self) -> AbstractContextManager[object]:
        """Make the span of the client call current."""
        return self._telemetry.within(self._agent.span)

    def within_turn(self) -> AbstractContextManager[object]:
        """Make the turn's span current, so that spans of the wrapped client become its children."""
        return nullcontext() if self._turn is None else self._telemetry.within(self._turn.span)

    def begin_turn(self, *, is_stream: bool) -> None:
        """Begin the span of a request to the model."""
        labels: Labels = {**self._labels}
        if is_stream:
            labels["gen_ai.request.stream"] = True
        with self.within():
            self._turn = self._telemetry.model_request("chat", self._endpoint, labels)

    def record_reply(self, reply: BaseModel, finish_reasons: Sequence[str]) -> None:
        """Record the reply on the turn's span, and end the span."""
        if self._turn is not None:
            described: dict[str, str | Sequence[str]] = {
                "gen_ai.response.finish_reasons": finish_reasons
            }
            for name in ("id", "model"):
                if value := getattr(reply, name, None):
                    described[f"gen_ai.response.{name}"] = str(value)
            self._turn.describe(described)
            self._turn.count(usage_of(getattr(reply, "usage", None)))
        self.end_turn()

    def end_turn(self, error_type: str = "") -> None:
        """End the span of the current turn, if any, as failed if *error_type* is not empty."""
        if self._turn is not None:
            if error_type:
                self._turn.fail(error_type)
            self._turn.end()
            self._turn = None

    def fail(self, error_type: str) -> None:
        """Mark the spans of the client call and its turn as failed."""
        self.end_turn(error_type)
        self._agent.fail(error_type)

    def end(self, total: Accounting, usage: BaseModel | None, *, saved_tokens: int | None) -> None:
        """End the span of the client call with its counts.

        *usage* is None if the service reported none. *saved_tokens* is relative to sending all
        schemas; None if not known.
        """
        self.end_turn()
        names = ("turns", "searches", "errors", "definition_tokens")
        counted = {f"gateway.chat.{name}": getattr(total, name) for name in names}
        if saved_tokens is not None:
            counted["gateway.chat.saved_tokens"] = saved_tokens
        self._agent.describe(counted | usage_of(usage).attributes)
        self._agent.end()
