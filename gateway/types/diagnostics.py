"""What was amiss, noted instead of raised: every code and its meaning. And what a build did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Stage = Literal[
    "catalog",
    "store",
    "normalize",
    "spelling",
    "embed",
    "vector",
    "lexical",
    "graph",
    "confidence",
    "invoke",
]
Code = Literal[
    "config_warning",
    "plugin_failed",
    "source_load_failed",
    "source_stale",
    "catalog_unavailable",
    "registry_unavailable",
    "registry_stale",
    "registry_truncated",
    "registry_entry_skipped",
    "tool_quarantined",
    "tool_changed",
    "tool_suspicious",
    "server_changed",
    "listing_truncated",
    "listing_incomplete",
    "name_qualified",
    "name_withheld",
    "name_similar",
    "store_unavailable",
    "store_rebuilt",
    "audit_unavailable",
    "limits_not_shared",
    "embedder_missing",
    "embedding_failed",
    "text_refused",
    "index_building",
    "model_preparing",
    "vectors_incomplete",
    "vectors_unavailable",
    "query_vector_unusable",
    "query_mended",
    "query_normalized",
    "query_tagged",
    "query_normalization_failed",
    "query_truncated",
    "context_ignored",
    "limit_clamped",
    "lexical_fallback",
    "graph_fallback",
    "graph_unavailable",
    "graph_document_invalid",
    "low_confidence_results",
    "no_match",
    "unknown_tag",
]
"""What was amiss, by its stable name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """A note that an optional stage leaves instead of raising."""

    stage: Stage
    code: Code
    """A key of `CODES`."""
    detail: str = ""
    """Which thing and why; for people, without queries, arguments or secrets."""


CODES: Mapping[Code, str] = {
    "config_warning": "A configuration file says something that is not understood or cannot work.",
    "plugin_failed": "A plugin could not be loaded, or failed in a search; the others work.",
    "source_load_failed": "A source could not be listed; its tools are missing, the others work.",
    "source_stale": "A source cannot be reached or listed again; its tools are those of before.",
    "catalog_unavailable": "The catalog store failed: lists live in memory, approvals are unknown.",
    "registry_unavailable": "The registry of servers could not be read.",
    "registry_stale": "The registry's last answer was used, which is older than a day.",
    "registry_truncated": "The registry offers more than its limits allow, or stopped under way.",
    "registry_entry_skipped": "Entries of the registry cannot be read; the others are used.",
    "tool_quarantined": "One tool's definition cannot be used; the rest of its source lives.",
    "tool_changed": "A tool's definition is not the one that was approved.",
    "tool_suspicious": "A tool's definition looks like an attack on a model.",
    "server_changed": "A configured server's command line or address is not the approved one.",
    "listing_truncated": "A source offered more pages or tools than its limits allow.",
    "listing_incomplete": "A server's resources or prompts could not be listed; its tools work.",
    "name_qualified": "Another tool holds this name; this one has its server's name before it.",
    "name_withheld": "The tool that held this name is gone; another gets it only by approval.",
    "name_similar": "Tools of different servers have names that differ hardly to the eye.",
    "store_unavailable": "A store failed: vectors live in memory only, or an index is not saved.",
    "store_rebuilt": "A store's file was corrupt or gone; it begins anew, and says what it lacks.",
    "audit_unavailable": "The audit log cannot be written; the call went on without its row.",
    "limits_not_shared": "The counters of the store cannot be used; this process counts alone.",
    "embedder_missing": "The strategy wants vectors but no embedder was given.",
    "embedding_failed": "The embedder raised.",
    "text_refused": "The embedding service refuses an entity's text; the others have vectors.",
    "index_building": "What is new is being listed or embedded; until then what there is answers.",
    "model_preparing": "The embedded model is still preparing: search again in a moment.",
    "vectors_incomplete": "Some entities have no vector: only words and graph can find them.",
    "vectors_unavailable": "The database of vectors failed or was late: words or the graph rank.",
    "query_vector_unusable": "The query's vector was zero, not finite or of the wrong length.",
    "query_mended": "Misspelt words of the query were mended; the words as typed count too.",
    "query_normalized": "The query was rewritten in English.",
    "query_tagged": "Tags in the query were taken out of it and are filters.",
    "query_normalization_failed": "The normalizer failed; the original query was used.",
    "query_truncated": "The query was longer than the cap; its beginning was used.",
    "context_ignored": "The context could not be read as JSON and was left out.",
    "limit_clamped": "The limit was above the maximum and was lowered to it.",
    "lexical_fallback": "Vectors were wanted but not usable; words alone ranked.",
    "graph_fallback": "Vectors were wanted but not usable; the graph answered.",
    "graph_unavailable": "No usable graph; supplements are missing.",
    "graph_document_invalid": "A graph document of the host could not be read; the others work.",
    "low_confidence_results": "Nothing found is likely to be what was asked for.",
    "no_match": "Nothing in the catalog is likely to serve the request; `nearest` is closest.",
    "unknown_tag": "No entity that may be found has this tag; near ones are named.",
}
"""Every diagnostic code and what it means."""
DEGRADING: frozenset[Code] = frozenset(
    {
        "embedding_failed",
        "graph_fallback",
        "lexical_fallback",
        "graph_unavailable",
        "index_building",
        "model_preparing",
        "query_normalization_failed",
        "query_vector_unusable",
        "vectors_incomplete",
        "vectors_unavailable",
    }
)
"""Codes that keep a result out of the cache: the next request tries again."""
REPEATED: frozenset[Code] = DEGRADING | {
    "catalog_unavailable",
    "graph_document_invalid",
    "source_load_failed",
    "store_rebuilt",
    "store_unavailable",
}
"""Codes of an index build that every result repeats, since all searches go without something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """What one index build did."""

    generation: int
    """Counts catalog changes; equal generations mean equal catalogs."""
    entities: int = 0
    tools: int = 0
    """How many of them are tools."""
    vectors: int = 0
    embedded_texts: int = 0
    """How many texts were sent to the embedder; the others came from the store."""
    tokens: int = 0
    graph_nodes: int = 0
    graph_edges: int = 0
    duration_s: float = 0.0
    saved: bool = False
    """Whether the index was read as an earlier process saved it, instead of made."""
    diagnostics: tuple[Diagnostic, ...] = ()
