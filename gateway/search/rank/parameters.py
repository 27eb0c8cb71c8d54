"""Constants of the ranking, with units and sources.

A weight *in deviations* is the effect of one standard deviation of a signal, compared with one
standard deviation of the cosines. ``Measured`` means by recall@5 of ``benchmarks.retrieval`` over
the public sets; the recall changes little around the value.
"""

from __future__ import annotations

from collections.abc import Mapping

# Constants of rewrites in English.
SHARED_WORDS = 0.5
"""Maximum share of a rewrite's words that are in the query if the rewrite contradicts the query."""
REWRITE_SHARE = 0.2
"""Share of a contradicting rewrite when it is mixed with the query. Each entity gets the better
score of the query alone and the mixture. Measured with good and bad rewrites."""

# Constants of long requests.
LONG_REQUEST_WORDS = 24
"""Maximum number of words in a short request. A longer one is also ranked by clause. Measured."""
LETTERS_PER_WORD = 2
"""Number of letters that count as one word, in scripts without spaces."""
MIN_CLAUSE_WORDS = 3
"""Minimum number of words in a clause that is ranked separately."""
MAX_CLAUSES = 24
"""Maximum number of embedded clauses of a request. Each costs an embedding."""
CLAUSE_COSINE_WEIGHT = 0.7
"""Weight of the best clause's cosine, compared with the cosine of the whole request. Measured."""

# Constants of copied tools.
COPY_SHARE = 0.8
"""Minimum share of common words in the descriptions of a copy and its original. With 0.6,
``benchmarks.attacks`` gives the same result."""
COPY_MIN_WORDS = 3
"""Minimum number of distinct words; shorter descriptions are too ambiguous to compare."""
COPY_FIRST, COPY_DEPTH = 5, 20
"""Number of first ranks kept free of copies, and number of ranks searched for originals."""

# Constants of the ranking policies (hybrid, weighted, legacy).
RRF_K = 60
"""Constant k of reciprocal rank fusion, 1 / (k + rank): Cormack, Clarke and Büttcher (2009)."""
HYBRID_COVERAGE = 0.5
"""Minimum share of the query's words, by rarity, in an entity that gets a rank by words in the
policy *hybrid*. Ranks alone do not show how well an entity matches. Measured on the mixed catalog
of ``benchmarks.registry``."""
WEIGHTED_COSINE, WEIGHTED_KEYWORDS = 0.6, 0.4
"""Weights of the cosine and of the keyword share in the policy *weighted*, as in registries."""
LEGACY_BOOST = 0.1
"""Amount that one unit of keyword boost adds to a cosine (0 to 1) in the policy *legacy*."""
LEGACY_MAX_PER_KIND = 3
"""Maximum number of entities of one kind in the policy *legacy*."""

# Constants of keyword scores, with the same weights as in server registries.
KEYWORD_BOOSTS: Mapping[tuple[str, ...], float] = {
    ("name", "server"): 5.0,
    ("name", "title"): 3.0,
    ("description",): 2.0,
    ("hints",): 1.5,
    ("metadata",): 1.0,
}
"""Keyword boosts of an entity, keyed by groups of fields. A boost applies if any of the group's
fields contains any word of the query."""
KEYWORD_TOOL = 1.0
"""Boost of a server for each tool with a word of the query in its name or description."""
KEYWORD_MAXIMUM = sum(KEYWORD_BOOSTS.values()) + KEYWORD_TOOL
"""Keyword boost that gives the score 1 if only words rank: words of the query in every field and in
one tool."""
WORD_IS_NAME, WORD_IN_NAME, WORD_IN_DESCRIPTION = 10.0, 5.0, 2.0
"""Points of one word of the query that is the whole name, is in the name or title, and is in the
description."""

LISTED_SKILL_SCORES: Mapping[str, float] = {
    "name": 0.5,
    "description": 0.3,
    "tags": 0.2,
    "metadata": 0.1,
}
"""Score of a skill in a list of skills, keyed by the field that contains the searched text."""

# Constants of displayed results, with the same values as in server registries.
DISPLAY_KIND_SHARE = 0.6
"""Maximum share of the displayed ranks for one kind, as long as other kinds follow."""
DISPLAY_MIN_DEPTH = 30
"""Minimum number of entities of each kind that are considered for display."""
DISPLAY_MIN_SCORE = 0.2
"""Minimum display score, 0 to 1. Entities below it are left out."""
SERVER_TOOLS_SHARE, SERVER_TOOLS_MIN = 0.6, 3
"""Number of displayed tools of matched servers: its share of the search's limit, and its
minimum."""
SERVER_TOOLS_PER_SERVER = 2
"""Number of displayed tools that each server may have, even if its equal share is smaller."""
TOOL_WORD_IN_NAME, TOOL_WORD_IN_DESCRIPTION = 0.5, 0.3
"""Points of one word of the query in a displayed tool's name, or else in its description."""
TOOL_STRENGTH, TOOL_BREADTH = 0.7, 0.3
"""Weights in a displayed tool's score: of its points, and of its share of the query's words."""

# Constants of next steps.
EDGE_WEIGHT, TASK_WEIGHT, NEIGHBOUR_WEIGHT, SERVER_WEIGHT = 8.0, 1.0, 0.7, 2.0
"""Weights, in deviations, of an edge, the task, similarity to the last tool, and a shared server.
Measured on nestful and mcp_bench. Of the suggestions from derived edges, 61 and 100 % are right."""
DECLARED_LEAD = 0.01
"""Score difference, in deviations, between the last declared next step and the best other one."""
FOLLOWING_CLAUSE_WEIGHT = 0.7
"""Weight, in deviations, of a long request's next clauses. The whole request has `TASK_WEIGHT`."""
FOLLOWING_CLAUSES = 3
"""Number of clauses that score next steps: the one that the last tool fulfilled, and those after
it."""
LEARNED_WEIGHT, LEARNED_SCALE = 2.0, 100.0
"""A next step with the learned confidence c gains ``2 log(1 + 100 c)`` deviations. Chosen on the
even half of two public sets, checked on the odd half."""
POPULARITY_SHARE = 0.5
"""Weight of how often a tool follows any tool, for cases without a learned edge of the last
tool."""
MAX_STEP_EDGES = 32
"""Maximum number of next steps from the graph that are scored."""
MIN_SQUARED_LENGTH = 1e-6
"""Minimum squared distance of a unit vector from the catalog's mean. It replaces smaller ones."""

# Constants of supplements.
PREREQUISITE_HOPS = 8
"""Maximum length of a chain of declared prerequisites, in edges."""
DERIVED_HOPS = 2
"""Maximum length, in edges, of a chain of derived prerequisites of the first match; 1 for other
matches."""

SMALL_CATALOG = 60
"""Number of eligible entities below which the window's margin is reduced in proportion. Measured by
``benchmarks.graph``."""

# Constants of confidence.
GRAPH_SHARE = 0.15
"""Share of the missing confidence (1 - confidence) that is added if the match's graph node contains
all words of the query. Not fitted, because the graph may only raise confidence."""
CONFIDENCE_SHRINKAGE = 8
"""Number of entities at which the mean and spread of the cosines count half. They count less in
smaller catalogs, where they are unreliable."""
CONFIDENCE_CATALOG = 60
"""Number of entities at which the mean cosine counts half. It counts less in larger catalogs."""
MIN_CONFIDENCE_COUNT = 30
"""Minimum number of entities in the regression. Smaller catalogs were not measured and count as
this size."""
MAX_LOG_ODDS = 60.0
"""Maximum absolute log odds, to avoid an overflow of the logistic function."""
