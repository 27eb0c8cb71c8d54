"""Every number that ranks, with its unit and its source.

* A weight is in deviations: how much one standard deviation of a signal counts beside one of the
  cosines. ``measured`` means recall@5 of ``benchmarks.retrieval`` over the public sets, where the
  outcome is flat around the number.
* What a host may set (pool, window, weight of words, thresholds) stands in `SearchOptions`.
* The coefficients of confidence stand in `gateway.search.confidence`, beside the function.
"""

from __future__ import annotations

# Long requests.
LONG_REQUEST_WORDS = 24
"""Words; a longer request is also ranked clause by clause. Measured."""
MIN_CLAUSE_WORDS = 3
"""Words; a shorter part of a request says too little to be ranked on its own."""
MAX_CLAUSES = 24
"""Clauses that are embedded at most: each costs an embedding."""
CLAUSE_COSINE_WEIGHT = 0.7
"""What the cosine of the best clause adds to the cosine of the whole request. Measured."""

# Requests of many clauses.
SERVER_GROUP_WEIGHT = 2.0
"""Deviations that one deviation of its server's best tool adds to a tool, times the square of how
rare the server is. Measured on mcp_bench and nestful."""
SERVER_GROUP_CLAUSES = (5, 10)
"""Clauses; up to the first number servers add nothing, from the second on all of it."""

# Ranking policies of the catalog.
CLAUSE_WORDS_WEIGHT = 0.4
"""Deviations that one deviation of BM25F of the best clause adds in the policy *hybrid*; in
``auto`` that is `SearchOptions.lexical_weight`."""
RRF_K = 60
"""Rank offset of reciprocal rank fusion: Cormack, Clarke and Büttcher (2009)."""
WEIGHTED_COSINE, WEIGHTED_KEYWORDS = 0.6, 0.4
"""Shares of the policy *weighted*, as registries count."""
LEGACY_BOOST = 0.1
"""What one unit of keyword boost adds to a cosine on 0 to 1 in the policy *legacy*."""
LEGACY_MAX_PER_KIND = 3
"""Entities of one kind that *legacy* lists."""
INFORMATIVE_WORDS = 2.5
"""Unmatched words; *hybrid* reads words as evidence if some entity holds more than these weigh."""
INFORMATIVE_COVERAGE = 0.5
"""Share of a query, by rarity; otherwise an entity needs so much of it to have a rank by words."""
SIBLING_WEIGHT = 0.35
"""Deviations that one deviation of the best other tool of its server adds in *hybrid*. Measured on
the mixed catalog of ``benchmarks.registry``."""
LONE_ENTITY_SHARE = 0.6
"""What stands alone counts in *hybrid* as if a sibling fitted this share of how well it fits."""
HYBRID_GROUP_WEIGHT = 1.0
"""As `SERVER_GROUP_WEIGHT`, in *hybrid*: with more, the kinds without servers would vanish."""

# Keywords, as registries count them.
KEYWORD_PATH, KEYWORD_NAME, KEYWORD_DESCRIPTION, KEYWORD_TAG = 5.0, 3.0, 2.0, 1.5
KEYWORD_METADATA, KEYWORD_TOOL = 1.0, 1.0
"""Boost of an entity, by the field that holds any word of the query; `KEYWORD_TOOL` for each tool
of a server that holds a word in its name or description."""
WORD_IS_NAME, WORD_IN_NAME, WORD_IN_DESCRIPTION = 10.0, 5.0, 2.0
"""Points that one word earns: it is the name, else stands in it; it stands in the description."""

# Next steps.
EDGE_WEIGHT, TASK_WEIGHT, NEIGHBOUR_WEIGHT, SERVER_WEIGHT = 3.0, 1.0, 0.7, 2.0
"""Deviations that an edge, the task, nearness to the last tool and its server add. Measured on
nestful and mcp_bench, where the outcome is flat around these."""
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
