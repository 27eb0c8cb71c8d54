"""Option objects, and the one function that reads the environment.

* Frozen, keyword-only, one a subsystem, every default visible here and listed in docs/options.md.
* All faults of an object are told at once.
* Numbers carry their unit in their name; ``limit`` and ``max_…`` are counts.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal, get_args

import platformdirs

from gateway.errors import ConfigError
from gateway.types import Strategy

VERSION = version("tool-gateway")
Prerequisites = Literal["declared", "window", "off"]
Mode = Literal["proxy", "stable", "native", "auto"]
Confirm = Literal["destructive", "not_read_only", "all"]
MODEL_TOOL_LIMIT = 128
"""More tools than this no Chat Completions request may carry."""


def _check(owner: object, *faults: str) -> None:
    told = [fault for fault in faults if fault]
    if told:
        raise ConfigError(f"{type(owner).__name__}: {'; '.join(told)}")


def _at_least(name: str, value: float, least: float) -> str:
    return "" if value >= least else f"{name} must be at least {least}, got {value}"


def _share(name: str, value: float) -> str:
    return "" if 0 <= value <= 1 else f"{name} must be between 0 and 1, got {value}"


def _one_of(name: str, value: str, choices: object) -> str:
    *known, last = get_args(choices)
    return (
        ""
        if value in {*known, last}
        else f"{name} must be {', '.join(known)} or {last}, got {value!r}"
    )


def _different(*names: str) -> str:
    given = [name for name in names if name]
    return "" if len({*given}) == len(given) else "two names of the meta-tools are equal"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How a search looks and how much it may find."""

    limit: int = 5
    """Matches a search gives when nobody says how many."""
    max_limit: int = 50
    """The most that anybody may ask for."""
    max_query_chars: int = 4096
    """A longer query is cut here, with a diagnostic."""
    max_queries: int = 8
    """The most queries that one search takes."""
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
    prerequisites: Prerequisites = "declared"
    """Which prerequisites are listed: ``declared`` ones from anywhere and derived ones inside the
    window, only those inside the ``window``, or none (``off``)."""
    min_confidence: float = 0.35
    """Below this for the best match, the result says ``low_confidence_results``."""
    no_match_confidence: float = 0.12
    """Below this for the best match, the result is empty: it says ``no_match`` and what is
    nearest; over a catalog of tools with little in common below less, down to a quarter; 0 never
    empties."""
    spelling: bool = True
    """Mend misspelt words of a query, without a model; the words as typed count as well."""
    lexical_weight: float = 0.4
    """What a standard deviation in words counts beside one in vectors, in `auto`, at the most."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check(
            self,
            _at_least("limit", self.limit, 1),
            _at_least("max_limit", self.max_limit, self.limit),
            _at_least("max_query_chars", self.max_query_chars, 16),
            _at_least("max_queries", self.max_queries, 1),
            _at_least("pool_min", self.pool_min, 1),
            _at_least("window_min", self.window_min, 1),
            _share("window_margin", self.window_margin),
            _one_of("prerequisites", self.prerequisites, Prerequisites),
            _share("min_confidence", self.min_confidence),
            _share("no_match_confidence", self.no_match_confidence),
            _at_least("lexical_weight", self.lexical_weight, 0),
        )

    def pool(self, limit: int) -> int:
        """How many candidates may be re-scored for *limit* matches."""
        return max(self.pool_min, self.pool_factor * limit)

    def window(self, limit: int) -> int:
        """From how many of the first candidates supplements may come for *limit* matches."""
        return max(self.window_min, self.window_factor * limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions:
    """Which edges are derived where nobody wrote them. A host's own documents override them."""

    groups: bool = True
    """Tools of one server that share a word of their names, or a category."""
    phases: bool = True
    """What finds, then what inspects, then what acts on the same thing."""
    data_flow: bool = True
    """A field of one tool's output is a required argument of another."""
    suppliers: bool = True
    """A tool that needs nothing and gets X feeds an argument called X."""
    sign_in: bool = True
    """What signs in to something comes before what uses it."""
    mentions: bool = True
    """A description that names another tool of its server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamOptions:
    """What a server may take of our time and memory."""

    connect_timeout_s: float = 30.0
    list_timeout_s: float = 20.0
    call_timeout_s: float = 60.0
    retry_after_s: float = 30.0
    """A source that could not be listed is tried again after this long, at the next search."""
    max_pages: int = 100
    max_tools: int = 5000
    max_description_chars: int = 8000
    """What is kept of a tool's description; the rest is never read."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check(
            self,
            _at_least("connect_timeout_s", self.connect_timeout_s, 0.001),
            _at_least("list_timeout_s", self.list_timeout_s, 0.001),
            _at_least("call_timeout_s", self.call_timeout_s, 0.001),
            _at_least("retry_after_s", self.retry_after_s, 0),
            _at_least("max_pages", self.max_pages, 1),
            _at_least("max_tools", self.max_tools, 1),
            _at_least("max_description_chars", self.max_description_chars, 64),
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
        _check(
            self,
            *(_at_least(name, getattr(self, name), 0) for name in self.__slots__),
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
    """The names of the two meta-tools; a host's tool of the same name wins, ours moves aside."""
    route_name: str = ""
    """The name of a third meta-tool that gives servers before tools; empty leaves it out."""
    next_name: str = ""
    """The name of a meta-tool that asks the graph what comes after tools; empty leaves it out."""
    min_tools: int = 0
    """A catalog with fewer tools than this goes to the model whole, without meta-tools."""
    context_share: float = 0.0
    """So does one whose definitions take at most this share of ``context_tokens``."""
    context_tokens: int = 128_000
    preselect: int = 0
    """Tools found for each user message before the model is asked; 0 leaves that to the model."""
    strict: bool = False
    """Mark a proxy's schema as strict where it keeps the rules of strict schemas."""
    proxies_per_search: int = 8
    proxies_per_conversation: int = 24
    max_tools: int = MODEL_TOOL_LIMIT
    """No request carries more tools than this, the host's own counted."""
    prerequisite_proxies: bool = False
    """Show declared prerequisites as proxies also from outside the semantic window."""
    result_token_budget: int = 1200
    """The most tokens (estimated) that one search result takes of the conversation."""
    schema_token_budget: int = 2500
    """The same for a search result that carries schemas: in mode ``stable``."""
    digest_token_budget: int = 300
    """The most tokens (estimated) that the search tool's digest of the catalog takes."""
    description_chars: int = 1024
    """What is kept of a proxy's description."""
    next_steps: int = 0
    """How many likely next tools the answer to a tool call names; 0 names none."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check(
            self,
            _one_of("mode", self.mode, Mode),
            _different(self.search_name, self.call_name, self.route_name, self.next_name),
            _at_least("min_tools", self.min_tools, 0),
            _share("context_share", self.context_share),
            _at_least("context_tokens", self.context_tokens, 1),
            _at_least("preselect", self.preselect, 0),
            _at_least("proxies_per_search", self.proxies_per_search, 1),
            _at_least("proxies_per_conversation", self.proxies_per_conversation, 1),
            _at_least("max_tools", self.max_tools, 3),
            _at_least("result_token_budget", self.result_token_budget, 100),
            _at_least("schema_token_budget", self.schema_token_budget, 100),
            _at_least("digest_token_budget", self.digest_token_budget, 0),
            _at_least("description_chars", self.description_chars, 32),
            _at_least("next_steps", self.next_steps, 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """How far the loop around the model goes on its own."""

    max_turns: int = 40
    """Requests to the model within one call of the wrapper."""
    max_seconds: float | None = None
    """No request goes out this long after the call began; None sets no limit."""
    max_tokens: int | None = None
    """No request goes out once the turns used so many tokens, as the service reports them."""
    max_consecutive_errors: int = 3
    """Turns in a row in which every call failed; 0 sets no limit."""
    max_parallel_calls: int = 8
    """Tool calls of one turn that run at the same time."""
    max_result_chars: int = 60_000
    """A longer tool result is cut in the conversation, and says so."""
    confirm: Confirm = "destructive"
    """Which calls the host's ``approve`` is asked about: tools that may destroy (of a server that
    is not trusted, also those that say nothing about it), all that may write, or all."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check(
            self,
            _at_least("max_turns", self.max_turns, 1),
            _at_least("max_seconds", 1 if self.max_seconds is None else self.max_seconds, 0.001),
            _at_least("max_tokens", 1 if self.max_tokens is None else self.max_tokens, 1),
            _at_least("max_consecutive_errors", self.max_consecutive_errors, 0),
            _at_least("max_parallel_calls", self.max_parallel_calls, 1),
            _at_least("max_result_chars", self.max_result_chars, 1000),
            _one_of("confirm", self.confirm, Confirm),
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
    capture_content: bool = False
    """Put queries, results and arguments on spans. Off: they are content, not telemetry."""
    vector_store_path: Path | None = None
    """Where vectors persist; None is ``vectors.sqlite3`` in the user's cache folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the process environment says."""

    cache_dir: Path
    """``GATEWAY_CACHE_DIR``, else the user's cache folder."""
    capture_content: bool
    """``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` asks for content on spans."""
    openai_configured: bool
    """``OPENAI_API_KEY`` or ``OPENAI_BASE_URL`` is set."""
    openai_model: str
    """``GATEWAY_MODEL``: the chat model of the demo."""


def environment(variables: Mapping[str, str] | None = None) -> Environment:
    """Read the environment. Nothing else in the package does.

    Args:
        variables: The variables to read; None is the process's own.
    """
    values = os.environ if variables is None else variables
    folder = values.get("GATEWAY_CACHE_DIR", "").strip()
    capture = values.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").strip().upper()
    return Environment(
        cache_dir=Path(folder) if folder else Path(platformdirs.user_cache_dir("tool-gateway")),
        capture_content=capture in {"TRUE", "SPAN_ONLY", "SPAN_AND_EVENT"},
        openai_configured=bool(values.get("OPENAI_API_KEY") or values.get("OPENAI_BASE_URL")),
        openai_model=values.get("GATEWAY_MODEL", "gpt-5.4-mini"),
    )


def resolved(options: Options) -> Options:
    """Fill in what *options* leave to the environment."""
    capture = options.capture_content or environment().capture_content
    return replace(options, capture_content=capture)


def vector_store_path(options: Options) -> Path:
    """Say where vectors persist."""
    return options.vector_store_path or environment().cache_dir / "vectors.sqlite3"


def check_strategy(strategy: Strategy) -> Strategy:
    """Give *strategy* back.

    Raises:
        ConfigError: If there is no such strategy.
    """
    if strategy not in get_args(Strategy):
        known = ", ".join(get_args(Strategy))
        raise ConfigError(f"unknown strategy {strategy!r}; it is one of {known}")
    return strategy


def vocabulary_dir(variables: Mapping[str, str] | None = None) -> Path:
    """Say where tiktoken keeps the vocabularies that it has fetched.

    Args:
        variables: The variables to read; None is the process's own environment.
    """
    values = os.environ if variables is None else variables
    named = values.get("TIKTOKEN_CACHE_DIR") or values.get("DATA_GYM_CACHE_DIR")
    return Path(named) if named else Path(tempfile.gettempdir()) / "data-gym-cache"


def variables(needed: frozenset[str]) -> dict[str, str]:
    """Give those of the *needed* environment variables that are set."""
    return {name: os.environ[name] for name in needed if name in os.environ}
