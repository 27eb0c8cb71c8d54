"""Requirements of automatic search: eleven business rules, and negative and edge cases.

A test names its requirement by ``@pytest.mark.requirement("auto:rule-8")``. `test_requirements.py`
fails if a requirement has no test, or if a mark is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

RULES = "seed 004, Business Rules"
CASES = "seed 004, Negative And Edge Cases"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A required behaviour of the product."""

    source: str
    """Source of the requirement."""
    behavior: str
    """Required behaviour, in our words."""


def _rule(number: int, behavior: str) -> tuple[str, Requirement]:
    return f"auto:rule-{number}", Requirement(source=f"{RULES}, {number}", behavior=behavior)


def _case(name: str, behavior: str) -> tuple[str, Requirement]:
    return f"edge:{name}", Requirement(source=CASES, behavior=behavior)


REQUIREMENTS: Mapping[str, Requirement] = dict(
    (
        _rule(1, "Without being told, a gateway searches by the graph and needs no embedder."),
        _rule(2, "With usable query vectors, auto ranks by vectors before anything else."),
        _rule(
            3,
            "The graph never changes the order of auto's matches, least of all for multilingual "
            "or noisy queries.",
        ),
        _rule(
            4,
            "Once vectors have ranked, the graph may raise a match's confidence and may add "
            "related tools and next steps; nothing else.",
        ),
        _rule(
            5,
            "Where query vectors are missing, fail or cannot be used, the graph ranks, this "
            "request alone.",
        ),
        _rule(
            6,
            "A query that was rewritten in English is embedded in both forms, the original one "
            "and the English one.",
        ),
        _rule(
            7,
            "The graph reads the English form of a query that was rewritten; beside the query "
            "itself if the two contradict.",
        ),
        _rule(
            8,
            "What the graph adds to auto's matches comes from the head of the vector candidates, "
            "bounded by rank and by score, in a catalog of any size.",
        ),
        _rule(
            9,
            "The model sees two meta-tools first, then the latest found tools: matches, then "
            "what the graph added to them.",
        ),
        _rule(
            10,
            "Searches and index builds can be observed: duration, ranking behaviour and tokens "
            "of embeddings, as spans and metrics.",
        ),
        _rule(
            11,
            "Over a large catalog the work of one search is bounded: no index build, at most one "
            "embedding request, no walk through the whole graph.",
        ),
        _case("empty-query-browses", "No query and no context gives the mode `browse`."),
        _case("empty-catalog-is-empty", "No tools at all gives the mode `empty`."),
        _case(
            "no-normalizer-keeps-the-query",
            "Without a normalizer the query as it was said serves vectors and graph.",
        ),
        _case(
            "failed-normalizer-keeps-the-query",
            "A normalizer that fails costs the rewrite, not the search.",
        ),
        _case(
            "no-embeddings-fall-back-to-graph",
            "Without query embeddings auto answers by the graph and raises nothing.",
        ),
        _case(
            "no-graph-keeps-vectors",
            "Without a usable graph auto still gives what vectors rank, and does not fail.",
        ),
        _case(
            "graph-noise-never-displaces-vectors",
            "A tool that only the graph's words favour does not push out a strong vector match.",
        ),
        _case(
            "outside-window-is-no-proxy",
            "What the graph adds from outside the semantic window never becomes a direct tool.",
        ),
    )
)
