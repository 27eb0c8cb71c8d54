"""Signals learned from past calls, and the interface of the plugin that logs calls."""

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
    """A learned edge: agents called tool `after` directly after tool `before`."""

    before: str
    after: str
    count: int
    """Number of tasks in which the second tool was called directly after the first one."""
    of: int
    """Sum of `count` over all tools that were called directly after the first tool."""
    confidence: float
    """Estimated probability that the second tool follows the first one, in (0, 1): `count` / `of`,
    reduced for old calls and small counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedSteps:
    """Next steps learned from past calls. The object is falsy without learned edges."""

    edges: Mapping[str, Sequence[Transition]] = field(default_factory=dict)
    """Learned edges, keyed by the id of the first tool, highest confidence first."""
    open: Mapping[str, float] = field(default_factory=dict)
    """Share of the calls after a tool that its learned edges do not cover, in (0, 1], keyed by tool
    id; 1 for an absent tool."""
    often: Mapping[str, float] = field(default_factory=dict)
    """Share of a tool among all tools called directly after another one, in (0, 1], keyed by id."""

    def __bool__(self) -> bool:
        return bool(self.edges)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSignals:
    """Signals learned from the past calls that one tenant may use."""

    multipliers: Mapping[str, float] = field(default_factory=dict)
    """Factors, 0.85 to 1.15, for the scores of tools, keyed by tool id; 1 for an absent tool."""
    learned: LearnedSteps = field(default_factory=LearnedSteps)
    fingerprint: int = 0
    """Hash of the signals, valid in one process."""


NO_SIGNALS = UsageSignals()


class UsageLog(CallHook, ABC):
    """A log of calls and searches that learns from them. Its method ``around`` logs each call."""

    @abstractmethod
    async def signals(self, snapshot: Snapshot, tenant: str = "") -> UsageSignals:
        """Return the signals learned from the calls of *tenant* and from calls without a tenant.

        Never raises.
        """

    @abstractmethod
    def note_search(
        self, queries: Sequence[str], result: SearchResult, *, task: str = "", tenant: str = ""
    ) -> None:
        """Log a completed search. Never raises or blocks."""


def make_usage_log(
    factories: Mapping[str, Callable[..., UsageLog | None]], options: UsageOptions, **parts: object
) -> UsageLog | None:
    """Create the usage log; None if it is neither available nor required.

    *parts* are the other arguments of the factory, as described at the hook ``register_usage_log``.

    Raises:
        ConfigError: If *options* require a log, but the plugin or its store is missing.
    """
    if "usage" in factories:
        return factories["usage"](options=options, **parts)
    if options.record or options.reads:
        raise missing_plugin("the log of calls", "usage")
    return None
