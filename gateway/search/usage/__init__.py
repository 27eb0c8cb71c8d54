"""What use says: of rankings, as an optional re-rank, and of what follows what, as edges."""
