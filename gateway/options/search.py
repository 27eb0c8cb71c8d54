"""Options of searches, and of the recording and use of past calls."""

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
    """Number of matches if a caller requests no other number."""
    max_limit: PositiveCount = 50
    """Maximum number of matches that a caller may request."""
    max_query_chars: Annotated[int, Meta(ge=16)] = 4096
    """Maximum length of a query, in characters. Longer queries are cut, with a diagnostic."""
    max_queries: PositiveCount = 8
    """Maximum number of queries in one search."""
    first_search: First = "auto"
    """Handling of searches with strategy `auto` while new tools are not embedded yet. ``wait``:
    searches wait. ``words``: searches of programs use words and existing vectors, with the
    diagnostic ``index_building``. ``auto``: searches of programs wait. Searches of models wait for
    `first_search_wait_s`, unless ``wait``. `Gateway.report()` always waits.
    """
    first_search_wait_s: Seconds = 5.0
    """Maximum time, in seconds, that a search of a model waits for the vectors of a new catalog.
    Then words answer, with the diagnostic ``index_building`` or ``model_preparing``."""
    query_timeout_s: Timeout = 10.0
    """Timeout for embedding the query, for rewriting it, and for the next vector of the catalog.
    Then the search continues without the missing vectors or the rewritten query."""
    pool_factor: Count = 20
    pool_min: PositiveCount = 200
    """Minimum size of the pool: the candidates that are scored again by all signals. The size is
    max(pool_min, pool_factor x limit)."""
    window_factor: Count = 4
    window_min: PositiveCount = 8
    """Minimum size of the window: the best candidates, from which supplements (related tools, next
    steps, prerequisites) come. The size is max(window_min, window_factor x limit)."""
    window_margin: Share = 0.5
    """Minimum cosine of a candidate in the window, as a share of the distance from the catalog's
    mean cosine to the best cosine. With fewer than 60 eligible entities, the share is
    proportionally lower."""
    max_related: Count = 6
    max_next_steps: Count = 6
    max_prerequisites: Count = 9
    """Maximum number of prerequisites in a result. The limits of related tools, next steps and
    prerequisites are independent."""
    prerequisites: Prerequisites = "derived"
    """Prerequisites that a result lists. ``declared``: declared ones, and derived ones inside the
    window. ``derived``: also those that reliable rules derive for the first match. ``window``: only
    those inside the window. ``off``: none."""
    min_confidence: Share = 0.5
    """Minimum confidence of the best match. If it has less, the result has the diagnostic
    ``low_confidence_results``."""
    no_match_confidence: Share = 0.0
    """Minimum confidence of the best match. If it has less, the result is empty, with the
    diagnostic ``no_match`` and the nearest entity. 0 turns this off. It does not apply to searches
    with ``ranking=``."""
    spelling: bool = True
    """True also searches with corrected spelling of the query, without a model. The original words
    still count."""
    lexical_weight: Annotated[float, Meta(ge=0, le=100)] = 0.3
    """Maximum weight of words relative to vectors in strategy `auto`, 0 to 100. Both scores are
    measured in standard deviations."""

    def _fault(self) -> str:
        is_valid = self.max_limit >= self.limit
        return "" if is_valid else f"max_limit must be at least limit ({self.limit})"

    @property
    def models_wait(self) -> bool | float:
        """Argument ``wait`` of `Gateway.search` for the searches of models."""
        return self.first_search == "wait" or self.first_search_wait_s

    def pool(self, limit: int) -> int:
        """Return the number of candidates to score again for *limit* matches."""
        return max(limit, self.pool_min, self.pool_factor * limit)

    def window(self, limit: int) -> int:
        """Return the number of best candidates, the source of supplements, for *limit* matches."""
        return max(self.window_min, self.window_factor * limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageOptions(OptionObject):
    """Recording of calls and their effects on searches, all off by default."""

    record: bool = False
    """True records the outcome of each call and counts searches, in the ledger of this machine or
    in the shared store. Argument values are never recorded."""
    record_queries: bool = False
    """True also records the texts of searches for 30 days, without secrets, for `gateway
    eval`."""
    rerank: Rerank = "off"
    """Effect of past calls on rankings. ``bounded``: swap tools of nearly equal score. ``auto``:
    the same, but only after a measured gain."""
    learn: Learn = "off"
    """Suggestion of tools that followed a tool in past tasks. ``on``: if the recorded history
    predicts its own later calls. ``auto``: also only after a measured gain."""
    refresh_s: Seconds = 60.0
    """Interval at which the ledger of calls is read again."""

    def _fault(self) -> str:
        return "record_queries needs record" if self.record_queries and not self.record else ""

    @property
    def reads(self) -> bool:
        """True if an option needs recorded calls."""
        return (self.rerank, self.learn) != ("off", "off")

    @property
    def measures(self) -> bool:
        """True if an option requires a measured gain (see `Gain`)."""
        return "auto" in {self.rerank, self.learn}


def check_strategy(strategy: Strategy) -> Strategy:
    """Return *strategy*.

    Raises:
        ConfigError: If the strategy is unknown.
    """
    if strategy not in get_args(Strategy):
        choices = ", ".join(get_args(Strategy))
        raise ConfigError(f"unknown strategy {strategy!r}; it is one of {choices}")
    return strategy
