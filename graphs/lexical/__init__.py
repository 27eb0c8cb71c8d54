"""Text analysis and the BM25F index."""
