"""Parameters of `graphs`: weights, and limits against hostile or mistaken input."""

from __future__ import annotations

from collections.abc import Mapping

# Markdown
MAX_DOCUMENT_CHARS = 2 * 1024 * 1024
MAX_DOCUMENT_LINES = 20_000
MAX_FRONT_MATTER_BYTES = 64 * 1024
MAX_FRONT_MATTER_DEPTH = 16
KEY_SIMILARITY = 0.7
"""Minimum similarity of an unknown key to a known one to suggest it, in [0, 1]."""
SHOWN_KEY_CHARS = 48
MAX_REMEMBERED_DOCUMENTS = 1 << 14
"""Maximum number of parsed documents of folders and bundles in the cache."""

# RDF
MAX_RDF_CHARS = 64 * 1024 * 1024
MAX_RDF_DEPTH = 64
MAX_QUERY_CHARS = 64 * 1024
MAX_QUERY_DEPTH = 64
QUERY_LIMIT = 1000
"""Maximum number of rows or triples of an answer."""
QUERY_TIMEOUT_S = 10.0
QUERY_START_TIMEOUT_S = 120.0
"""Maximum time to start the process of a query, in seconds."""

# Search by schema
SCHEMA_WEIGHTS: Mapping[str, float] = {
    "name": 1.0, "altLabel": 0.9, "description": 0.9, "keywords": 0.8, "prefLabel": 0.65,
    "about": 0.75, "memberOf": 0.65, "mentions": 0.6,
}  # fmt: skip
"""Score of a text that equals the whole query, keyed by predicate."""
SCHEMA_PARTLY = 0.8
"""Factor for a text that does not equal the query."""
FIND_RRF_K, FIND_POOL = 60, 4
"""Rank offset of reciprocal rank fusion, and size of each fused list as a multiple of the limit."""

# Text search and neighbours
MAX_GROUP_SIZE = 64
"""Maximum number of edges of one role to a concept. With more, the concept is ignored."""
FIELD_WEIGHTS: Mapping[str, float] = {
    "name": 3.0, "hints": 2.0, "description": 1.0, "text": 0.5, "group": 0.45,
}  # fmt: skip
"""Weight of each field of a node's text; ``group`` contains the names of declared groups."""
K1 = 1.2
"""Saturation of repeated words; the usual value of BM25."""
B = 0.75
"""Discount of long fields, 0 to 1; the usual value of BM25."""
USUAL_LENGTH = 0.65
"""Quantile of the lengths of a field that is the usual length. Measured."""
LONG_FIELD = 3
"""Multiple of the usual length above which the discount grows by the square. Measured."""
MIN_CORRECTED_LENGTH = 4
"""Minimum length of a word to be corrected, in characters."""
MAX_CORRECTIONS = 12
"""Number of unknown words in a query above which the shares of corrections are reduced."""
SPLIT_SHARE = 0.8
"""Share for a word that is two known words without the space."""
STEM_OF_NUMBERED_SHARE = 0.7
"""Share for ``sha`` when the query contains ``sha256``."""
MAX_QUERY_WORDS = 1024
"""Maximum number of words of a query. In scripts without spaces, each letter begins a word."""
MAX_REMEMBERED_WORDS = 8192
"""Maximum number of words whose terms an index caches."""
MAX_UNUSED = 1 << 16
"""Maximum number of unused terms or nodes that a builder keeps numbered."""
MAX_CANDIDATES = 64
"""Maximum number of words whose edit distance to a misspelt word is computed."""
MAX_SUGGESTIONS = 3
"""Maximum number of corrections of a word."""
MAX_WORD_LENGTH = 32
"""Maximum length of a word that is suggested or corrected, in characters."""
MIN_HALF = 3
"""Minimum length of both halves of a split word, in characters."""
DISTANCE_SHARES = (1.0, 0.8, 0.5)
"""Shares of corrections, indexed by edit distance."""
MIN_JARO_WINKLER = 0.93
"""Minimum Jaro-Winkler similarity of a correction more than two edits away."""
JARO_WINKLER_SHARE = 0.3
"""Share of a correction found by Jaro-Winkler similarity."""
