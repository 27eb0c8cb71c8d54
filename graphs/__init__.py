"""Markdown-LD graphs: documents, facts, search and typed neighbours."""

from importlib import import_module

_HOMES = {
    "Answer": "graphs.answer",
    "Builder": "graphs.build",
    "Compiler": "graphs.compiler",
    "Document": "graphs.document",
    "DocumentError": "graphs.errors",
    "Edge": "graphs.parts",
    "Expansion": "graphs.neighbour",
    "ExtraError": "graphs.errors",
    "Fact": "graphs.fact",
    "Fault": "graphs.faults",
    "Finding": "graphs.search",
    "Follow": "graphs.profile",
    "Followed": "graphs.schema",
    "Found": "graphs.search",
    "GraphError": "graphs.errors",
    "GraphIndex": "graphs.index",
    "Hits": "graphs.hits",
    "Link": "graphs.parts",
    "Mode": "graphs.search",
    "Neighbour": "graphs.neighbour",
    "Notice": "graphs.errors",
    "Postings": "graphs.postings",
    "Profile": "graphs.profile",
    "QueryError": "graphs.errors",
    "QueryTimeoutError": "graphs.errors",
    "Ranked": "graphs.rank",
    "Relation": "graphs.profile",
    "Role": "graphs.adjacency",
    "SchemaMatch": "graphs.schema",
    "SchemaResult": "graphs.schema",
    "Section": "graphs.parts",
    "Sparql": "graphs.ask",
    "StateError": "graphs.errors",
    "Step": "graphs.neighbour",
    "Term": "graphs.answer",
    "Text": "graphs.parts",
    "TextEvidence": "graphs.schema",
    "TextRule": "graphs.profile",
    "WordMatch": "graphs.hits",
    "collect": "graphs.files",
    "dot": "graphs.picture",
    "expand": "graphs.expansion",
    "facts": "graphs.build",
    "find": "graphs.search",
    "focused": "graphs.rank",
    "from_json_ld": "graphs.imports",
    "from_turtle": "graphs.imports",
    "json_ld": "graphs.export",
    "load": "graphs.state",
    "mermaid": "graphs.picture",
    "n_triples": "graphs.export",
    "parse": "graphs.document",
    "read": "graphs.files",
    "render": "graphs.writing",
    "save": "graphs.state",
    "svg": "graphs.picture",
    "turtle": "graphs.export",
    "validate": "graphs.shapes",
    "write": "graphs.files",
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
