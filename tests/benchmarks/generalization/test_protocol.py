"""Evaluation on groups of data sets that were not used for fitting, and the rule for accepting a
candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.generalization.candidates import Candidate
from benchmarks.generalization.evidence import Evidence
from benchmarks.generalization.protocol import check_sets, evaluate
from gateway.errors import ConfigError
from gateway.runtime.vectors import Matrix


def test_sets_are_judged_by_parameters_fitted_on_other_origins(sets: list[Evidence]) -> None:
    """In-sample figures, fitted on all sets, are reported too."""
    fitted: list[tuple[str, ...]] = []
    scored: list[tuple[str, tuple[str, ...]]] = []

    def fit(train: Sequence[Evidence]) -> tuple[str, ...]:
        names = tuple(evidence.name for evidence in train)
        fitted.append(names)
        return names

    def score(evidence: Evidence, parameters: tuple[str, ...]) -> Matrix:
        scored.append((evidence.name, parameters))
        # Parameters that were fitted on the set score it correctly.
        return evidence.product if evidence.name in parameters else np.zeros_like(evidence.product)

    (result,) = evaluate(sets, [Candidate(name="memory", fit=fit, score=score)], lambda _: None)

    everything = ("large", "small", "other")
    assert {everything, ("other",), ("large", "small")} == set(fitted)
    assert [
        *(("large", ("other",)), ("large", everything)),
        *(("small", ("other",)), ("small", everything)),
        *(("other", ("large", "small")), ("other", everything)),
    ] == scored
    assert all(each.in_sample == each.plain for each in result.sets)
    assert all(each.left_out.recall < each.plain.recall for each in result.sets)
    gains = [each.left_out.recall - each.plain.recall for each in result.sets]
    assert pytest.approx(np.mean(gains)) == result.difference.mean
    assert min(gains) == pytest.approx(result.worst.difference.mean)
    assert result.difference.high < 0
    assert not result.is_taken


def with_wrong(sets: Sequence[Evidence], wrong: Sequence[int]) -> tuple[list[Evidence], Candidate]:
    """Return sets on which the product finds nothing, and a candidate that fails in *wrong*
    queries.
    """
    spoilt = [
        replace(each, product=np.zeros_like(each.product), exact_names=((),) * len(each.gold))
        for each in sets
    ]
    right = {each.name: each for each in sets}
    failures = dict(zip(right, wrong, strict=True))

    def score(evidence: Evidence, _: object) -> Matrix:
        scores = right[evidence.name].product.copy()
        scores[: failures[evidence.name]] = 0.0
        return scores

    return spoilt, Candidate(name="right", score=score)


def test_candidate_with_enough_gain_and_no_loss_is_accepted(sets: list[Evidence]) -> None:
    """The product gains nothing against itself."""
    spoilt, candidate = with_wrong(sets, (0, 0, 0))
    lines: list[str] = []
    (better,) = evaluate(spoilt, [candidate], lines.append)
    (same,) = evaluate(spoilt, [Candidate(name="plain", score=lambda each, _: each.product)], print)

    assert better.is_taken
    assert better.difference.low > 0
    gain = f"{100 * better.difference.mean:+.2f}"
    worst = f"{better.worst.name} {100 * better.worst.difference.mean:+.2f}"
    assert [f"right: {gain}, worst {worst}, taken"] == lines
    assert (0.0, False) == (same.difference.mean, same.is_taken)


def test_candidate_with_a_loss_on_one_set_is_rejected(sets: list[Evidence]) -> None:
    spoilt, candidate = with_wrong(sets, (0, 0, 21))
    spoilt[2] = replace(spoilt[2], product=sets[2].product)
    (result,) = evaluate(spoilt, [candidate], lambda _: None)

    assert result.difference.mean > 0.1
    assert "other" == result.worst.name
    assert not result.is_taken


def test_data_sets_of_a_single_origin_are_refused(sets: list[Evidence]) -> None:
    """No set of another origin would be left for fitting."""
    check_sets(sets)
    with pytest.raises(ConfigError, match="two groups"):
        check_sets(sets[:2])
    with pytest.raises(ConfigError, match="same name"):
        check_sets([*sets, sets[2]])
