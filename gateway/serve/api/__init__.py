"""HTTP API of the catalog: search, entities and index status as JSON."""
