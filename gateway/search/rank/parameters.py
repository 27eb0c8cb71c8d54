"""Constants of the ranking, with units and sources.

* A weight is in deviations: the effect of one standard deviation of a signal, compared with one of
  the cosines. ``Measured`` means by recall@5 of ``benchmarks.retrieval`` over the public sets. The
  recall changes little around the value.
* Constants that only one signal of `auto` uses are in its module in `gateway.search.signals`.
* Settings of a host (pool, window, weight of words, thresholds) are in `SearchOptions`.
* The fitted coefficients of confidence are in `gateway.search.confidence`.
"""

from __future__ import annotations

from collections.abc import Mapping

# Rewrites in English.
SHARED_WORDS = 0.5
"""A rewrite contradicts the query if at most this share of its words is in the query, unless their
vectors are near."""
REWRITE_SHARE = 0.2
"""Weight of a contradicting rewrite in the mean of query and rewrite. The better of query and mean
counts. Measured with good and bad rewrites."""

# Long requests.
LONG_REQUEST_WORDS = 24
"""Words. A longer request is also ranked clause by clause. Measured."""
LETTERS_PER_WORD = 2
"""Number of letters that count as one word, in scripts without spaces."""
MIN_CLAUSE_WORDS = 3
"""Minimum number of words in a clause. A shorter clause says too little for a ranking."""
MAX_CLAUSES = 24
"""Maximum number of embedded clauses. Each costs an embedding."""
CLAUSE_COSINE_WEIGHT = 0.7
"""Weight of the best clause's cosine, added to the cosine of the whole request. Measured."""

# Copies.
COPY_SHARE = 0.8
"""Minimum share of words that the descriptions of a copy and its original have in common.
Measured by ``benchmarks.attacks``: 0.6 gives the same."""
COPY_MIN_WORDS = 3
"""Minimum number of distinct words; shorter descriptions are too ambiguous to compare."""
COPY_FIRST, COPY_DEPTH = 5, 20
"""Number of first ranks without copies, and number of ranks in which originals are searched."""

# Ranking policies of the catalog.
RRF_K = 60
"""Rank offset of reciprocal rank fusion: Cormack, Clarke and Büttcher (2009)."""
HYBRID_COVERAGE = 0.5
"""Minimum share of the query's words, by rarity, for a rank by words in *hybrid*. Needed because
ranks do not show how well an entity matches. Measured on the mixed catalog of
``benchmarks.registry``."""
WEIGHTED_COSINE, WEIGHTED_KEYWORDS = 0.6, 0.4
"""Weights of cosine and keywords in the policy *weighted*, as in registries."""
LEGACY_BOOST = 0.1
"""Amount that one unit of keyword boost adds to a cosine (0 to 1) in the policy *legacy*."""
LEGACY_MAX_PER_KIND = 3
"""Maximum number of entities of one kind in the policy *legacy*."""

# Keywords, as registries count them.
KEYWORD_BOOSTS: Mapping[tuple[str, ...], float] = {
    ("name", "server"): 5.0,
    ("name", "title"): 3.0,
    ("description",): 2.0,
    ("hints",): 1.5,
    ("metadata",): 1.0,
}
"""Keyword boosts, keyed by fields. The boost applies if one of the fields has any word of the
query."""
KEYWORD_TOOL = 1.0
"""Boost of a server for each of its tools with a word of the query in name or description."""
KEYWORD_MAXIMUM = sum(KEYWORD_BOOSTS.values()) + KEYWORD_TOOL
"""Boost that counts as 1 where only words rank, 13.5. An entity reaches it with words in every
field and in one tool."""
WORD_IS_NAME, WORD_IN_NAME, WORD_IN_DESCRIPTION = 10.0, 5.0, 2.0
"""Points of one word: it is the whole name, it is part of the name, it is in the description."""

LISTED_SKILL_SCORES: Mapping[str, float] = {
    "name": 0.5,
    "description": 0.3,
    "tags": 0.2,
    "metadata": 0.1,
}
"""Score of a skill in a list of skills, for each field that contains the searched text."""

# Display, as registries show results.
DISPLAY_KIND_SHARE = 0.6
"""Maximum share of the displayed ranks for one kind while other kinds follow."""
DISPLAY_MIN_DEPTH = 30
"""Minimum number of entities of each kind that compete for display."""
DISPLAY_MIN_SCORE = 0.2
"""Minimum display score. Entities below it are left out and do not displace others."""
SERVER_TOOLS_SHARE, SERVER_TOOLS_MIN = 0.6, 3
"""Number of displayed tools of matched servers: share of the search's limit, and minimum."""
SERVER_TOOLS_PER_SERVER = 2
"""Lower bound of the maximum number of displayed tools of one server."""
TOOL_WORD_IN_NAME, TOOL_WORD_IN_DESCRIPTION = 0.5, 0.3
"""Points of a word of the query in the name or the description of a displayed tool."""
TOOL_STRENGTH, TOOL_BREADTH = 0.7, 0.3
"""Weights of the points and of the share of matching words in the score of a displayed tool."""

# Next steps.
EDGE_WEIGHT, TASK_WEIGHT, NEIGHBOUR_WEIGHT, SERVER_WEIGHT = 8.0, 1.0, 0.7, 2.0
"""Weights, in deviations, of an edge, the task, similarity to the last tool, and a shared server.
Measured on nestful and mcp_bench, where the recall changes little around these values. Of the
suggestions from derived edges, 61 and 100 % are right."""
DECLARED_LEAD = 0.01
"""Deviations between the last declared next step and the best other one."""
FOLLOWING_CLAUSE_WEIGHT = 0.7
"""Weight, in deviations, of the next clauses of a long request, compared with the whole request."""
FOLLOWING_CLAUSES = 3
"""Number of clauses that count, beginning with the clause that the last tool served."""
LEARNED_WEIGHT, LEARNED_SCALE = 2.0, 100.0
"""A tool that follows with confidence c gains ``2 log(1 + 100 c)`` deviations. Chosen on the even
half of two public sets, checked on the odd half."""
POPULARITY_SHARE = 0.5
"""Weight of a tool's frequency after any tool, compared with its frequency after this tool."""
MAX_STEP_EDGES = 32
"""Maximum number of graph edges that are considered."""
MIN_SQUARED_LENGTH = 1e-6
"""Minimum squared distance of a unit vector from the catalog's mean. Smaller distances count as
this."""

# Supplements.
PREREQUISITE_HOPS = 8
"""Maximum length of a chain of declared prerequisites, in edges."""
DERIVED_HOPS = 2
"""Maximum length of a chain with derived edges, for the first match. It is 1 for other matches."""

RELATED_COVERAGE = 0.9
"""Minimum share of the best text hit's coverage, for a tool that is related only by words.
Measured by ``benchmarks.graph`` on catalogs of 30 tools."""
SMALL_CATALOG = 60
"""Eligible entities. Below this number the window margin is reduced in proportion. Measured by
``benchmarks.graph``.
"""

# Confidence.
GRAPH_SHARE = 0.15
"""Share of the remaining doubt that full agreement of the graph removes. Not fitted, because the
graph may only raise confidence."""
CONFIDENCE_SHRINKAGE = 8
"""Number of entities at which mean and spread count half, because they say little in small
catalogs."""
CONFIDENCE_CATALOG = 60
"""Number of entities at which the mean cosine counts half. It counts less in larger catalogs."""
MIN_CONFIDENCE_COUNT = 30
"""Minimum number of entities for the regression. Smaller catalogs were not measured."""
MAX_LOG_ODDS = 60.0
"""Maximum log odds, to avoid an overflow of the logistic function."""
