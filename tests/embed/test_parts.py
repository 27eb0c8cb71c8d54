"""Vectors of several encoders: what of a cosine is left where one of them is silent."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gateway.embed import yardstick
from gateway.embed.factory import resolve_embedder
from gateway.embed.parts import VectorParts
from gateway.embed.protocol import EmbedderInfo
from gateway.embed.yardstick import Yardstick
from gateway.errors import ConfigError
from gateway.runtime.vectors import unit_rows
from gateway.testing import HashingEmbedder


class Told(HashingEmbedder):
    """An embedder that says more of itself."""

    def __init__(self, info: EmbedderInfo) -> None:
        super().__init__()
        self._told = info

    @property
    def info(self) -> EmbedderInfo:
        return self._told


PARTS = VectorParts(starts=(0, 2), usual=(0.75, 0.25))
SPOKEN = unit_rows(np.array([[3.0, 0.0, 0.0, math.sqrt(3.0)], [0.0, -3.0, math.sqrt(3.0), 0.0]]))
"""Both encoders have their usual share."""
SILENT = np.array([0.0, 1.0, 0.0, 0.0], np.float32)
"""The second has none."""


@pytest.mark.parametrize(
    ("starts", "usual"),
    [
        ((), ()),
        ((1, 2), (0.5, 0.5)),
        ((0, 3, 2), (0.5, 0.25, 0.25)),
        ((0, 2, 2), (0.5, 0.25, 0.25)),
        ((0, 2), (0.5,)),
        ((0, 2), (0.5, 0.6)),
        ((0, 2), (1.5, -0.5)),
    ],
)
def test_parts_that_cannot_be_are_refused(
    starts: tuple[int, ...], usual: tuple[float, ...]
) -> None:
    """Where they are given, not at a search."""
    with pytest.raises(ConfigError, match=r"starts|usual"):
        VectorParts(starts=starts, usual=usual)


@pytest.mark.parametrize("starts", [(0, 8), (0, 99)])
def test_parts_beyond_the_vectors_are_refused(starts: tuple[int, ...]) -> None:
    """And what is none at all."""
    info = replace(HashingEmbedder().info, dimensions=8)

    with pytest.raises(ConfigError, match="8 numbers"):
        resolve_embedder(Told(replace(info, parts=VectorParts(starts=starts, usual=(0.5, 0.5)))))
    with pytest.raises(ConfigError, match="VectorParts"):
        resolve_embedder(Told(replace(info, parts="no")))  # type: ignore[arg-type]


def test_without_anything_in_common_no_cosine_is_blown_up() -> None:
    """Nothing is divided by nothing."""
    other = np.array([[0.0, 0.0, 1.0, 0.0]], np.float32)

    assert PARTS.common(SILENT, other) == pytest.approx(0.05)


def test_a_yardstick_knows_the_parts_of_its_model() -> None:
    """Or nothing would be divided."""
    info = replace(HashingEmbedder().info, parts=PARTS, scale=(0.1, 0.6))
    found = yardstick.of(Told(info), {})

    assert found is not None
    assert found.parts == PARTS


def test_where_all_speak_a_cosine_can_be_whole() -> None:
    """However little they agree."""
    assert PARTS.common(SPOKEN[0], SPOKEN) == pytest.approx(1.0)
    assert PARTS.common(SPOKEN[0]) == pytest.approx(1.0)
    assert PARTS.common(SILENT, SILENT[None]) == pytest.approx(1.0)


def test_where_one_is_silent_the_rest_is_all_there_can_be() -> None:
    """On either side."""
    rest = math.sqrt(0.75)

    assert PARTS.common(SILENT, SPOKEN) == pytest.approx(rest)
    assert PARTS.common(SPOKEN[0], SILENT[None]) == pytest.approx(rest)
    assert PARTS.common(SILENT) == pytest.approx(rest)
    assert PARTS.common(SILENT, SPOKEN[:0]) == pytest.approx(rest)
    assert PARTS.common(SILENT, np.stack([SILENT, SPOKEN[0]])) == pytest.approx((1 + rest) / 2)


def test_of_a_query_in_several_forms_that_counts_which_can_be_nearest() -> None:
    """And of a model of one encoder each cosine can be whole."""
    scale = Yardstick(strangers=0.0, matches=0.4, parts=PARTS)

    assert scale.common(np.stack([SILENT, SPOKEN[0]])) == pytest.approx(1.0)
    assert scale.common(SILENT[None], SPOKEN) == pytest.approx(math.sqrt(0.75))
    assert 1.0 == Yardstick(strangers=0.0, matches=0.4).common(SILENT[None], SPOKEN)
