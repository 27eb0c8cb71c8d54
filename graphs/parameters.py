"""Every number of `graphs` that was chosen: bounds against what is hostile or by mistake."""

from __future__ import annotations

from collections.abc import Mapping

# Markdown
MAX_DOCUMENT_CHARS = 2 * 1024 * 1024
MAX_DOCUMENT_LINES = 20_000
MAX_FRONT_MATTER_BYTES = 64 * 1024
MAX_FRONT_MATTER_DEPTH = 16
KEY_SIMILARITY = 0.7
"""How like a key must be to one of ours to be a slip of it, in [0, 1]."""
SHOWN_KEY_CHARS = 48
MAX_REMEMBERED_DOCUMENTS = 1 << 14
"""Documents of folders and bundles that are not parsed again."""

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

# Search by schema
SCHEMA_WEIGHTS: Mapping[str, float] = {
    "name": 1.0, "altLabel": 0.9, "description": 0.9, "keywords": 0.8, "prefLabel": 0.65,
    "about": 0.75, "memberOf": 0.65, "mentions": 0.6,
}  # fmt: skip
"""What a text that is the whole question counts, by its predicate."""
SCHEMA_PARTLY = 0.8
"""What a text counts that holds more or less than the question."""
FIND_RRF_K, FIND_POOL = 60, 4
"""Rank offset of reciprocal rank fusion, and how many times the limit each list brings to it."""

# Text search and neighbours
MAX_GROUP_SIZE = 64
"""More edges of one role than this at one concept, and it relates nothing."""
FIELD_WEIGHTS: Mapping[str, float] = {
    "name": 3.0, "hints": 2.0, "description": 1.0, "text": 0.5, "group": 0.45,
}  # fmt: skip
"""Weight of each field of a node's text; ``group`` holds the names of declared groups."""
K1 = 1.2
"""How soon repetitions of a word stop to count; the usual value of BM25."""
B = 0.75
"""How much a long field discounts its words; the usual value of BM25."""
USUAL_LENGTH = 0.65
"""Quantile of the lengths of a field that counts as usual. Measured."""
LONG_FIELD = 3
"""Times the usual length of a field; a longer one discounts its words by the square. Measured."""
MIN_CORRECTED_LENGTH = 4
"""Shorter words, in characters, are not taken for misspelt ones."""
MAX_CORRECTIONS = 12
"""More unknown words than this in one query are not all typos: each counts the less."""
SPLIT_SHARE = 0.8
"""What a word counts that is two known ones without the space between them."""
STEM_OF_NUMBERED_SHARE = 0.7
"""What ``sha`` counts for ``sha256``."""
MAX_QUERY_WORDS = 1024
"""Further words of a query are not looked up; in scripts without spaces each letter begins one."""
MAX_REMEMBERED_WORDS = 8192
"""Words of queries whose terms an index remembers."""
MAX_UNUSED = 1 << 16
"""So many terms or nodes that nothing holds any more may stay numbered in a builder."""
MAX_CANDIDATES = 64
"""Words whose edit distance to a misspelt one is measured."""
MAX_SUGGESTIONS = 3
"""Known words that a misspelt one may mean."""
MAX_WORD_LENGTH = 32
"""Longer words, in characters, are never suggested, nor corrected."""
MIN_HALF = 3
"""Shortest half of a word that is split in two, in characters."""
DISTANCE_SHARES = (1.0, 0.8, 0.5)
"""What a suggestion counts, by its edit distance."""
MIN_JARO_WINKLER = 0.93
"""The least similarity of a suggestion that is more than two edits away."""
JARO_WINKLER_SHARE = 0.3
"""What such a suggestion counts."""
