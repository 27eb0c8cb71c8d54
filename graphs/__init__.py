"""Markdown-LD graphs: documents, facts, search and typed neighbours."""

from importlib import import_module

_HOMES = {
    "Answer": "graphs.rdf.answer",
    "Builder": "graphs.facts.build",
    "Compiler": "graphs.compiler",
    "Document": "graphs.markdown.document",
    "DocumentError": "graphs.errors",
    "Edge": "graphs.markdown.parts",
    "Expansion": "graphs.neighbour",
    "ExtraError": "graphs.errors",
    "Fact": "graphs.facts.fact",
    "Fault": "graphs.rdf.faults",
    "Finding": "graphs.search",
    "Follow": "graphs.rdf.profile",
    "Followed": "graphs.rdf.schema_search",
    "Found": "graphs.search",
    "GraphError": "graphs.errors",
    "GraphIndex": "graphs.graph",
    "Hits": "graphs.lexical.explain",
    "Link": "graphs.markdown.parts",
    "Mode": "graphs.search",
    "Neighbour": "graphs.neighbour",
    "Notice": "graphs.errors",
    "Postings": "graphs.lexical.bm25_index",
    "Profile": "graphs.rdf.profile",
    "QueryError": "graphs.errors",
    "QueryTimeoutError": "graphs.errors",
    "Ranked": "graphs.text_search",
    "Relation": "graphs.rdf.profile",
    "Role": "graphs.adjacency",
    "SchemaMatch": "graphs.rdf.schema_search",
    "SchemaResult": "graphs.rdf.schema_search",
    "Section": "graphs.markdown.parts",
    "Sparql": "graphs.rdf.sparql_process",
    "StateError": "graphs.errors",
    "Step": "graphs.neighbour",
    "Term": "graphs.rdf.answer",
    "Text": "graphs.markdown.parts",
    "TextEvidence": "graphs.rdf.schema_search",
    "TextRule": "graphs.rdf.profile",
    "WordMatch": "graphs.lexical.explain",
    "collect": "graphs.markdown.files",
    "dot": "graphs.diagrams",
    "expand": "graphs.expansion",
    "extract_facts": "graphs.facts.build",
    "find": "graphs.search",
    "focused": "graphs.text_search",
    "from_json_ld": "graphs.rdf.importer",
    "from_turtle": "graphs.rdf.importer",
    "json_ld": "graphs.rdf.exporter",
    "load": "graphs.state",
    "mermaid": "graphs.diagrams",
    "n_triples": "graphs.rdf.exporter",
    "parse": "graphs.markdown.document",
    "read": "graphs.markdown.files",
    "render": "graphs.markdown.writer",
    "save": "graphs.state",
    "svg": "graphs.diagrams",
    "turtle": "graphs.rdf.exporter",
    "validate": "graphs.rdf.shapes",
    "write": "graphs.markdown.files",
}
"""Where each public name lives. `__init__.pyi` says the same to type checkers; a test holds them
equal. None of them is called as a module of this package is: the module would hide it."""

__all__ = sorted(_HOMES)  # noqa: PLE0605  (a list of names all the same)


def __getattr__(name: str) -> object:
    """Load a public name when it is first used: who searches a saved index reads no Markdown."""
    if name not in _HOMES:
        raise AttributeError(f"module 'graphs' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
