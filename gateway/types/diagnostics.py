"""Diagnostics, which report problems that do not stop a search, and index statistics."""

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
    "schema_simplified",
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
"""Name of a problem, which does not change between versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """A problem in an optional stage of a search or an index build."""

    stage: Stage
    code: Code
    """Key of `CODES`."""
    detail: str = ""
    """Affected thing and cause, for people, without queries, arguments or secrets."""


CODES: Mapping[Code, str] = {
    "config_warning": "A setting is unknown, invalid, unsafe or without effect.",
    "plugin_failed": "A plugin failed; the other plugins work.",
    "source_load_failed": "A source could not be listed; its tools are missing.",
    "source_stale": "A source cannot be listed again; its stored list is used.",
    "catalog_unavailable": "The catalog store failed: lists are in memory, approvals unknown.",
    "registry_unavailable": "The registry of servers could not be read.",
    "registry_stale": "The registry's last answer, older than a day, was used.",
    "registry_truncated": "The registry exceeded its limits or stopped early.",
    "registry_entry_skipped": "Unreadable entries of the registry were skipped.",
    "tool_quarantined": "A tool's definition is unusable; the tool is left out.",
    "tool_changed": "A tool's definition differs from the approved one.",
    "tool_suspicious": "A tool's definition looks like an attack on a model.",
    "schema_simplified": "Parameters were repaired, or models see them without some rules.",
    "server_changed": "A server's command line or address differs from the approved one.",
    "listing_truncated": "A source exceeded its limits of pages or tools.",
    "listing_incomplete": "A server's resources or prompts could not be listed.",
    "name_qualified": "Two tools have this name; the server's name is added as a prefix.",
    "name_withheld": "This tool is gone; another needs approval to get its name.",
    "name_similar": "Tools of different servers have similar names.",
    "store_unavailable": "A store failed: vectors are in memory, or an index is not saved.",
    "store_rebuilt": "A corrupt or missing store file was replaced; data may be lost.",
    "audit_unavailable": "The audit log cannot be written; the call continued.",
    "limits_not_shared": "The store's call counters failed; this process counts alone.",
    "embedder_missing": "The strategy needs vectors, but the gateway has no embedder.",
    "embedding_failed": "The embedder raised an error.",
    "text_refused": "The embedding service refused a text.",
    "index_building": "New tools are being listed or embedded; the old index answers.",
    "model_preparing": "The embedded model is being prepared: search again in a moment.",
    "vectors_incomplete": "Some entities have no vector; only words and the graph find them.",
    "vectors_unavailable": "The vector database failed or was too slow.",
    "query_vector_unusable": "The query's vector was zero, not finite or of the wrong length.",
    "query_mended": "Misspelt words were corrected; the originals count too.",
    "query_normalized": "The query was rewritten in English.",
    "query_tagged": "Tags in the query were used as filters.",
    "query_normalization_failed": "The normalizer failed; the original query was used.",
    "query_truncated": "The query was too long; its beginning was used.",
    "context_ignored": "The context is not valid JSON and was ignored.",
    "limit_clamped": "The limit was lowered to the maximum.",
    "lexical_fallback": "Vectors were unusable; only words ranked.",
    "graph_fallback": "Vectors were unusable; the graph ranked.",
    "graph_unavailable": "The graph is unusable; supplements are missing.",
    "graph_document_invalid": "A graph document is invalid; the others work.",
    "low_confidence_results": "The matches are probably wrong.",
    "no_match": "The catalog probably has no match; `nearest` has the closest entities.",
    "unknown_tag": "No eligible entity has this tag.",
}
"""Meaning of each diagnostic, keyed by code."""
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
"""Codes of failed stages. A result with one of them is not cached."""
REPEATED: frozenset[Code] = DEGRADING | {
    "catalog_unavailable",
    "graph_document_invalid",
    "source_load_failed",
    "store_rebuilt",
    "store_unavailable",
}
"""Codes of problems of an index build that every search result repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """Statistics of one index build."""

    generation: int
    """Version of the catalog. Equal numbers mean equal catalogs."""
    entities: int = 0
    tools: int = 0
    """Number of entities that are tools."""
    vectors: int = 0
    embedded_texts: int = 0
    """Number of texts sent to the embedder. Other vectors came from the store."""
    tokens: int = 0
    graph_nodes: int = 0
    graph_edges: int = 0
    duration_s: float = 0.0
    saved: bool = False
    """True if the index was read from a file of an earlier build."""
    diagnostics: tuple[Diagnostic, ...] = ()
