"""Tools that are in no catalog."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.cohort import texts, vectors
from gateway.embed import cohort as module
from gateway.embed.cohort import AXES, LOCAL_MODEL, Cohort, cohort
from gateway.embed.local.embedder import SCALES, LocalEmbedder
from gateway.runtime.vectors import unit_rows


def test_along_enough_axes_cosines_are_exact() -> None:
    """The best over the texts of a request."""
    draw = np.random.default_rng(3)
    rows, asked = unit_rows(draw.normal(size=(20, 32))), unit_rows(draw.normal(size=(2, 32)))

    found = Cohort.of(rows)

    assert (20, 32) == found.axes.shape
    np.testing.assert_allclose(found.cosines(asked), (rows @ asked.T).max(axis=1), atol=1e-5)
    np.testing.assert_allclose(found.cosines(asked[:1]), rows @ asked[0], atol=1e-5)


def test_texts_are_alike_as_their_cosines_with_the_cohort_are() -> None:
    """As a correlation: how near both are to everything does not count."""
    draw = np.random.default_rng(5)
    rows, texts = unit_rows(draw.normal(size=(20, 12))), unit_rows(draw.normal(size=(2, 12)))
    tools = unit_rows(draw.normal(size=(3, 12)))
    cosines = np.concatenate([texts, tools]) @ rows.T
    seen = np.asarray(np.corrcoef(cosines))[:2, 2:]

    known = Cohort.of(rows)

    assert known.alike(texts, tools) == pytest.approx(seen.max(), abs=1e-4)
    assert known.alike(texts[:1], tools) == pytest.approx(seen[0].max(), abs=1e-4)
    assert known.alike(texts[:1], np.zeros_like(tools)) == 0.0


def test_the_packaged_cohort_is_that_of_the_texts() -> None:
    """Some of them are embedded again, and stand where they stood."""
    embedder = LocalEmbedder()
    known = cohort(embedder.info.model_id)
    some = slice(None, None, 30)

    assert known is not None
    assert (len(texts()), AXES) == known.places.shape
    np.testing.assert_allclose(known.axes @ known.axes.T, np.eye(AXES), atol=2e-3)
    rows = vectors(embedder, texts()[some])
    # Processors round in 8 bits each in their own way.
    np.testing.assert_allclose(known.places[some], rows @ known.axes.T, atol=1e-2)


def test_what_was_measured_of_the_local_model_is_known_by_one_name() -> None:
    """Its scale and its cohort: who names the next model names it once."""
    package = Path(module.__file__).parents[1]
    held = [path.name for path in package.rglob("*.py") if LOCAL_MODEL in path.read_text("utf-8")]

    assert ["cohort.py"] == held
    assert LOCAL_MODEL in SCALES
    assert LocalEmbedder().info.model_id == LOCAL_MODEL


def test_the_file_holds_the_vectors_of_the_model_that_is_named() -> None:
    """Who makes the file anew for another model has to say so."""
    with np.load(Path(module.__file__).with_name("cohort.npz"), allow_pickle=False) as known:
        assert {f"{LOCAL_MODEL}.axes", f"{LOCAL_MODEL}.places"} == set(known)


def test_of_another_model_nothing_is_known() -> None:
    """It is judged without."""
    assert cohort("another") is None
    assert cohort("") is None
