"""Text analysis and the BM25F index."""

from graphs.lexical.analysis import fold as fold
from graphs.lexical.analysis import slug as slug
from graphs.lexical.analysis import split_identifier as split_identifier
from graphs.lexical.analysis import tokens as tokens
from graphs.lexical.bm25_index import BM25Index as BM25Index
from graphs.lexical.query import Hits as Hits
