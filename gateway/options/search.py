"""Options of searches and of the use of past calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from gateway.errors import ConfigError
from gateway.options.validation import (
    Count,
    Meta,
    OptionObject,
    PositiveCount,
    Seconds,
    Share,
    Timeout,
)
from gateway.types import Strategy

Prerequisites = Literal["derived", "declared", "window", "off"]
First = Literal["auto", "wait", "words"]
Rerank = Literal["off", "bounded", "auto"]
Learn = Literal["off", "on", "auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(OptionObject):
    """Size and behaviour of searches."""

    limit: PositiveCount = 5
    """Default number of matches."""
    max_limit: PositiveCount = 50
    """Maximum number of matches that a caller may request."""
    max_query_chars: Annotated[int, Meta(ge=16)] = 4096
    """Maximum length of a query. Longer queries are cut, with a diagnostic."""
    max_queries: PositiveCount = 8
    """Maximum number of queries in one search."""
    first_search: First = "auto"
    """Waiting for new tools, with strategy `auto`. ``wait``: searches wait until new tools are
    embedded. ``words``: words and existing vectors answer, with the diagnostic ``index_building``.
    ``auto``: searches of programs wait, searches of models do not. `Gateway.report()` always waits.
    """
    query_timeout_s: Timeout = 10.0
    """Timeout for embedding the query, for rewriting it, and for the next vector of the catalog.
    Then the search continues without them."""
    pool_factor: Count = 20
    pool_min: PositiveCount = 200
    """Minimum number of candidates that are scored again: max(pool_min, pool_factor x limit)."""
    window_factor: Count = 4
    window_min: PositiveCount = 8
    """Minimum number of candidates from which supplements come: max(window_min, window_factor x
    limit)."""
    window_margin: Share = 0.5
    """Minimum cosine of these candidates, as a share of the way from the catalog's mean to the
    best. With fewer than 60 eligible entities, the share is proportionally lower."""
    max_related: Count = 6
    max_next_steps: Count = 6
    max_prerequisites: Count = 9
    """Maximum number of prerequisites. The limits of the three supplement lists are
    independent."""
    prerequisites: Prerequisites = "derived"
    """Listed prerequisites. ``declared``: declared ones, and derived ones inside the window.
    ``derived``: also those that reliable rules derive for the first match. ``window``: only those
    inside the window. ``off``: none."""
    min_confidence: Share = 0.5
    """If the best match has less confidence, the result has the diagnostic
    ``low_confidence_results``."""
    no_match_confidence: Share = 0.0
    """If the best match has less confidence, the result is empty, with the diagnostic ``no_match``
    and the nearest entities. 0 turns this off, as does a policy of ``ranking=``."""
    spelling: bool = True
    """True corrects misspelt words of a query, without a model. The original words count too."""
    lexical_weight: Annotated[float, Meta(ge=0, le=100)] = 0.3
    """Maximum weight of a standard deviation in words, relative to one in vectors, for strategy
    `auto`; 0 to 100."""

    def _fault(self) -> str:
        is_valid = self.max_limit >= self.limit
        return "" if is_valid else f"max_limit must be at least limit ({self.limit})"

    @property
    def models_wait(self) -> bool:
        """True if searches of models wait until new tools are embedded."""
        return self.first_search == "wait"

    def pool(self, limit: int) -> int:
        """Return the maximum number of candidates that are scored again for *limit* matches."""
        return max(limit, self.pool_min, self.pool_factor * limit)

    def window(self, limit: int) -> int:
        """Return the number of best candidates from which supplements may come, for *limit*
        matches.
        """
        return max(self.window_min, self.window_factor * limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageOptions(OptionObject):
    """Recording of calls, and its effects on searches. All are off by default."""

    record: bool = False
    """True records the outcome of each call and counts searches, in a ledger on this machine.
    Argument values are never recorded."""
    record_queries: bool = False
    """True also records the texts of searches for 30 days, without secrets, for `gateway
    eval`."""
    rerank: Rerank = "off"
    """Effect of past calls on rankings. ``bounded``: swap tools of nearly equal score. ``auto``:
    the same, but only after a measured gain."""
    learn: Learn = "off"
    """Suggestion of tools that were called next in past tasks. ``on``: if the history predicts
    itself. ``auto``: also only after a measured gain."""
    refresh_s: Seconds = 60.0
    """Interval between two reads of the ledger."""

    def _fault(self) -> str:
        return "record_queries needs record" if self.record_queries and not self.record else ""

    @property
    def reads(self) -> bool:
        """True if an option needs the contents of the ledger."""
        return (self.rerank, self.learn) != ("off", "off")

    @property
    def measures(self) -> bool:
        """True if an option needs a measured gain."""
        return "auto" in {self.rerank, self.learn}


def check_strategy(strategy: Strategy) -> Strategy:
    """Return *strategy* if it is valid.

    Raises:
        ConfigError: If the strategy is unknown.
    """
    if strategy not in get_args(Strategy):
        choices = ", ".join(get_args(Strategy))
        raise ConfigError(f"unknown strategy {strategy!r}; it is one of {choices}")
    return strategy
