"""Option objects.

* Frozen, keyword-only, one for each subsystem. Every default is visible here and listed in
  docs/options.md.
* All faults of an object are reported at once.
* Numbers carry their unit in their name; ``limit`` and ``max_…`` are counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from gateway.checks import at_least, between, check, one_of, share
from gateway.errors import ConfigError
from gateway.limits import CatalogOptions, ChatOptions, UpstreamOptions, UsageOptions
from gateway.types import Strategy

VERSION = "0.1.0"
"""As in `pyproject.toml`; asking the installed package for it would cost a start more."""
Prerequisites = Literal["derived", "declared", "window", "off"]
Mode = Literal["proxy", "stable", "native", "auto"]
First = Literal["wait", "words"]
MODEL_TOOL_LIMIT = 128
"""How many tools a Chat Completions request may carry."""


def _different(*names: str) -> str:
    given = [str(name) for name in names if name]
    return "" if len({*given}) == len(given) else "two names of the meta-tools are equal"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How a search looks and how much it may find."""

    limit: int = 5
    """How many matches a search gives unless its caller says."""
    max_limit: int = 50
    """How many matches a caller may ask for."""
    max_query_chars: int = 4096
    """A longer query is cut here, with a diagnostic."""
    max_queries: int = 8
    """How many queries one search may have."""
    first_search: First = "wait"
    """Whether searches in `auto` wait until new tools are embedded (``wait``), or are answered by
    ``words`` and the vectors there are, with ``index_building``. `Gateway.report()` waits."""
    query_timeout_s: float = 10.0
    """How long a search waits for the vectors of its query, for its rewriting, and for the next
    vector of the catalog; then it goes on without."""
    pool_factor: int = 20
    pool_min: int = 200
    """The re-scoring pool holds max(pool_min, pool_factor x limit) entities by cosine."""
    window_factor: int = 4
    window_min: int = 8
    """Supplements come from the first max(window_min, window_factor x limit) entities …"""
    window_margin: float = 0.5
    """… whose cosine is at least this share of the way from the catalog's mean to the best."""
    max_related: int = 6
    max_next_steps: int = 6
    max_prerequisites: int = 9
    """The three supplement lists, each with a budget of its own."""
    prerequisites: Prerequisites = "derived"
    """Which prerequisites are listed: ``declared`` ones from anywhere and derived ones inside the
    window; beside them those that sure rules derive for the first match, from anywhere
    (``derived``); only those inside the ``window``; or none (``off``)."""
    min_confidence: float = 0.5
    """If the best match is below this, the result says ``low_confidence_results``."""
    no_match_confidence: float = 0.16
    """If the best match is below this, the result is empty and says ``no_match`` and what is
    nearest. The bound is lower for a catalog of many tools, or of tools with little in common.
    0 never empties a result; nor does a policy of ``ranking=``."""
    spelling: bool = True
    """Mend misspelt words of a query, without a model; the words as typed count as well."""
    lexical_weight: float = 0.4
    """What one standard deviation in words counts beside one in vectors, in `auto`, at most; 0 to
    100."""
    fuse_graph: bool = False
    """Whether ``ranking="hybrid"`` fuses the graph's text search as a list of its own."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        check(
            self,
            at_least("limit", self.limit, 1),
            at_least("max_limit", self.max_limit, self.limit),
            at_least("max_query_chars", self.max_query_chars, 16),
            at_least("max_queries", self.max_queries, 1),
            one_of("first_search", self.first_search, First),
            at_least("query_timeout_s", self.query_timeout_s, 0.001),
            at_least("pool_factor", self.pool_factor, 0),
            at_least("pool_min", self.pool_min, 1),
            at_least("window_factor", self.window_factor, 0),
            at_least("window_min", self.window_min, 1),
            share("window_margin", self.window_margin),
            at_least("max_related", self.max_related, 0),
            at_least("max_next_steps", self.max_next_steps, 0),
            at_least("max_prerequisites", self.max_prerequisites, 0),
            one_of("prerequisites", self.prerequisites, Prerequisites),
            share("min_confidence", self.min_confidence),
            share("no_match_confidence", self.no_match_confidence),
            between("lexical_weight", self.lexical_weight, 0, 100),
        )

    def pool(self, limit: int) -> int:
        """How many candidates may be re-scored for *limit* matches."""
        return max(self.pool_min, self.pool_factor * limit)

    def window(self, limit: int) -> int:
        """From how many of the first candidates supplements may come for *limit* matches."""
        return max(self.window_min, self.window_factor * limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions:
    """Which rules derive edges that nobody wrote. A host's own documents override them."""

    groups: bool = True
    """Tools of one server that share a word of their names, or a category."""
    phases: bool = True
    """What finds a thing comes before what inspects it, and that before what acts on it."""
    data_flow: bool = True
    """A field of one tool's output is a required argument of another."""
    suppliers: bool = True
    """A tool that needs nothing and gets X feeds a required argument called X."""
    calendar: bool = True
    """What tells the current date or time feeds required arguments written as one."""
    checks: bool = True
    """What validates X comes before what needs an X."""
    sign_in: bool = True
    """What signs in to something comes before what uses it."""
    connection: bool = True
    """What tells whether the machine is online comes before signing in."""
    mentions: bool = True
    """A description that names another tool of its server."""

    def __post_init__(self) -> None:
        """Check the types."""
        check(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """Indexes that outlive the process, so that the next start reads what this one made."""

    saved: bool = True
    """Whether they are saved and read. If the host gives a vector store of its own, they are only
    if ``Options.index_path`` says where."""
    min_tools: int = 200
    """An index of fewer tools is not saved: it is made fast enough."""
    kept: int = 4
    """How many are kept; those that were not used for longest are deleted."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        check(
            self,
            at_least("min_tools", self.min_tools, 1),
            at_least("kept", self.kept, 1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOptions:
    """Process-local caches: how many values, for how long. A size of 0 turns a cache off."""

    normalized_items: int = 2048
    normalized_ttl_s: float = 1800.0
    embedding_items: int = 2048
    embedding_ttl_s: float = 900.0
    result_items: int = 1024
    result_ttl_s: float = 300.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        check(
            self,
            *(at_least(name, getattr(self, name), 0) for name in self.__slots__),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryOptions:
    """What the model sees of the catalog."""

    mode: Mode = "proxy"
    """How found tools reach the model: as tools of their own (``proxy``); in the result alone, so
    that the list of tools never changes (``stable``); loaded by the Responses API's own tool
    search (``native``); or native where the service takes it, else proxy (``auto``)."""
    search_name: str = "search_tools"
    call_name: str = "call_tool"
    """The names of the two meta-tools. If the host has a tool of such a name, ours gets another."""
    route_name: str = ""
    """The name of a third meta-tool that gives servers before tools; empty leaves it out."""
    next_name: str = ""
    """The name of a meta-tool that asks the graph what comes after tools; empty leaves it out."""
    min_tools: int = 0
    """A catalog with fewer tools than this goes to the model whole, without meta-tools."""
    context_share: float = 0.0
    """So does a catalog whose definitions take at most this share of ``context_tokens``."""
    context_tokens: int = 128_000
    preselect: int = 0
    """How many tools are found for each user message before the model is asked; 0 leaves finding to
    the model."""
    strict: bool = False
    """Mark a proxy's schema as strict where it keeps the rules of strict schemas."""
    proxies_per_search: int = 8
    proxies_per_conversation: int = 24
    max_tools: int = MODEL_TOOL_LIMIT
    """No request carries more tools than this, the host's own included."""
    prerequisite_proxies: bool = False
    """Make proxies of declared prerequisites outside the semantic window too."""
    result_token_budget: int = 1200
    """The most tokens (estimated) that one search result takes of the conversation."""
    schema_token_budget: int = 2500
    """The same for a search result that carries schemas: in mode ``stable``."""
    digest_token_budget: int = 300
    """The most tokens (estimated) that the search tool's digest of the catalog takes."""
    description_chars: int = 1024
    """How much is kept of a proxy's description."""
    next_steps: int = 0
    """How many likely next tools the answer to a tool call names; 0 names none."""

    @property
    def reserved(self) -> frozenset[str]:
        """The names that no tool may have."""
        return frozenset({self.search_name, self.call_name})

    def __post_init__(self) -> None:
        """Check the ranges."""
        check(
            self,
            one_of("mode", self.mode, Mode),
            _different(self.search_name, self.call_name, self.route_name, self.next_name),
            at_least("min_tools", self.min_tools, 0),
            share("context_share", self.context_share),
            at_least("context_tokens", self.context_tokens, 1),
            at_least("preselect", self.preselect, 0),
            at_least("proxies_per_search", self.proxies_per_search, 1),
            at_least("proxies_per_conversation", self.proxies_per_conversation, 1),
            at_least("max_tools", self.max_tools, 3),
            at_least("result_token_budget", self.result_token_budget, 100),
            at_least("schema_token_budget", self.schema_token_budget, 100),
            at_least("digest_token_budget", self.digest_token_budget, 0),
            at_least("description_chars", self.description_chars, 32),
            at_least("next_steps", self.next_steps, 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All options of a gateway."""

    search: SearchOptions = field(default_factory=SearchOptions)
    graph: GraphOptions = field(default_factory=GraphOptions)
    upstream: UpstreamOptions = field(default_factory=UpstreamOptions)
    cache: CacheOptions = field(default_factory=CacheOptions)
    discovery: DiscoveryOptions = field(default_factory=DiscoveryOptions)
    chat: ChatOptions = field(default_factory=ChatOptions)
    catalog: CatalogOptions = field(default_factory=CatalogOptions)
    usage: UsageOptions = field(default_factory=UsageOptions)
    capture_content: bool = False
    """Put queries, results and arguments on spans. Off by default: they are content."""
    vector_store_path: Path | None = None
    """Where vectors persist; None is ``vectors.sqlite3`` in the user's cache folder."""
    catalog_store_path: Path | None = None
    """Where tool lists and approvals persist; None is ``catalog.sqlite3`` in the same folder."""
    index: IndexOptions = field(default_factory=IndexOptions)
    index_path: Path | None = None
    """The folder where indexes are saved; None is ``index`` in the same folder."""

    def __post_init__(self) -> None:
        """Check the types."""
        check(self)


def check_strategy(strategy: Strategy) -> Strategy:
    """Give *strategy* back, checked.

    Raises:
        ConfigError: If there is no such strategy.
    """
    if strategy not in get_args(Strategy):
        known = ", ".join(get_args(Strategy))
        raise ConfigError(f"unknown strategy {strategy!r}; it is one of {known}")
    return strategy
