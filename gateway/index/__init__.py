"""The index: one immutable snapshot of the catalog, ready to be searched, and what builds it."""
