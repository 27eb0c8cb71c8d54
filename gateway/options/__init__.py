"""Options of a gateway, one frozen and keyword-only class for each subsystem.

docs/options.md lists all defaults. A `ConfigError` names all invalid values of an object at once.
Names of numbers end with their unit; ``limit`` and ``max_…`` without a unit are counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from gateway.options.policies import AccessPolicy as AccessPolicy
from gateway.options.policies import AuditOptions as AuditOptions
from gateway.options.programs import ProgramsOptions as ProgramsOptions
from gateway.options.search import SearchOptions as SearchOptions
from gateway.options.search import UsageOptions as UsageOptions
from gateway.options.validation import (
    Count,
    Meta,
    OptionObject,
    PositiveCount,
    Seconds,
    Share,
    Timeout,
)
from gateway.types import Access

Mode = Literal["proxy", "stable", "native", "auto"]
MODEL_TOOL_LIMIT = 128
"""Maximum number of tools in a Chat Completions request."""
Lifecycle = Literal["keep_alive", "idle", "ephemeral"]
Policy = Literal["warn", "block"]

_MIB = 1024 * 1024
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
Confirm = Literal["never", "destructive", "not_read_only", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryOptions(OptionObject):
    """Meta-tools, and the amount of the catalog that models see."""

    mode: Mode = "proxy"
    """Delivery of found tools to the model. ``proxy``: as tools. ``stable``: only in search
    results, so the list of tools never changes. ``native``: through the tool search of the
    Responses API. ``auto``: ``native`` if the service supports it, else ``proxy``."""
    search_name: str = "search_tools"
    call_name: str = "call_tool"
    """Name of the call meta-tool, which gets another name if the host has a tool of this name."""
    route_name: str = ""
    """Name of a third meta-tool that finds servers; empty omits it."""
    next_name: str = ""
    """Name of a meta-tool that returns next steps from the graph; empty omits it."""
    programs: bool = False
    """True lets the model write programs that call the tools it found; see `ProgramsOptions`."""
    run_name: str = "run_program"
    """Name of the meta-tool that runs programs."""
    min_tools: Count = 0
    """Minimum number of tools in the catalog for meta-tools. The model gets all of fewer tools."""
    context_share: Share = 0.0
    """Share of ``context_tokens``. If all definitions take at most this share, the model gets them
    instead of meta-tools. 0 turns this off."""
    context_tokens: PositiveCount = 128_000
    preselect: Count = 0
    """Number of tools that are searched for each user message and offered in the first request to
    the model; 0 turns this off."""
    strict: bool = False
    """True marks the schema of a proxy as strict if it follows the service's rules for that."""
    proxies_per_search: PositiveCount = 8
    proxies_per_conversation: PositiveCount = 24
    max_tools: Annotated[int, Meta(ge=3)] = MODEL_TOOL_LIMIT
    """Maximum number of tools in a request to the model, including the host's."""
    prerequisite_proxies: bool = False
    """True also makes proxies of declared prerequisites that are not in the window
    (`SearchOptions.window_min`)."""
    result_token_budget: Annotated[int, Meta(ge=100)] = 1200
    """Maximum number of tokens (estimated) of a search result for a model."""
    schema_token_budget: Annotated[int, Meta(ge=100)] = 1500
    """Maximum number of tokens (estimated) of a search result that includes parameters of tools: in
    mode ``stable`` and over MCP."""
    digest_token_budget: Count = 300
    """Maximum number of tokens (estimated) of the catalog summary in the search tool's
    description."""
    description_chars: Annotated[int, Meta(ge=32)] = 1024
    """Maximum length of a proxy's description, in characters."""
    parameters_chars: Annotated[int, Meta(ge=500)] = 8000
    """Maximum length of the JSON Schema of a tool's parameters for a model, in characters. If it is
    longer, descriptions are cut first, then deep parts."""
    next_steps: Count = 2
    """Maximum number of next tools that are named after the result of a tool call: declared ones,
    and those learned from past calls. 0 turns this off."""

    @property
    def reserved(self) -> frozenset[str]:
        """Names of the search and call meta-tools, which other tools cannot have."""
        return frozenset({self.search_name, self.call_name})

    def _fault(self) -> str:
        run_name = self.run_name if self.programs else ""
        names = (self.search_name, self.call_name, self.route_name, self.next_name, run_name)
        own_names = [name for name in names if name]
        return "two names of the meta-tools are equal" if len({*own_names}) < len(own_names) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions(OptionObject):
    """Limits of a conversation, and approval of calls."""

    max_turns: PositiveCount = 40
    """Maximum number of requests to the model in one call of the chat client."""
    max_seconds: Timeout | None = None
    """Time in seconds after which no further request is sent to the model; None sets no limit."""
    max_tokens: PositiveCount | None = None
    """Number of tokens in one call of the chat client after which no further request is sent. The
    service reports it; for most streams it is estimated. None sets no limit."""
    max_consecutive_errors: Count = 3
    """Number of consecutive turns with only failed calls that raises a `LoopError`; 0: no limit."""
    max_parallel_calls: PositiveCount = 8
    """Maximum number of simultaneous calls of one turn."""
    max_result_chars: Annotated[int, Meta(ge=1000)] = 60_000
    """Maximum characters of a tool result in the conversation. Longer ones are cut, with a note."""
    confirm: Confirm = "destructive"
    """Calls that need the host's ``approve``: ``never``; ``destructive``: calls of possibly
    destructive tools, including all tools of untrusted servers; ``not_read_only``: calls that may
    write; ``all``. Without ``approve``, these calls are refused. Under ``destructive``, only calls
    of tools that declare themselves destructive are then refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamOptions(OptionObject):
    """Timeouts, limits and sessions of servers."""

    connect_timeout_s: Timeout = 30.0
    list_timeout_s: Timeout = 20.0
    call_timeout_s: Timeout = 60.0
    ask_timeout_s: Timeout = 300.0
    """Timeout for a client to answer a tool's request, such as a question to the user, during which
    `call_timeout_s` pauses."""
    retry_after_s: Seconds = 30.0
    """Time after a failed listing of a server before a search lists it again."""
    listing_ttl_s: Seconds = 3600.0
    """Age of a tool list after which the next search refreshes it in the background."""
    cleanup_s: Seconds = 300.0
    """Interval at which searches delete, in the background, tool lists that were unused for a
    month."""
    max_stale_s: Seconds = 7 * 24 * 3600.0
    """Maximum age of a stored tool list, in addition to `listing_ttl_s`, at which it is used before
    it is refreshed. Searches wait for the refresh of an older list."""
    first_listing_s: Timeout = 10.0
    """Maximum time that the first search waits for a server without a stored tool list. Later tools
    are added later."""
    failure_ttl_s: Seconds = 0.0
    """Time for which a first search skips a server without a stored tool list, after an earlier
    process failed to list it in a second or more. Commands use 600."""
    stored_only: bool = False
    """True uses stored tool lists of any age, and neither starts nor lists servers. A server
    without a stored list has no tools."""
    connect_attempts: PositiveCount = 3
    """Maximum number of attempts to connect to a server."""
    backoff_s: Seconds = 0.2
    backoff_max_s: Seconds = 5.0
    """Maximum pause between two attempts to connect. The pause starts at `backoff_s` and doubles,
    with jitter."""
    breaker_failures: PositiveCount = 5
    """Number of consecutive failures that open a server's circuit breaker. The gateway then skips
    the server."""
    breaker_s: Seconds = 2.0
    breaker_max_s: Seconds = 60.0
    """Maximum time for which a server's circuit breaker is open. The time starts at `breaker_s` and
    doubles with each opening, with jitter. Then one use probes the server. After `breaker_max_s`
    without a failure, the time starts at `breaker_s` again."""
    lifecycle: Lifecycle = "keep_alive"
    """Time at which the session of a server ends: ``keep_alive`` (never), ``idle`` (after
    `idle_timeout_s` without use) or ``ephemeral`` (after each use)."""
    idle_timeout_s: Seconds = 300.0
    """Time without use after which the session of a server ends, if the lifecycle is ``idle``."""
    max_in_flight: PositiveCount = 64
    """Maximum number of simultaneous requests to one server. Further requests wait."""
    max_pages: PositiveCount = 100
    max_tools: PositiveCount = 5000
    max_resources: Count = 1000
    """Maximum number of resources and prompts of one server, counted together."""
    max_description_chars: Annotated[int, Meta(ge=64)] = 8000
    """Maximum length of a tool's description, in characters; the rest is cut."""
    max_schema_bytes: Annotated[int, Meta(ge=1024)] = 256 * 1024
    """Maximum size of a tool's schemas. Tools with larger schemas are left out."""
    max_listing_bytes: PositiveCount = 8 * _MIB
    """Maximum total size of a server's tool definitions. Tools beyond it are left out."""
    max_listing_cpu_s: Timeout = 4.0
    """Maximum CPU time for checking the tools of a server. Tools that were not checked by then are
    left out."""
    max_message_bytes: Annotated[int, Meta(ge=1024)] = 8 * _MIB
    """Maximum size of one message from a server. A longer message is never read into memory."""
    max_message_values: PositiveCount = 250_000
    """Maximum number of JSON values in one message from a server. A message with more is not
    parsed."""
    max_messages_per_s: PositiveCount = 500
    """Maximum rate at which a server may send messages that are not answers. Bursts of four times
    this number are allowed. Faster servers are disconnected."""
    max_bytes_per_s: Annotated[int, Meta(ge=64 * 1024)] = 32 * _MIB
    """Maximum rate at which bytes are read from a server."""
    max_result_bytes: Annotated[int, Meta(ge=1024)] = 4 * _MIB
    """Maximum size of a tool's result. Larger results become errors."""
    on_change: Policy = "warn"
    """Handling of a tool, or of a configured command line, that differs from the approved one.
    ``warn`` reports it in search results. ``block`` leaves the tool or server out until it is
    approved."""
    on_suspicion: Policy = "warn"
    """Handling of a tool whose definition looks like an attack on a model: ``warn`` or ``block``,
    as in `on_change`."""
    max_user_sessions: PositiveCount = 100
    """Maximum number of sessions to one server that needs the credentials of each user. A further
    user ends the least recently used session. Each session ends after ``idle_timeout_s`` without
    use."""
    private_hosts: tuple[str, ...] = ()
    """Host names, addresses or networks (``10.0.0.0/8``) of your own servers, which may have
    private addresses and use plain HTTP. Loopback is always allowed, and metadata services never.
    """

    def _fault(self) -> str:
        floors = {
            "backoff_max_s": "backoff_s",
            "breaker_max_s": "breaker_s",
            "max_listing_bytes": "max_schema_bytes",
        }
        for name, floor in floors.items():
            if getattr(self, name) < getattr(self, floor):
                return f"{name} must be at least {floor}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions(OptionObject):
    """Sources of edges between tools of the graph. Documents of the host override them."""

    bundled: bool = True
    """True adds the edges of the plugin ``bundled``, which knows the tools of common servers."""
    groups: bool = True
    """True groups tools of one server that share a word of their names, or a category."""
    phases: bool = True
    """True orders tools for one kind of thing: first find or create it, then inspect it, then act
    on it."""
    suppliers: bool = True
    """True makes a tool that returns X a supplier of tools with a required argument called X. The
    supplier must have no required arguments, or X must have several words (``city_code``)."""
    resolvers: bool = True
    """True puts a tool that finds X by a text, or lists X, before tools of its server with a
    required argument ``X_id``."""
    calendar: bool = True
    """True makes a tool that returns the current date or time a supplier of tools with a required
    date."""
    checks: bool = True
    """True puts a tool that validates X before tools that need X."""
    sign_in: bool = True
    """True puts a tool that signs in to a service before tools that use the service."""
    connection: bool = True
    """True puts a tool that tests the internet connection before tools that sign in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions(OptionObject):
    """Storage of search indexes. Saved ones make the next start faster."""

    rows: Literal["memory", "pgvector"] = "memory"
    """Place of the vectors: ``memory`` of each process, or ``pgvector``, the PostgreSQL database of
    the store with its extension ``vector``. Indexes with ``pgvector`` are not saved."""
    saved: bool = True
    """True saves indexes to files and reads them at the next start. If the host has its own vector
    store, ``Options.index_path`` is needed too."""
    min_tools: PositiveCount = 200
    """Minimum number of entities in an index that is saved. Smaller indexes are built quickly."""
    kept: PositiveCount = 4
    """Maximum number of saved indexes. The least recently used ones are deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOptions(OptionObject):
    """Sizes and lifetimes of the caches of one process. Size 0 turns a cache off."""

    normalized_items: Count = 2048
    normalized_ttl_s: Seconds = 1800.0
    embedding_items: Count = 2048
    embedding_ttl_s: Seconds = 900.0
    result_items: Count = 1024
    result_ttl_s: Seconds = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomKind(OptionObject):
    """A kind of catalog entries, declared by the host."""

    searchable: tuple[str, ...] = ()
    """Dot paths of the metadata that is searched. Other metadata is only stored and returned."""
    max_entries: PositiveCount = 10_000
    """Maximum number of entries of this kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOptions(OptionObject):
    """Entities other than tools of servers."""

    kinds: Mapping[str, CustomKind] = field(default_factory=dict)
    """Kinds of entries that the host declares, keyed by name. Entries of undeclared kinds are found
    by their names and texts, but not by their metadata."""
    max_entries: PositiveCount = 100_000
    """Maximum number of entries of all kinds together."""
    servers: bool = True
    """True makes every MCP server an entity of the catalog, which searches can find."""
    rules: Mapping[str, Access] = field(default_factory=dict)
    """Rules for visibility and search texts, keyed by a pattern of ``server/name``:
    ``{"*/delete_*": Access(scopes={"admin"})}``. A pattern ``server`` matches the server itself.
    All matching rules apply, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(OptionObject):
    """All options of a gateway.

    Example:
        >>> from gateway import Options
        >>> from gateway.options import SearchOptions
        >>> Options(search=SearchOptions(limit=8)).search.limit
        8
    """

    search: SearchOptions = field(default_factory=SearchOptions)
    graph: GraphOptions = field(default_factory=GraphOptions)
    upstream: UpstreamOptions = field(default_factory=UpstreamOptions)
    cache: CacheOptions = field(default_factory=CacheOptions)
    discovery: DiscoveryOptions = field(default_factory=DiscoveryOptions)
    chat: ChatOptions = field(default_factory=ChatOptions)
    catalog: CatalogOptions = field(default_factory=CatalogOptions)
    usage: UsageOptions = field(default_factory=UsageOptions)
    programs: ProgramsOptions = field(default_factory=ProgramsOptions)
    audit: AuditOptions = field(default_factory=AuditOptions)
    policies: tuple[AccessPolicy, ...] = ()
    """Rules for who may find and call which tools. Policies of a configuration file follow
    these."""
    plugins: tuple[str, ...] | None = None
    """Names of the plugins to load; None loads all installed plugins. The variable
    ``GATEWAY_PLUGINS`` also sets them: names separated by commas, or ``none``."""
    capture_content: bool = False
    """True adds queries, results and arguments to telemetry spans."""
    store: str = field(default="", repr=False)
    """PostgreSQL database for vectors, catalog and calls, which several processes can share:
    ``postgresql://…``, or a reference such as ``env:NAME``. Empty uses files."""
    host_key: str = field(default="", repr=False)
    """Secret of at least 32 characters, or a reference to it, from which the keys of a shared store
    are derived. Of several secrets, separated by commas, the first encrypts and all decrypt.
    """
    installation: str = ""
    """Name that all replicas of one installation share. Approvals for a configuration file are
    stored under this name instead of under the file's path. Each configuration in a store needs its
    own name."""
    public_url: str = ""
    """Address of ``gateway serve --http`` as users reach it, such as ``https://gateway.example``.
    Below it, users sign in to servers that need their own credentials. If the gateway listens on
    loopback, it is set automatically."""
    vector_store_path: Path | None = None
    """File of vectors; None is ``vectors.sqlite3`` in the user's cache folder."""
    catalog_store_path: Path | None = None
    """File of tool lists and approvals; None is ``catalog.sqlite3`` in the same folder."""
    index: IndexOptions = field(default_factory=IndexOptions)
    index_path: Path | None = None
    """Folder of saved indexes; None is ``index`` in the same folder."""

    def _fault(self) -> str:
        url = urlsplit(self.public_url)
        is_local = url.scheme == "http" and url.hostname in _LOOPBACK
        if self.public_url and not (url.hostname and (url.scheme == "https" or is_local)):
            return "public_url must be an https address, or one of this machine"
        return ""
