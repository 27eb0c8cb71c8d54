"""Events of a conversation, for whoever watches it: demos, consoles, tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.chat.accounting import Accounting
from gateway.types import InvokeResult, JsonObject, SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """The model is asked."""

    turn: int
    """Counts requests within one call of the wrapper, from 1."""
    tools: tuple[str, ...]
    """The names of all tools that it sees, in order: the host's, the meta-tools, the proxies."""
    proxies: tuple[str, ...]
    """Those of them that are found tools."""
    definition_tokens: int
    """Estimated tokens of all these definitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """The model searched the catalog."""

    call_id: str
    queries: tuple[str, ...]
    result: SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """The model called a tool of the catalog."""

    call_id: str
    tool: str
    """The name as the model gave it."""
    arguments: JsonObject
    result: InvokeResult | None = None
    """None if nothing was sent."""
    error: str = ""
    """What the model was told instead of a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """The model's turn had no calls of our tools: it goes to the caller."""

    turn: int
    text: str
    prompt_tokens: int = 0
    """Over all turns, as the server reported them."""
    completion_tokens: int = 0
    accounting: Accounting = field(default_factory=Accounting)
    """What the whole call did and cost."""
    messages: tuple[Mapping[str, object], ...] = ()
    """What the conversation gained before the reply: the model's calls of ours and their answers.
    A host that keeps them in its own messages, before the reply, keeps the found tools too."""


Event: TypeAlias = Requested | Searched | Called | Replied
Observer: TypeAlias = Callable[[Event], None]
"""Called with each event as it happens, on the thread or task that runs the conversation. Must not
block and must not raise."""
