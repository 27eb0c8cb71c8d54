"""How a search looks, and what it learns from calls."""

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
    """How a search looks and how much it may find."""

    limit: PositiveCount = 5
    """How many matches a search gives unless its caller says."""
    max_limit: PositiveCount = 50
    """How many matches a caller may ask for."""
    max_query_chars: Annotated[int, Meta(ge=16)] = 4096
    """A longer query is cut here, with a diagnostic."""
    max_queries: PositiveCount = 8
    """How many queries one search may have."""
    first_search: First = "auto"
    """Whether searches by the strategy `auto` wait until new tools are embedded (``wait``), or are
    answered by ``words`` and the vectors there are, with ``index_building``; ``auto``: those of a
    program wait, those of a model do not. `Gateway.report()` waits."""
    query_timeout_s: Timeout = 10.0
    """How long a search waits for the vectors of its query, for its rewriting, and for the next
    vector of the catalog; then it goes on without."""
    pool_factor: Count = 20
    pool_min: PositiveCount = 200
    """The re-scoring pool holds max(pool_min, pool_factor x limit) entities by cosine."""
    window_factor: Count = 4
    window_min: PositiveCount = 8
    """Supplements come from the first max(window_min, window_factor x limit) entities …"""
    window_margin: Share = 0.5
    """… whose cosine is at least this share of the way from the catalog's mean to the best; of
    fewer than 60 eligible entities the share is less in proportion."""
    max_related: Count = 6
    max_next_steps: Count = 6
    max_prerequisites: Count = 9
    """The three supplement lists, each with a budget of its own."""
    prerequisites: Prerequisites = "derived"
    """Which prerequisites are listed: ``declared`` ones from anywhere and derived ones inside the
    window; beside them those that sure rules derive for the first match, from anywhere
    (``derived``); only those inside the ``window``; or none (``off``)."""
    min_confidence: Share = 0.5
    """If the best match is below this, the result says ``low_confidence_results``."""
    no_match_confidence: Share = 0.0
    """If the best match is below this, the result is empty and says ``no_match`` and what is
    nearest. 0 never empties a result; nor does a policy of ``ranking=``."""
    spelling: bool = True
    """Mend misspelt words of a query, without a model; the words as typed count as well."""
    lexical_weight: Annotated[float, Meta(ge=0, le=100)] = 0.3
    """What one standard deviation in words counts beside one in vectors, in `auto`, at most; 0 to
    100."""

    def _fault(self) -> str:
        is_valid = self.max_limit >= self.limit
        return "" if is_valid else f"max_limit must be at least limit ({self.limit})"

    @property
    def models_wait(self) -> bool:
        """Whether searches of models wait until new tools are embedded."""
        return self.first_search == "wait"

    def pool(self, limit: int) -> int:
        """How many candidates may be re-scored for *limit* matches."""
        return max(limit, self.pool_min, self.pool_factor * limit)

    def window(self, limit: int) -> int:
        """From how many of the first candidates supplements may come for *limit* matches."""
        return max(self.window_min, self.window_factor * limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageOptions(OptionObject):
    """What is noted of calls, and what that may change. All of it is off at first."""

    record: bool = False
    """Note how each call ended, and count searches, in a ledger on this machine; never a value of
    an argument."""
    record_queries: bool = False
    """Keep the texts of searches too, without secrets, 30 days: requests for `gateway eval`."""
    rerank: Rerank = "off"
    """What calls do to rankings: swap what is about equally good without them (``bounded``), or
    that where its gain is measured (``auto``)."""
    learn: Learn = "off"
    """Suggest what was called after a tool in the same task: if the history foretells itself
    (``on``), or where besides the gain is measured (``auto``)."""
    refresh_s: Seconds = 60.0
    """How long what the ledger says is believed before it is read again."""

    def _fault(self) -> str:
        return "record_queries needs record" if self.record_queries and not self.record else ""

    @property
    def reads(self) -> bool:
        """Whether anything asks what the ledger says."""
        return (self.rerank, self.learn) != ("off", "off")

    @property
    def measures(self) -> bool:
        """Whether a gain is measured."""
        return "auto" in {self.rerank, self.learn}


def check_strategy(strategy: Strategy) -> Strategy:
    """Return *strategy* back, checked.

    Raises:
        ConfigError: If there is no such strategy.
    """
    if strategy not in get_args(Strategy):
        choices = ", ".join(get_args(Strategy))
        raise ConfigError(f"unknown strategy {strategy!r}; it is one of {choices}")
    return strategy
