"""Candidate rankings: some without parameters, others with parameters chosen from a grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.generalization.candidates import (
    Candidate,
    baseline_candidates,
    best_choice,
    grid_candidates,
)
from benchmarks.generalization.evidence import Evidence
from benchmarks.generalization.scoring import Weights, fused
from gateway.runtime.vectors import Matrix, unit_rows


def by_name(sets: list[Evidence]) -> dict[str, Candidate]:
    """Return all candidates, keyed by name."""
    return {item.name: item for item in (*baseline_candidates(), *grid_candidates(sets))}


def test_candidate_plain_ranks_like_the_product(sets: list[Evidence]) -> None:
    """Other candidates rank by words or vectors alone, or by their sum over the whole catalog."""
    large, result = sets[0], by_name(sets)

    scores = {
        name: result[name].score(large, None) for name in ("plain", "sum", "words", "vectors")
    }
    assert large.product is scores["plain"]
    assert np.isfinite(scores["sum"]).all()
    assert np.array_equal(large.words.scores > 0, np.isfinite(scores["words"]))
    assert np.allclose(large.texts[0] @ large.tools.T, scores["vectors"][0], atol=1e-6)


def test_chosen_parameters_have_the_best_mean_over_the_training_sets(sets: list[Evidence]) -> None:
    """Each set has equal weight. Of equally good parameters, the first are chosen."""
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


def test_signal_weights_that_help_are_chosen(sets: list[Evidence]) -> None:
    """If the vectors are random, words get the greatest possible weight."""
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


def test_weights_of_text_fields_are_chosen_by_the_evidence(sets: list[Evidence]) -> None:
    """An empty label stands for the product's own field weights."""
    fields, large = by_name(sets)["fields"], sets[0]

    assert np.array_equal(fused(large), fields.score(large, ""))
    assert not np.array_equal(fused(large), fields.score(large, "description alone"))
    assert fields.fit(sets) in {"", *large.field_words}
    both = by_name(sets)["fields and words"]
    assert np.array_equal(fused(large), both.score(large, ("", Weights().words)))
    assert not np.array_equal(fused(large), both.score(large, ("", 0.7)))


def test_weights_of_server_scores_change_the_ranking(sets: list[Evidence]) -> None:
    """The product's own weights give the product's ranking."""
    large, weights = sets[0], Weights()
    every = by_name(sets)["fields, words and servers"]
    label, words, servers = every.fit(sets)
    plain = every.score(large, ("", weights.words, weights.servers))

    assert np.array_equal(fused(large), plain)
    assert not np.array_equal(plain, every.score(large, ("", weights.words, (0.0, 0.0))))
    assert label in {"", *large.field_words}
    assert (words > 0, 2) == (True, len(servers))
