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
    source: str
    """Document from which the requirement comes."""
    behavior: str
    """Required behaviour of the product, in our words."""


def _rule(number: int, behavior: str) -> tuple[str, Requirement]:
    return f"auto:rule-{number}", Requirement(source=f"{RULES}, {number}", behavior=behavior)


def _case(name: str, behavior: str) -> tuple[str, Requirement]:
    return f"edge:{name}", Requirement(source=CASES, behavior=behavior)


REQUIREMENTS: Mapping[str, Requirement] = dict(
    (
        _rule(1, "By default, a gateway without an embedder at hand searches by the graph."),
        _rule(2, "With usable query vectors, `auto` ranks by vectors first."),
        _rule(
            3,
            "The graph never changes the order of the matches of `auto`, in particular for "
            "multilingual or noisy queries.",
        ),
        _rule(
            4,
            "After a ranking by vectors, the graph may only raise a match's confidence and add "
            "related tools and next steps.",
        ),
        _rule(
            5, "If query vectors are missing, unusable or fail, the graph ranks in this request."
        ),
        _rule(
            6,
            "A query that was rewritten in English is embedded in its original and its English "
            "form.",
        ),
        _rule(
            7,
            "The graph uses the English form of a rewritten query, and also the original form if "
            "the two contradict each other.",
        ),
        _rule(
            8,
            "Supplements of `auto` come from the best vector candidates, limited by rank and by "
            "score, in a catalog of any size.",
        ),
        _rule(
            9,
            "The model sees two meta-tools first, then the latest found tools: first matches, then "
            "supplements.",
        ),
        _rule(
            10,
            "Spans and metrics show the duration, ranking and embedding tokens of searches and "
            "index builds.",
        ),
        _rule(
            11,
            "In a large catalog, a search builds no index, sends at most one embedding request and "
            "does not traverse the whole graph.",
        ),
        _case("empty-query-browses", "A search without query and context has the mode `browse`."),
        _case("empty-catalog-is-empty", "A search without tools has the mode `empty`."),
        _case(
            "no-normalizer-keeps-the-query",
            "Without a normalizer, vectors and graph use the original query.",
        ),
        _case(
            "failed-normalizer-keeps-the-query",
            "If the normalizer fails, the search uses the original query.",
        ),
        _case(
            "no-embeddings-fall-back-to-graph",
            "Without query embeddings, `auto` ranks by the graph and raises no error.",
        ),
        _case(
            "no-graph-keeps-vectors",
            "Without a usable graph, `auto` ranks by vectors and raises no error.",
        ),
        _case(
            "graph-noise-never-displaces-vectors",
            "A tool that only the graph's words match does not displace a strong vector match.",
        ),
        _case(
            "outside-window-is-no-proxy",
            "Supplements from outside the window never become proxies.",
        ),
    )
)
