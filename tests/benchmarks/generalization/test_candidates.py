"""Candidates: what has no parameters, and what is chosen from a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.generalization.candidates import (
    Candidate,
    baseline_candidates,
    best_choice,
    choose_left_out,
    grid_candidates,
)
from benchmarks.generalization.evidence import Evidence
from benchmarks.generalization.scoring import Weights, fused
from gateway.runtime.vectors import Matrix, unit_rows


def by_name(sets: list[Evidence]) -> dict[str, Candidate]:
    """Return all candidates of the module."""
    return {each.name: each for each in (*baseline_candidates(), *grid_candidates(sets))}


def test_the_plain_candidate_is_the_product(sets: list[Evidence]) -> None:
    """Others rank by words or by vectors alone, or by their sum over the whole catalog."""
    large, found = sets[0], by_name(sets)

    scores = {name: found[name].score(large, None) for name in ("plain", "sum", "words", "vectors")}
    assert large.product is scores["plain"]
    assert np.isfinite(scores["sum"]).all()
    assert np.array_equal(large.words.scores > 0, np.isfinite(scores["words"]))
    assert np.allclose(large.texts[0] @ large.tools.T, scores["vectors"][0], atol=1e-6)


def test_the_best_choice_has_the_best_mean_over_the_training_sets(sets: list[Evidence]) -> None:
    """Each set counts the same, and of equals the first one is taken."""
    asked: list[tuple[str, int]] = []

    def score(evidence: Evidence, choice: int) -> Matrix:
        asked.append((evidence.name, choice))
        wrong = np.zeros_like(evidence.product)
        wrong[:, 0] = 1.0
        if evidence.name == "large":
            return wrong if choice else evidence.product
        return evidence.product if choice else wrong

    fit = best_choice((0, 1, 2), score)

    assert 0 == fit(sets[:1])
    assert 1 == fit(sets[1:])
    assert 1 == fit(sets)
    assert len(set(asked)) == len(asked)


def test_weights_that_help_the_training_sets_are_chosen(sets: list[Evidence]) -> None:
    """Without vectors that say anything, words get all the weight that they may."""
    noise = np.random.default_rng(0).standard_normal((len(sets[2].tools), 48))
    blind = replace(sets[2], tools=unit_rows(noise))
    weights = by_name(sets)["weights"]

    chosen = weights.fit([blind])

    assert isinstance(chosen, Weights)
    assert chosen.words > Weights().words
    assert np.array_equal(fused(blind, weights=chosen), weights.score(blind, chosen))
    described = weights.describe(chosen)
    assert isinstance(described, dict)
    assert chosen.words == described["words"]


def test_fields_are_weighed_by_the_evidence(sets: list[Evidence]) -> None:
    """An empty label is the product's own weights."""
    fields, large = by_name(sets)["fields"], sets[0]

    assert np.array_equal(fused(large), fields.score(large, ""))
    assert not np.array_equal(fused(large), fields.score(large, "description alone"))
    assert fields.fit(sets) in {"", *large.field_words}
    both = by_name(sets)["fields and words"]
    assert np.array_equal(fused(large), both.score(large, ("", Weights().words)))
    assert not np.array_equal(fused(large), both.score(large, ("", 0.7)))


def test_what_fits_its_own_training_sets_best_is_not_chosen_for_it(sets: list[Evidence]) -> None:
    """Within the training sets each origin is left out in turn."""

    def names(train: Sequence[Evidence]) -> set[str]:
        return {evidence.name for evidence in train}

    def remember(evidence: Evidence, seen: set[str]) -> Matrix:
        return evidence.product if evidence.name in seen else np.zeros_like(evidence.product)

    def worse(evidence: Evidence, _: object) -> Matrix:
        return evidence.words.scores

    memory = Candidate(name="memory", score=remember, fit=names)
    words = Candidate(name="words", score=worse)
    chosen = choose_left_out("chosen", [memory, words])

    fitted = chosen.fit(sets)

    assert {"candidate": "words", "parameters": None} == chosen.describe(fitted)
    assert np.array_equal(sets[0].words.scores, chosen.score(sets[0], fitted))
    assert {"candidate": "memory", "parameters": {"large", "small"}} == chosen.describe(
        chosen.fit(sets[:2])
    )
