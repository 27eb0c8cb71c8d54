"""Facts: what documents state, by which vocabulary, with provenance."""
