"""The arithmetic of BM25F, against the formula written out."""

from __future__ import annotations

import numpy as np
import pytest

from graphs.bm25 import Table


def test_fields_are_summed_before_saturation() -> None:
    """Two documents, two fields; the first document holds term 0 in both."""
    table = Table(rows=np.array([0, 0, 1, 0, 1]), lengths=np.array([[3, 1], [0, 1]]), k1=1.2, b=0.5)

    term, document, weight, field = table.weigh(np.array([2.0, 1.0]))

    # Field 0: average 3, so no discount; field 1: average 1, so none either.
    expected = [2 * 2 + 1, 1 * 2, 1 * 1]
    assert [(0, 0, 0), (1, 0, 0), (1, 1, 1)] == list(
        zip(term.tolist(), document.tolist(), field.tolist(), strict=True)
    )
    assert weight.tolist() == pytest.approx([f * 2.2 / (f + 1.2) for f in expected])


def test_no_words_weigh_nothing() -> None:
    """An empty catalog is a catalog."""
    table = Table(
        rows=np.zeros(0, dtype=np.int64), lengths=np.zeros((0, 1), dtype=np.int64), k1=1.2, b=0.5
    )

    assert [0, 0, 0, 0] == [len(each) for each in table.weigh(np.array([1.0]))]
