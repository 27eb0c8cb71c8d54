"""Option objects.

* Frozen, keyword-only, one for each subsystem. Every default is visible here and listed in
  docs/options.md.
* All faults of an object are reported at once.
* Numbers carry their unit in their name; ``limit`` and ``max_…`` are counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gateway.options.chat import ChatOptions
from gateway.options.discovery import DiscoveryOptions
from gateway.options.index import (
    CacheOptions,
    CatalogOptions,
    CustomKind,
    GraphOptions,
    IndexOptions,
)
from gateway.options.search import SearchOptions, UsageOptions
from gateway.options.upstream import UpstreamOptions
from gateway.options.validation import OptionObject

__all__ = [
    "CacheOptions",
    "CatalogOptions",
    "ChatOptions",
    "CustomKind",
    "DiscoveryOptions",
    "GraphOptions",
    "IndexOptions",
    "Options",
    "SearchOptions",
    "UpstreamOptions",
    "UsageOptions",
]


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
    capture_content: bool = False
    """Put queries, results and arguments on spans. Off by default: they are content."""
    vector_store_path: Path | None = None
    """Where vectors persist; None is ``vectors.sqlite3`` in the user's cache folder."""
    catalog_store_path: Path | None = None
    """Where tool lists and approvals persist; None is ``catalog.sqlite3`` in the same folder."""
    index: IndexOptions = field(default_factory=IndexOptions)
    index_path: Path | None = None
    """The folder where indexes are saved; None is ``index`` in the same folder."""
