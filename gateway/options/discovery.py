"""What the model sees of the catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from gateway.errors import ConfigError
from gateway.options.validation import (
    Count,
    OptionObject,
    PositiveCount,
    Range,
    Share,
    check_options,
)

Mode = Literal["proxy", "stable", "native", "auto"]
MODEL_TOOL_LIMIT = 128
"""How many tools a Chat Completions request may carry."""


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
    max_tools: Annotated[int, Range(minimum=3)] = MODEL_TOOL_LIMIT
    """No request carries more tools than this, the host's own included."""
    prerequisite_proxies: bool = False
    """Make proxies of declared prerequisites outside the semantic window too."""
    result_token_budget: Annotated[int, Range(minimum=100)] = 1200
    """The most tokens (estimated) that one search result takes of the conversation."""
    schema_token_budget: Annotated[int, Range(minimum=100)] = 2500
    """The same for a search result that carries schemas: in mode ``stable``."""
    digest_token_budget: Count = 300
    """The most tokens (estimated) that the search tool's digest of the catalog takes."""
    description_chars: Annotated[int, Range(minimum=32)] = 1024
    """How much is kept of a proxy's description."""
    next_steps: Count = 0
    """How many likely next tools the answer to a tool call names; 0 names none."""

    @property
    def reserved(self) -> frozenset[str]:
        """The names that no tool may have."""
        return frozenset({self.search_name, self.call_name})

    def __post_init__(self) -> None:
        """Validate the fields."""
        check_options(self)
        names = (self.search_name, self.call_name, self.route_name, self.next_name)
        own_names = [name for name in names if name]
        if len({*own_names}) < len(own_names):
            raise ConfigError("DiscoveryOptions: two names of the meta-tools are equal")
