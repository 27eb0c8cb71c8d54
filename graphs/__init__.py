"""Markdown-LD graphs: documents, facts, text search and typed neighbours."""

from importlib import import_module

_MODULES = {
    "AnalyzedQuery": "graphs.lexical.query",
    "Answer": "graphs.rdf.sparql",
    "BM25Index": "graphs.lexical.bm25_index",
    "Document": "graphs.markdown.document",
    "DocumentError": "graphs.errors",
    "Edge": "graphs.markdown.document",
    "Expansion": "graphs.expansion",
    "ExtraError": "graphs.errors",
    "Fact": "graphs.facts.fact",
    "FindMode": "graphs.text_search",
    "FoundNode": "graphs.text_search",
    "GraphBuilder": "graphs.graph_builder",
    "GraphError": "graphs.errors",
    "GraphIndex": "graphs.graph",
    "Hits": "graphs.lexical.query",
    "Link": "graphs.markdown.document",
    "Neighbour": "graphs.expansion",
    "Notice": "graphs.errors",
    "QueryError": "graphs.errors",
    "QueryTimeoutError": "graphs.errors",
    "Role": "graphs.expansion",
    "Section": "graphs.markdown.document",
    "ShapeViolation": "graphs.rdf.shapes",
    "Term": "graphs.rdf.sparql",
    "Text": "graphs.markdown.document",
    "TextEvidence": "graphs.text_search",
    "TextMatch": "graphs.text_search",
    "add_edge": "graphs.markdown.dialect",
    "collect": "graphs.markdown.dialect",
    "compile_facts": "graphs.graph_builder",
    "expand": "graphs.expansion",
    "extract_facts": "graphs.facts.extraction",
    "find": "graphs.text_search",
    "from_json_ld": "graphs.rdf.serialization",
    "from_turtle": "graphs.rdf.serialization",
    "parse": "graphs.markdown.dialect",
    "prerequisite_cycles": "graphs.paths",
    "query_sparql": "graphs.rdf.sparql",
    "read": "graphs.markdown.dialect",
    "render": "graphs.markdown.dialect",
    "search_text": "graphs.text_search",
    "shortest_paths": "graphs.paths",
    "to_dot": "graphs.diagrams",
    "to_json_ld": "graphs.rdf.serialization",
    "to_mermaid": "graphs.diagrams",
    "to_n_triples": "graphs.rdf.serialization",
    "to_turtle": "graphs.rdf.serialization",
    "topological_groups": "graphs.paths",
    "validate": "graphs.rdf.shapes",
    "write": "graphs.markdown.dialect",
}
"""Modules of the public names, keyed by name. A module is imported when one of its names is first
used. Type checkers read the names from `__init__.pyi`."""
__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
