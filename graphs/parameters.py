"""Parameters of `graphs`: weights, and limits against hostile or mistaken input."""

from __future__ import annotations

from collections.abc import Mapping

# Constants of Markdown documents.
MAX_DOCUMENT_CHARS = 2 * 1024 * 1024
MAX_DOCUMENT_LINES = 20_000
MAX_FRONT_MATTER_BYTES = 64 * 1024
MAX_FRONT_MATTER_DEPTH = 16
KEY_SIMILARITY = 0.7
"""Minimum similarity of an unknown key of a document to a known key that a notice suggests, in
[0, 1]."""
SHOWN_KEY_CHARS = 48
MAX_REMEMBERED_DOCUMENTS = 1 << 14
"""Maximum number of parsed documents of folders and bundles in the cache."""

# Constants of RDF and SPARQL.
MAX_RDF_CHARS = 64 * 1024 * 1024
MAX_RDF_DEPTH = 64
MAX_QUERY_CHARS = 64 * 1024
MAX_QUERY_DEPTH = 64
QUERY_LIMIT = 1000
"""Maximum number of rows or triples in the answer to a SPARQL query."""
QUERY_TIMEOUT_S = 10.0
QUERY_START_TIMEOUT_S = 120.0
"""Maximum time to start the process of a SPARQL query, in seconds, in addition to the time limit of
the query."""

# Constants of searching the statements of nodes (mode ``schema``).
SCHEMA_WEIGHTS: Mapping[str, float] = {
    "name": 1.0, "altLabel": 0.9, "description": 0.9, "keywords": 0.8, "prefLabel": 0.65,
    "about": 0.75, "memberOf": 0.65, "mentions": 0.6,
}  # fmt: skip
"""Score of a text that equals the whole query, keyed by predicate."""
SCHEMA_PARTLY = 0.8
"""Factor on the score of a text that does not equal the whole query."""
FIND_RRF_K, FIND_POOL = 60, 4
"""Rank offset of reciprocal rank fusion; and size of each fused list, as a multiple of the number
of results."""

# Constants of text search and neighbours.
MAX_GROUP_SIZE = 64
"""Maximum number of edges of one role to a concept. With more, the concept is ignored."""
FIELD_WEIGHTS: Mapping[str, float] = {
    "name": 3.0, "hints": 2.0, "description": 1.0, "text": 0.5, "group": 0.45,
}  # fmt: skip
"""Weight of each field of a node's text; ``group`` contains the names of declared groups."""
K1 = 1.2
"""BM25 parameter k1, the saturation of repeated words; the usual value."""
B = 0.75
"""BM25 parameter b, the discount of long fields, 0 to 1; the usual value."""
USUAL_LENGTH = 0.65
"""Quantile of the lengths of a field that counts as its usual length. The value was measured."""
LONG_FIELD = 3
"""Multiple of the usual length of a field above which the discount grows by the square. The value
was measured."""
MIN_CORRECTED_LENGTH = 4
"""Minimum length of a word whose spelling is corrected, in characters."""
MAX_CORRECTIONS = 12
"""Number of unknown words in a query above which the shares of corrections are reduced."""
SPLIT_SHARE = 0.8
"""Share of a word's weight if it matches as two words without the space between them."""
STEM_OF_NUMBERED_SHARE = 0.7
"""Share of the weight of a word such as ``sha256`` if it matches only ``sha``."""
MAX_QUERY_WORDS = 1024
"""Maximum number of words of a query. In scripts without spaces, each letter begins a word."""
MAX_REMEMBERED_WORDS = 8192
"""Maximum number of words whose terms an index caches."""
MAX_UNUSED = 1 << 16
"""Maximum number of unused terms or nodes that keep their ids in a builder."""
MAX_CANDIDATES = 64
"""Maximum number of indexed words that are compared with a misspelt word by edit distance."""
MAX_SUGGESTIONS = 3
"""Maximum number of suggested corrections of a misspelt word."""
MAX_WORD_LENGTH = 32
"""Maximum length of a word whose spelling is corrected or that is suggested, in characters."""
MIN_HALF = 3
"""Minimum length of each half if a word is split into two, in characters."""
DISTANCE_SHARES = (1.0, 0.8, 0.5)
"""Shares of a word's weight if it matches a correction, indexed by edit distance."""
MIN_JARO_WINKLER = 0.93
"""Minimum Jaro-Winkler similarity of a correction if no word is near by edit distance."""
JARO_WINKLER_SHARE = 0.3
"""Share of a word's weight if it matches a correction found by Jaro-Winkler similarity."""
