"""The linear adapter, on vectors whose differences are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.generalization.adapters import (
    SHARES,
    Shape,
    adapt,
    adapted,
    adapter_candidates,
    catalog_adapted,
    encoder_sets,
    fit_adapter,
    pairs,
    parts,
    shared,
    vectors_beside,
)
from benchmarks.generalization.evidence import Evidence
from benchmarks.generalization.scoring import Vectors, cosines, deviations, fused, judge, strengths
from gateway.errors import ConfigError
from gateway.runtime.vectors import unit_rows

ALL = (0,)


def noisy(evidence: Evidence) -> Evidence:
    """Return the set with eight more numbers, in which queries are far from all tools."""
    rng = np.random.default_rng(1)
    tools, texts, clauses = (
        unit_rows(np.hstack([rows, rng.standard_normal((len(rows), 8))]))
        for rows in (evidence.tools, evidence.texts, evidence.clauses)
    )
    return replace(evidence, tools=tools, texts=texts, clauses=clauses, widths=(56,))


def test_pairs_are_first_forms_and_relevant_tools(sets: list[Evidence]) -> None:
    """A query with two relevant tools gives two pairs; one that the catalog lacks gives none."""
    large = sets[0]
    lacking = replace(large, gold=((frozenset({"gone"}),), *large.gold[1:]))

    rows, positions = pairs(large)

    assert 22 == len(rows)
    assert np.flatnonzero(large.text_queries == 20)[0] == rows[-1] == rows[-2]
    assert ["create-invoice", "send-invoice"] == [large.tool_ids[at] for at in positions[-2:]]
    assert 21 == len(pairs(lacking)[0])
    assert 20 == len(pairs(large, single=True)[0])


def test_queries_of_several_tools_can_be_left_out_of_the_fitting(sets: list[Evidence]) -> None:
    """Where nothing is left, that is an error."""
    usual, single = Shape(encoders=ALL, ridge=1.0), Shape(encoders=ALL, ridge=1.0, single=True)
    several = replace(sets[0], gold=(sets[0].gold[20],) * len(sets[0].gold))

    assert not np.array_equal(fit_adapter(sets, usual), fit_adapter(sets, single))
    with pytest.raises(ConfigError, match="to be fitted on"):
        fit_adapter([several], single)


def test_directions_in_which_queries_differ_from_their_tools_are_shrunk(
    sets: list[Evidence],
) -> None:
    """What was learned on one set helps another one."""
    spoilt = [noisy(evidence) for evidence in sets]
    (whitening,) = (
        each for each in adapter_candidates((56,)) if each.name == "whitening 1 ridge 0.1"
    )

    adapter = whitening.fit(spoilt[:2])

    assert (56, 56) == adapter.shape
    lengths = np.linalg.norm(adapter, axis=1)
    assert lengths[48:].max() < lengths[:48].mean()
    before, vectors = Vectors.of(spoilt[2]), adapt(spoilt[2], ALL, adapter)
    recalls = [judge(spoilt[2], cosines(spoilt[2], each)[0]).recall for each in (before, vectors)]
    assert recalls[1] > recalls[0]
    assert np.allclose(1.0, np.linalg.norm(vectors.tools, axis=1), atol=1e-5)


def test_a_large_ridge_changes_nothing_but_lengths(sets: list[Evidence]) -> None:
    """The adapter is then a multiple of the identity."""
    adapter = fit_adapter(sets, Shape(encoders=ALL, ridge=1e6))

    assert np.allclose(np.eye(48), adapter / adapter[0, 0], atol=1e-3)


def test_a_rank_keeps_the_directions_in_which_tools_differ(sets: list[Evidence]) -> None:
    """Cosines of whole and reduced vectors are nearly the same if little is left out."""
    whole = fit_adapter(sets, Shape(encoders=ALL, ridge=1.0))
    reduced = fit_adapter(sets, Shape(encoders=ALL, ridge=1.0, rank=40))

    assert (48, 40) == reduced.shape
    first, second = adapt(sets[0], ALL, whole), adapt(sets[0], ALL, reduced)
    before, after = first.tools @ first.tools.T, second.tools @ second.tools.T
    assert np.abs(before - after).mean() < 0.1
    assert np.corrcoef(before.ravel(), after.ravel())[0, 1] > 0.98


def test_encoders_are_parts_of_the_vectors() -> None:
    """All encoders leave them as they are; a part has unit length again."""
    rows = unit_rows(np.array([[3.0, 4.0, 0.0, 12.0]]))

    assert rows is parts(rows, (2, 1, 1), (0, 1, 2))
    assert np.allclose([[0.6, 0.8]], parts(rows, (2, 1, 1), (0,)))
    assert np.allclose([[0.0, 1.0]], parts(rows, (2, 1, 1), (1, 2)))
    assert [(0, 1, 2), (0, 1), (0, 2), (1, 2), (0,), (1,), (2,)] == encoder_sets(3)
    assert [(0,)] == encoder_sets(1)
    names = [each.name for each in adapter_candidates((200, 200, 200))]
    assert {"encoders 1+3", "whitening 2 ridge 1 beside x 0.5", "whitening chosen"} < set(names)
    assert "encoders 1+2+3" not in names
    assert len(set(names)) == len(names)


def test_in_blocks_each_encoder_is_adapted_by_itself(sets: list[Evidence]) -> None:
    """No direction of the adapter has numbers of two encoders."""
    two = [replace(evidence, widths=(16, 32)) for evidence in sets]
    shape = Shape(encoders=(0, 1), ridge=1.0)

    whole, blocks = fit_adapter(two, shape), fit_adapter(two, replace(shape, blocks=True))

    assert np.abs(whole[:16, 16:]).max() > 1e-3
    assert np.abs(blocks[:16, 16:]).max() < 1e-4
    assert np.allclose(blocks, blocks.T, atol=1e-5)


def test_beside_the_product_an_adapted_cosine_is_added(sets: list[Evidence]) -> None:
    """What the product does not rank stays out."""
    large, shape = sets[0], Shape(encoders=ALL, ridge=1.0, beside=0.5)
    adapter = fit_adapter(sets[1:], shape)

    scores = adapted(shape, large, adapter)

    added = 0.5 * deviations(strengths(large, adapt(large, ALL, adapter)))
    ranked = np.isfinite(large.product)
    assert np.array_equal(ranked, np.isfinite(scores))
    assert np.allclose((large.product + added)[ranked], scores[ranked], atol=1e-5)
    own = large.product + 0.5 * deviations(strengths(large))
    assert np.allclose(own[ranked], vectors_beside(0.5, large)[ranked], atol=1e-5)


def test_the_catalogs_own_covariance_adapts_without_any_query(sets: list[Evidence]) -> None:
    """A large ridge leaves the product's ranking."""
    large = sets[0]

    assert not np.array_equal(fused(large), catalog_adapted(0.1, large))
    assert judge(large, fused(large)) == judge(large, catalog_adapted(1e6, large))


def test_shares_weigh_the_encoders(sets: list[Evidence]) -> None:
    """The first choice is the product's; without a share an encoder counts for nothing."""
    three = replace(sets[0], widths=(16, 16, 16))

    assert judge(three, fused(three)) == judge(three, shared(three, SHARES[0]))
    first = Vectors(
        tools=parts(three.tools, three.widths, (0,)),
        texts=parts(three.texts, three.widths, (0,)),
        clauses=parts(three.clauses, three.widths, (0,)),
    )
    alone = fused(three, vectors=first)
    ranked = np.isfinite(alone)
    assert np.allclose(alone[ranked], shared(three, (1.0, 0.0, 0.0))[ranked], atol=1e-4)
