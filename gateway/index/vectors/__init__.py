"""The vector index: an exact scan, and above a size a sketch that chooses whom to score."""
