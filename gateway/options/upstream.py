"""How much time and memory a server may take, and what is trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from gateway.errors import ConfigError
from gateway.options.validation import (
    Count,
    OptionObject,
    PositiveCount,
    Range,
    Seconds,
    Timeout,
    check_options,
)

Lifecycle = Literal["keep_alive", "idle", "ephemeral"]
Policy = Literal["warn", "block"]

_MIB = 1024 * 1024


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
    connect_attempts: PositiveCount = 3
    """How many times a server is tried before connecting has failed."""
    backoff_s: Seconds = 0.2
    backoff_max_s: Seconds = 5.0
    """The pause between attempts: from the first of these, doubling, to the second, with jitter."""
    breaker_failures: PositiveCount = 5
    """After so many failures in a row a server is left alone …"""
    breaker_s: Seconds = 2.0
    breaker_max_s: Seconds = 60.0
    """… for the first of these, doubling, up to the second, with jitter; then one use probes it."""
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
    max_description_chars: Annotated[int, Range(minimum=64)] = 8000
    """What is kept of a tool's description; the rest is never read."""
    max_schema_bytes: Annotated[int, Range(minimum=1024)] = 256 * 1024
    """A tool whose schemas are larger is left out."""
    max_listing_bytes: PositiveCount = 32 * _MIB
    """If the tools of one server are larger together, the rest is left out."""
    max_message_bytes: Annotated[int, Range(minimum=1024)] = 8 * _MIB
    """A longer message of a server is never held in memory."""
    max_result_bytes: Annotated[int, Range(minimum=1024)] = 4 * _MIB
    """A larger answer of a tool is an error that says so."""
    on_change: Policy = "warn"
    """What happens to a tool, or a configured command line, that is not as it was approved: the
    result says so (``warn``), or it is left out until it is approved (``block``)."""
    on_suspicion: Policy = "warn"
    """The same for a tool whose definition looks like an attack on a model."""
    private_hosts: tuple[str, ...] = ()
    """Host names, or addresses, of servers in the host's own network: they may be private and
    speak plain HTTP. Loopback needs no entry; metadata services never get one."""

    def __post_init__(self) -> None:
        """Validate the fields."""
        check_options(self)
        for name, floor in _FLOORS.items():
            if getattr(self, name) < getattr(self, floor):
                raise ConfigError(f"UpstreamOptions: {name} must be at least {floor}")


_FLOORS = {
    "backoff_max_s": "backoff_s",
    "breaker_max_s": "breaker_s",
    "max_listing_bytes": "max_schema_bytes",
}
