"""How much time and memory a server may take, and what is trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gateway.checks import at_least, check, one_of

Lifecycle = Literal["keep_alive", "idle", "ephemeral"]
Policy = Literal["warn", "block"]

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamOptions:
    """How much time and memory a server may take, and how its session is kept."""

    connect_timeout_s: float = 30.0
    list_timeout_s: float = 20.0
    call_timeout_s: float = 60.0
    ask_timeout_s: float = 300.0
    """How long a client may take to answer what a tool asks for; `call_timeout_s` rests then."""
    retry_after_s: float = 30.0
    """A source that could not be listed is tried again after this long, at the next search."""
    listing_ttl_s: float = 3600.0
    """A tool list older than this is listed again in the background, by the next search."""
    cleanup_s: float = 300.0
    """How often a search has lists forgotten, in the background, that nobody used for a month."""
    max_stale_s: float = 7 * 24 * 3600.0
    """A stored list that is older than `listing_ttl_s` by more than this is read anew before it
    serves."""
    first_listing_s: float = 10.0
    """How long the first search waits for a server that was never listed; it comes in later."""
    connect_attempts: int = 3
    """How many times a server is tried before connecting has failed."""
    backoff_s: float = 0.2
    backoff_max_s: float = 5.0
    """The pause between attempts: from the first of these, doubling, to the second, with jitter."""
    breaker_failures: int = 5
    """After so many failures in a row a server is left alone …"""
    breaker_s: float = 2.0
    breaker_max_s: float = 60.0
    """… for the first of these, doubling, up to the second, with jitter; then one use probes it."""
    lifecycle: Lifecycle = "keep_alive"
    """When a session ends by itself: never (``keep_alive``), when it was not used for a while
    (``idle``), or after each use (``ephemeral``)."""
    idle_timeout_s: float = 300.0
    """How long that while is."""
    max_in_flight: int = 64
    """Requests to one server at the same time; more wait for their turn."""
    max_pages: int = 100
    max_tools: int = 5000
    max_things: int = 1000
    """Resources and prompts of one server, together."""
    max_description_chars: int = 8000
    """What is kept of a tool's description; the rest is never read."""
    max_schema_bytes: int = 256 * 1024
    """A tool whose schemas are larger is left out."""
    max_listing_bytes: int = 32 * _MIB
    """If the tools of one server are larger together, the rest is left out."""
    max_message_bytes: int = 8 * _MIB
    """A longer message of a server is never held in memory."""
    max_result_bytes: int = 4 * _MIB
    """A larger answer of a tool is an error that says so."""
    on_change: Policy = "warn"
    """What happens to a tool, or a configured command line, that is not as it was approved: the
    result says so (``warn``), or it is left out until somebody approves it (``block``)."""
    on_suspicion: Policy = "warn"
    """The same for a tool whose definition looks like an attack on a model."""
    private_hosts: tuple[str, ...] = ()
    """Host names, or addresses, of servers in the host's own network: they may be private and
    speak plain HTTP. Loopback needs no entry; metadata services never get one."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        check(
            self,
            at_least("connect_timeout_s", self.connect_timeout_s, 0.001),
            at_least("list_timeout_s", self.list_timeout_s, 0.001),
            at_least("call_timeout_s", self.call_timeout_s, 0.001),
            at_least("ask_timeout_s", self.ask_timeout_s, 0.001),
            at_least("retry_after_s", self.retry_after_s, 0),
            at_least("listing_ttl_s", self.listing_ttl_s, 0),
            at_least("cleanup_s", self.cleanup_s, 0),
            at_least("max_stale_s", self.max_stale_s, 0),
            at_least("first_listing_s", self.first_listing_s, 0.001),
            at_least("connect_attempts", self.connect_attempts, 1),
            at_least("backoff_s", self.backoff_s, 0),
            at_least("backoff_max_s", self.backoff_max_s, self.backoff_s),
            at_least("breaker_failures", self.breaker_failures, 1),
            at_least("breaker_s", self.breaker_s, 0),
            at_least("breaker_max_s", self.breaker_max_s, self.breaker_s),
            one_of("lifecycle", self.lifecycle, Lifecycle),
            at_least("idle_timeout_s", self.idle_timeout_s, 0),
            at_least("max_in_flight", self.max_in_flight, 1),
            at_least("max_pages", self.max_pages, 1),
            at_least("max_tools", self.max_tools, 1),
            at_least("max_things", self.max_things, 0),
            at_least("max_description_chars", self.max_description_chars, 64),
            at_least("max_schema_bytes", self.max_schema_bytes, 1024),
            at_least("max_listing_bytes", self.max_listing_bytes, self.max_schema_bytes),
            at_least("max_message_bytes", self.max_message_bytes, 1024),
            at_least("max_result_bytes", self.max_result_bytes, 1024),
            one_of("on_change", self.on_change, Policy),
            one_of("on_suspicion", self.on_suspicion, Policy),
        )
