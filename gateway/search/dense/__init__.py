"""Vectors of a catalog: kept, scanned, and what they say of whole servers and whole catalogs."""
