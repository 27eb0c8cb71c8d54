"""The lessons of past calls for a search, and the face of the plugin that gives them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.call.hooks import CallHook
from gateway.errors import missing_plugin
from gateway.index.snapshot import Snapshot
from gateway.options import UsageOptions
from gateway.types import SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """An edge that calls have shown: one tool was called right after another."""

    before: str
    """The canonical id of the first tool."""
    after: str
    """The canonical id of the second tool."""
    count: int
    """In how many tasks."""
    of: int
    """How often any tool came right after the first, once a task and pair."""
    confidence: float
    """Its share of that, discounted, decayed and shrunk, in (0, 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedSteps:
    """The next steps of a history."""

    edges: Mapping[str, Sequence[Transition]] = field(default_factory=dict)
    """What follows each tool, by the id of the tool before, the surest first."""
    open: Mapping[str, float] = field(default_factory=dict)
    """The share of its next steps that the edges of a tool leave open, (0, 1]; 1 if unknown."""
    often: Mapping[str, float] = field(default_factory=dict)
    """How often each tool comes after others: its share of all pairs, (0, 1]."""

    def __bool__(self) -> bool:
        """Return whether there is any edge."""
        return bool(self.edges)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSignals:
    """The lessons of past calls that one tenant may know."""

    multipliers: Mapping[str, float] = field(default_factory=dict)
    """Factors of scores, 0.85 to 1.15, by canonical id of the tool; 1 for an absent tool."""
    learned: LearnedSteps = field(default_factory=LearnedSteps)
    """Next steps that calls have shown."""
    fingerprint: int = 0
    """Equal for equal signals, in this process."""


NO_SIGNALS = UsageSignals()


class UsageLog(CallHook, ABC):
    """A log of calls and searches, and of their lessons. Its ``around`` notes how a call ends."""

    @abstractmethod
    async def signals(self, snapshot: Snapshot, tenant: str = "") -> UsageSignals:
        """Return the lessons of past calls. Never raises.

        Args:
            snapshot: The catalog.
            tenant: The tenant whose calls count, beside those that were noted without a tenant.
        """

    @abstractmethod
    def note_search(
        self, queries: Sequence[str], result: SearchResult, *, task: str = "", tenant: str = ""
    ) -> None:
        """Note a search that has ended. Never raises, and does not wait."""


def make_usage_log(
    factories: Mapping[str, Callable[..., UsageLog | None]], options: UsageOptions, **parts: object
) -> UsageLog | None:
    """Return the log of calls; None if nothing gives one, and *options* need none.

    Args:
        factories: From the hook ``register_usage_log``.
        options: Say whether calls are noted and change anything.
        parts: The other arguments of the factory; see the hook.

    Raises:
        ConfigError: *options* need a log, and no plugin or no store has one.
    """
    if "usage" in factories:
        return factories["usage"](options=options, **parts)
    if options.record or options.reads:
        raise missing_plugin("the log of calls", "usage")
    return None
