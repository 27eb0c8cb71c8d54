"""Markdown-LD graphs: documents, facts, text search and typed neighbours."""

from graphs.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "graphs.diagrams": "to_dot to_mermaid",
        "graphs.errors": "DocumentError ExtraError GraphError Notice QueryError QueryTimeoutError",
        "graphs.expansion": "Expansion Neighbour Role expand",
        "graphs.facts.extraction": "extract_facts",
        "graphs.facts.fact": "Fact",
        "graphs.graph": "GraphIndex",
        "graphs.graph_builder": "GraphBuilder compile_facts",
        "graphs.lexical.bm25_index": "BM25Index",
        "graphs.lexical.query": "AnalyzedQuery Hits",
        "graphs.markdown.dialect": "add_edge collect parse read render write",
        "graphs.markdown.document": "Document Edge Link Section Text",
        "graphs.paths": "prerequisite_cycles shortest_paths topological_groups",
        "graphs.rdf.serialization": "from_json_ld from_turtle to_json_ld to_n_triples to_turtle",
        "graphs.rdf.shapes": "ShapeViolation validate",
        "graphs.rdf.sparql": "Answer Term query_sparql",
        "graphs.text_search": "FindMode FoundNode TextEvidence TextMatch find search_text",
    },
)
