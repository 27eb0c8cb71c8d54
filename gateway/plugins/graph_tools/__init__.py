"""Graph views, edge decisions and edge proposals."""

from gateway.runtime.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "edge_proposals": "BATCH MAX_EDGES batches plan_edit",
        "graph_view": "GraphEdge GraphView MAX_PATH_EDGES",
        "openai": "OpenAIProposer PROPOSALS connected",
    },
)
