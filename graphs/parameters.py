"""Every number of `graphs` that was chosen: bounds against what is hostile or by mistake."""

from __future__ import annotations

# Markdown
MAX_DOCUMENT_CHARS = 2 * 1024 * 1024
MAX_DOCUMENT_LINES = 20_000
MAX_FRONT_MATTER_BYTES = 64 * 1024
MAX_FRONT_MATTER_DEPTH = 16
KEY_SIMILARITY = 0.7
"""How like a key must be to one of ours to be a slip of it, in [0, 1]."""
SHOWN_KEY_CHARS = 48

# RDF
MAX_RDF_CHARS = 64 * 1024 * 1024
MAX_RDF_DEPTH = 64
MAX_QUERY_CHARS = 64 * 1024
MAX_QUERY_DEPTH = 64
QUERY_LIMIT = 1000
"""Rows or triples of an answer."""
QUERY_TIMEOUT_S = 10.0
QUERY_START_TIMEOUT_S = 120.0
"""How long the process for a query may take to start."""
