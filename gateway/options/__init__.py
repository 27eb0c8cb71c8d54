"""Option objects.

* Frozen, keyword-only, one for each subsystem. Every default is visible here and listed in
  docs/options.md.
* All faults of an object are reported at once.
* Numbers carry their unit in their name; ``limit`` and ``max_…`` are counts.
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
"""How many tools a Chat Completions request may carry."""
Lifecycle = Literal["keep_alive", "idle", "ephemeral"]
Policy = Literal["warn", "block"]

_MIB = 1024 * 1024
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
Confirm = Literal["never", "destructive", "not_read_only", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryOptions(OptionObject):
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
    programs: bool = False
    """Whether the model may write programs over the found tools; see `ProgramsOptions`."""
    run_name: str = "run_program"
    """The name of the meta-tool that runs them."""
    min_tools: Count = 0
    """A catalog with fewer tools than this goes to the model whole, without meta-tools."""
    context_share: Share = 0.0
    """So does a catalog whose definitions take at most this share of ``context_tokens``."""
    context_tokens: PositiveCount = 128_000
    preselect: Count = 0
    """How many tools are found for each user message before the model is asked; 0 leaves finding to
    the model."""
    strict: bool = False
    """Mark a proxy's schema as strict where it keeps the rules of strict schemas."""
    proxies_per_search: PositiveCount = 8
    proxies_per_conversation: PositiveCount = 24
    max_tools: Annotated[int, Meta(ge=3)] = MODEL_TOOL_LIMIT
    """No request carries more tools than this, the host's own included."""
    prerequisite_proxies: bool = False
    """Make proxies of declared prerequisites outside the semantic window too."""
    result_token_budget: Annotated[int, Meta(ge=100)] = 1200
    """The most tokens (estimated) that one search result takes of the conversation."""
    schema_token_budget: Annotated[int, Meta(ge=100)] = 1500
    """The same for a search result that carries parameters: in mode ``stable`` and over MCP."""
    digest_token_budget: Count = 300
    """The most tokens (estimated) that the search tool's digest of the catalog takes."""
    description_chars: Annotated[int, Meta(ge=32)] = 1024
    """How much is kept of a proxy's description."""
    next_steps: Count = 0
    """How many likely next tools the answer to a tool call names; 0 names none."""

    @property
    def reserved(self) -> frozenset[str]:
        """The names that no tool may have."""
        return frozenset({self.search_name, self.call_name})

    def _fault(self) -> str:
        run_name = self.run_name if self.programs else ""
        names = (self.search_name, self.call_name, self.route_name, self.next_name, run_name)
        own_names = [name for name in names if name]
        return "two names of the meta-tools are equal" if len({*own_names}) < len(own_names) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions(OptionObject):
    """How far the loop around the model goes on its own."""

    max_turns: PositiveCount = 40
    """Requests to the model within one call of the wrapper."""
    max_seconds: Timeout | None = None
    """No request goes out this long after the call began; None sets no limit."""
    max_tokens: PositiveCount | None = None
    """No request goes out once the turns used so many tokens, as the service reports them;
    estimated where it does not, as in most streams."""
    max_consecutive_errors: Count = 3
    """Turns in a row in which every call failed; 0 sets no limit."""
    max_parallel_calls: PositiveCount = 8
    """Tool calls of one turn that run at the same time."""
    max_result_chars: Annotated[int, Meta(ge=1000)] = 60_000
    """A longer tool result is cut in the conversation, and says so."""
    confirm: Confirm = "destructive"
    """Which calls the host's ``approve`` is asked about: none, tools that may destroy (of a server
    that is not trusted, all), all that may write, or all. Without ``approve`` they are refused; but
    of what may destroy, only tools that say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamOptions(OptionObject):
    """How much time and memory a server may take, and how its session is kept."""

    connect_timeout_s: Timeout = 30.0
    list_timeout_s: Timeout = 20.0
    call_timeout_s: Timeout = 60.0
    ask_timeout_s: Timeout = 300.0
    """How long a client may take to answer what a tool asks for; `call_timeout_s` rests then."""
    retry_after_s: Seconds = 30.0
    """A source that could not be listed is tried again after this long, at the next search."""
    listing_ttl_s: Seconds = 3600.0
    """A tool list older than this is listed again in the background, by the next search."""
    cleanup_s: Seconds = 300.0
    """How often a search deletes, in the background, lists that were not used for a month."""
    max_stale_s: Seconds = 7 * 24 * 3600.0
    """A stored list that is older than `listing_ttl_s` by more than this is read anew before it
    serves."""
    first_listing_s: Timeout = 10.0
    """How long the first search waits for a server that was never listed; it comes in later."""
    failure_ttl_s: Seconds = 0.0
    """A server that was never listed, and by a failure cost an earlier process a second or more, is
    not tried at the first search if that was no longer ago than this; commands take 600."""
    stored_only: bool = False
    """Whether stored tool lists serve at any age, and no server is started or asked to list its
    tools; one that was never listed has none."""
    connect_attempts: PositiveCount = 3
    """How many times a server is tried before connecting has failed."""
    backoff_s: Seconds = 0.2
    backoff_max_s: Seconds = 5.0
    """The pause between attempts: from the first of these, doubling, to the second, with jitter."""
    breaker_failures: PositiveCount = 5
    """After so many failures in a row a server is left alone …"""
    breaker_s: Seconds = 2.0
    breaker_max_s: Seconds = 60.0
    """… for the first of these, doubling, up to the second, with jitter; then one use probes it.
    After the second without a failure the times begin anew."""
    lifecycle: Lifecycle = "keep_alive"
    """When a session ends by itself: never (``keep_alive``), when it was not used for a while
    (``idle``), or after each use (``ephemeral``)."""
    idle_timeout_s: Seconds = 300.0
    """How long that while is."""
    max_in_flight: PositiveCount = 64
    """Requests to one server at the same time; more wait for their turn."""
    max_pages: PositiveCount = 100
    max_tools: PositiveCount = 5000
    max_resources: Count = 1000
    """Resources and prompts of one server, together."""
    max_description_chars: Annotated[int, Meta(ge=64)] = 8000
    """What is kept of a tool's description; the rest is never read."""
    max_schema_bytes: Annotated[int, Meta(ge=1024)] = 256 * 1024
    """A tool whose schemas are larger is left out."""
    max_listing_bytes: PositiveCount = 8 * _MIB
    """If the tools of one server are larger together, the rest is left out."""
    max_listing_cpu_s: Timeout = 4.0
    """The same if they take longer to check."""
    max_message_bytes: Annotated[int, Meta(ge=1024)] = 8 * _MIB
    """A longer message of a server is never held in memory."""
    max_message_values: PositiveCount = 250_000
    """A message of more JSON values is never parsed."""
    max_messages_per_s: PositiveCount = 500
    """Messages that no request asked for: a server that sends more, or four seconds' worth of them
    at once, is disconnected."""
    max_bytes_per_s: Annotated[int, Meta(ge=64 * 1024)] = 32 * _MIB
    """A server that sends faster is read more slowly."""
    max_result_bytes: Annotated[int, Meta(ge=1024)] = 4 * _MIB
    """A larger answer of a tool is an error that says so."""
    on_change: Policy = "warn"
    """What happens to a tool, or a configured command line, that is not as it was approved: the
    result says so (``warn``), or it is left out until it is approved (``block``)."""
    on_suspicion: Policy = "warn"
    """The same for a tool whose definition looks like an attack on a model."""
    max_user_sessions: PositiveCount = 100
    """Sessions to one server whose credentials are the users': one more ends the one that was not
    used for longest. Each ends when it was not used for ``idle_timeout_s``."""
    private_hosts: tuple[str, ...] = ()
    """Host names, addresses or networks (``10.0.0.0/8``) of servers in the host's own network: they
    may be private and speak plain HTTP. Loopback needs no entry; metadata services never get
    one."""

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
    """The rules that derive edges. The host's own documents override them."""

    groups: bool = True
    """Tools of one server that share a word of their names, or a category."""
    phases: bool = True
    """What finds or makes a thing comes before what inspects it, then comes what acts on it."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions(OptionObject):
    """Indexes that outlive the process, so that the next start reads what this one made."""

    rows: Literal["memory", "pgvector"] = "memory"
    """Where the vectors of entities are: in each process, or in the PostgreSQL database of the
    store, which needs the extension ``vector`` (pgvector). Such indexes are not saved."""
    saved: bool = True
    """Whether they are saved and read. If the host gives a vector store of its own, they are only
    if ``Options.index_path`` says where."""
    min_tools: PositiveCount = 200
    """An index of fewer tools is not saved: it is made fast enough."""
    kept: PositiveCount = 4
    """How many are kept; those that were not used for longest are deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOptions(OptionObject):
    """Process-local caches: how many values, for how long. A size of 0 turns a cache off."""

    normalized_items: Count = 2048
    normalized_ttl_s: Seconds = 1800.0
    embedding_items: Count = 2048
    embedding_ttl_s: Seconds = 900.0
    result_items: Count = 1024
    result_ttl_s: Seconds = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomKind(OptionObject):
    """A kind of entries that the host declares."""

    searchable: tuple[str, ...] = ()
    """The parts of the metadata that entries are found by, as dot paths; the others are kept and
    shown alone."""
    max_entries: PositiveCount = 10_000
    """The most entries of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOptions(OptionObject):
    """What the catalog holds besides what servers list."""

    kinds: Mapping[str, CustomKind] = field(default_factory=dict)
    """Kinds of your own, by name. An entry of an undeclared kind is found by its name and
    its texts, not by its metadata."""
    max_entries: PositiveCount = 100_000
    """The most entries of all kinds."""
    servers: bool = True
    """Whether every MCP server is an entity beside its tools."""
    rules: Mapping[str, Access] = field(default_factory=dict)
    """Status, tags, scopes, search texts and examples by a pattern of names, ``server/name``:
    ``{"*/delete_*": Access(scopes={"admin"})}``. A server itself is ``server``. All that match
    count, the later ones last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(OptionObject):
    """All options of a gateway."""

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
    """Which caller may find and call what; those of a configuration come after these."""
    plugins: tuple[str, ...] | None = None
    """Names of the plugins to load; None is all that are installed. The variable
    ``GATEWAY_PLUGINS`` gives them too: names separated by commas, or ``none``."""
    capture_content: bool = False
    """Put queries, results and arguments on spans. Off by default: they are content."""
    store: str = field(default="", repr=False)
    """A PostgreSQL database in place of the files of vectors, catalog and calls, which many
    processes may share: ``postgresql://…``, or a reference to that such as ``env:NAME``."""
    host_key: str = field(default="", repr=False)
    """A secret of 32 characters or more from which the keys of a shared store are derived, or a
    reference to it. Several, separated by commas: the first one encrypts, all decrypt."""
    installation: str = ""
    """What approvals of configuration files belong to instead of their paths: a name that all
    replicas have. One for each configuration in a store."""
    public_url: str = ""
    """Where users reach ``gateway serve --http``, such as ``https://gateway.example``: they sign in
    below it to servers whose credentials are theirs. On loopback it is known without."""
    vector_store_path: Path | None = None
    """Where vectors persist; None is ``vectors.sqlite3`` in the user's cache folder."""
    catalog_store_path: Path | None = None
    """Where tool lists and approvals persist; None is ``catalog.sqlite3`` in the same folder."""
    index: IndexOptions = field(default_factory=IndexOptions)
    index_path: Path | None = None
    """The folder where indexes are saved; None is ``index`` in the same folder."""

    def _fault(self) -> str:
        url = urlsplit(self.public_url)
        is_local = url.scheme == "http" and url.hostname in _LOOPBACK
        if self.public_url and not (url.hostname and (url.scheme == "https" or is_local)):
            return "public_url must be an https address, or one of this machine"
        return ""
