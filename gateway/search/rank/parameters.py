"""The numbers that rank, with their units and their sources.

* A weight is in deviations: how much one standard deviation of a signal counts beside one of the
  cosines. ``measured`` means recall@5 of ``benchmarks.retrieval`` over the public sets, where the
  outcome is flat around the number.
* The numbers of one signal of `auto` alone stand in its module of `gateway.search.signals`.
* What a host may set (pool, window, weight of words, thresholds) stands in `SearchOptions`.
* The fitted coefficients of confidence stand in `gateway.search.confidence`, beside the function.
"""

from __future__ import annotations

from collections.abc import Mapping

# Rewrites in English.
SHARED_WORDS = 0.5
"""Share of a rewrite's words; with fewer from the query it contradicts, unless it is near."""
REWRITE_SHARE = 0.2
"""What a rewrite that contradicts counts in the mean of query and rewrite; the better of query and
mean ranks. Measured with good and bad rewrites."""

# Long requests.
LONG_REQUEST_WORDS = 24
"""Words; a longer request is also ranked clause by clause. Measured."""
LETTERS_PER_WORD = 2
"""Letters of scripts without spaces that count as one word."""
MIN_CLAUSE_WORDS = 3
"""Words; a shorter part of a request says too little to be ranked on its own."""
MAX_CLAUSES = 24
"""Clauses that are embedded at most: each costs an embedding."""
CLAUSE_COSINE_WEIGHT = 0.7
"""What the cosine of the best clause adds to the cosine of the whole request. Measured."""

# Copies.
COPY_SHARE = 0.8
"""Share of the words of two descriptions that those of a copy and its original have in common.
Measured by ``benchmarks.attacks``: 0.6 gives the same."""
COPY_MIN_WORDS = 3
"""Different words; of shorter descriptions nobody knows whether they mean the same."""
COPY_FIRST, COPY_DEPTH = 5, 20
"""First places that copies do not take, and places among which what they copy is looked for."""

# Ranking policies of the catalog.
RRF_K = 60
"""Rank offset of reciprocal rank fusion: Cormack, Clarke and Büttcher (2009)."""
HYBRID_COVERAGE = 0.5
"""Share of a query, by rarity, that an entity must hold for a rank by words in *hybrid*: ranks know
no degrees. Measured on the mixed catalog of ``benchmarks.registry``."""
WEIGHTED_COSINE, WEIGHTED_KEYWORDS = 0.6, 0.4
"""Shares of the policy *weighted*, as registries count."""
LEGACY_BOOST = 0.1
"""What one unit of keyword boost adds to a cosine on 0 to 1 in the policy *legacy*."""
LEGACY_MAX_PER_KIND = 3
"""Entities of one kind that *legacy* lists."""

# Keywords, as registries count them.
KEYWORD_BOOSTS: Mapping[tuple[str, ...], float] = {
    ("name", "server"): 5.0,
    ("name", "title"): 3.0,
    ("description",): 2.0,
    ("hints",): 1.5,
    ("metadata",): 1.0,
}
"""Boost of an entity, by the fields one of which holds any word of the query."""
KEYWORD_TOOL = 1.0
"""Boost of a server for each of its tools that holds a word in its name or description."""
KEYWORD_MAXIMUM = sum(KEYWORD_BOOSTS.values()) + KEYWORD_TOOL
"""The boost that counts as 1 where words rank alone, 13.5: of an entity that holds words in every
field and in one tool."""
WORD_IS_NAME, WORD_IN_NAME, WORD_IN_DESCRIPTION = 10.0, 5.0, 2.0
"""Points that one word earns: it is the name, else stands in it; it stands in the description."""

LISTED_SKILL_SCORES: Mapping[str, float] = {
    "name": 0.5,
    "description": 0.3,
    "tags": 0.2,
    "metadata": 0.1,
}
"""What each field of a skill that holds the searched text adds to its score in a list of skills."""

# Display, as registries show results.
DISPLAY_KIND_SHARE = 0.6
"""The share of the places that a kind may take while other kinds wait."""
DISPLAY_MIN_DEPTH = 30
"""Entities of each kind that compete for places, at least."""
DISPLAY_MIN_SCORE = 0.2
"""An entity with a lower display score is left out, and displaces nothing."""
SERVER_TOOLS_SHARE, SERVER_TOOLS_MIN = 0.6, 3
"""Tools of matched servers that are shown: a share of the places of a search, and at least."""
SERVER_TOOLS_PER_SERVER = 2
"""Tools of one server among them, at least."""
TOOL_WORD_IN_NAME, TOOL_WORD_IN_DESCRIPTION = 0.5, 0.3
"""What a word of the query earns such a tool that holds it."""
TOOL_STRENGTH, TOOL_BREADTH = 0.7, 0.3
"""Shares of its score: what its words earn, and how many of them do."""

# Next steps.
EDGE_WEIGHT, TASK_WEIGHT, NEIGHBOUR_WEIGHT, SERVER_WEIGHT = 8.0, 1.0, 0.7, 2.0
"""Deviations that an edge, the task, nearness to the last tool and its server add. Measured on
nestful and mcp_bench, where the outcome is flat around these; of what a derived edge suggests, 61
and 100 % are right."""
DECLARED_LEAD = 0.01
"""Deviations between the last next step that the host declares and the best of the others."""
FOLLOWING_CLAUSE_WEIGHT = 0.7
"""Deviations; what serving the next clauses of a long request counts beside serving all of it."""
FOLLOWING_CLAUSES = 3
"""Clauses, the one that the last tool served included."""
LEARNED_WEIGHT, LEARNED_SCALE = 2.0, 100.0
"""What follows with confidence c gains ``2 log(1 + 100 c)`` deviations. Chosen on the even half of
two public sets, looked at on the odd half."""
POPULARITY_SHARE = 0.5
"""What it counts that a tool follows many others, beside an edge that it follows this one."""
MAX_STEP_EDGES = 32
"""Edges of the graph that are looked at."""
MIN_SQUARED_LENGTH = 1e-6
"""Squared distance from the catalog's mean, of unit vectors; what lies nearer counts as so far."""

# Supplements.
PREREQUISITE_HOPS = 8
"""Edges that a chain of declared prerequisites may have."""
DERIVED_HOPS = 2
"""Edges that a chain with derived ones may have for the first match; for others it is one."""

RELATED_COVERAGE = 0.9
"""Share of the words of the best text hit, by rarity, that a tool must hold to be related by words
alone. Measured by ``benchmarks.graph`` on catalogs of 30 tools."""
SMALL_CATALOG = 60
"""Eligible entities; among fewer the margin of the window counts in proportion. Measured likewise.
"""

# Confidence.
GRAPH_SHARE = 0.15
"""Share of the remaining doubt that the graph's full agreement takes away; not fitted, since the
graph may raise confidence and never lower it."""
CONFIDENCE_SHRINKAGE = 8
"""Entities; of so few the mean and the spread say little, and count half."""
CONFIDENCE_CATALOG = 60
"""Entities; of so many the mean of the cosines counts half, and less in larger catalogs."""
MIN_CONFIDENCE_COUNT = 30
"""Entities; a smaller catalog counts as one of so many. None was measured."""
MAX_LOG_ODDS = 60.0
"""Beyond it the logistic function overflows."""
