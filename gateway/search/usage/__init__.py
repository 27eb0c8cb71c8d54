"""What use says of entities, as an optional re-rank, and as edges of the graph."""
