"""What a model's cosines mean."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from gateway.embed import yardstick
from gateway.embed.cache import text_key
from gateway.embed.protocol import EmbedderInfo
from gateway.runtime.vectors import Vector, unit_rows
from gateway.testing import HashingEmbedder
from tests.conftest import OpenGateway
from tests.fakes import ListSource, tool

EVERY = (*chain.from_iterable(yardstick.PAIRS), *yardstick.BOASTS, *yardstick.PLAIN)


class Known(HashingEmbedder):
    """One that says what its cosines mean."""

    @property
    def info(self) -> EmbedderInfo:
        """With a scale."""
        return EmbedderInfo(model_id="known", provider="testing", dimensions=8, scale=(0.1, 0.6))


class Half(HashingEmbedder):
    """One that half knows what is not written in ASCII."""

    @property
    def info(self) -> EmbedderInfo:
        """With a reader."""
        return replace(super().info, reads=lambda text: 1.0 if text.isascii() else 0.25)


def rows(*, likeness: float) -> dict[str, Vector]:
    """Give vectors in which each request is so near to its tool, and the rest are strangers."""
    size = len(EVERY)
    found = {text: np.eye(size, dtype=np.float32)[at] for at, text in enumerate(EVERY)}
    for number, (request, served) in enumerate(yardstick.PAIRS):
        near = likeness * (0.5 if number < 3 else 1.0)
        mixed = near * found[served] + np.sqrt(1 - near**2) * found[request]
        found[request] = unit_rows(mixed)[0]
    return {text_key(text): row for text, row in found.items()}


def test_a_weak_match_is_one_and_a_stranger_nothing() -> None:
    """Three of the pairs are worse, and less than a quarter."""
    found = yardstick.of(HashingEmbedder(), rows(likeness=0.8))

    assert found is not None
    assert found.nearness(found.strangers) == pytest.approx(0)
    assert found.nearness(0.8) == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(found.nearness(np.array([0.4, 0.8])), [0.5, 1], atol=1e-6)


def test_a_boast_is_nearer_to_what_boasts_than_to_what_does_not() -> None:
    """What any tool may say of itself is none."""
    found = yardstick.of(HashingEmbedder(), rows(likeness=0.8))

    assert found is not None
    assert found.boast is not None
    known = rows(likeness=0.8)
    assert found.boast @ known[text_key(yardstick.BOASTS[0])] > 0.4
    assert found.boast @ known[text_key(yardstick.PLAIN[0])] < 0


def test_a_model_without_meaning_has_no_scale() -> None:
    """Its matches are no nearer than strangers; nor is anything known where a vector is missing."""
    known = rows(likeness=0.8)
    del known[text_key(EVERY[0])]

    assert yardstick.of(HashingEmbedder(), rows(likeness=0.0)) is None
    assert yardstick.of(HashingEmbedder(), known) is None
    assert yardstick.of(None, rows(likeness=0.8)) is None


def test_what_a_model_half_knows_is_unread() -> None:
    """By what it says of itself."""
    found = yardstick.of(Half(), rows(likeness=0.8))

    assert found is not None
    assert (0, 0.75) == (found.unread("hello"), found.unread("नमस्ते"))


def test_who_says_it_is_believed() -> None:
    """And embeds what tools claim alone."""
    known = Known(8)
    found = yardstick.of(known, {})

    assert found is not None
    assert (0.1, 0.6, None) == (found.strangers, found.matches, found.boast)
    assert 0 == found.unread("नमस्ते")
    assert (*yardstick.BOASTS, *yardstick.PLAIN) == yardstick.texts(known.info)
    assert set(EVERY) == set(yardstick.texts(HashingEmbedder().info))


@pytest.mark.parametrize(("count", "worth"), [(3, False), (40, True)])
async def test_a_model_is_measured_once_where_a_catalog_is_worth_it(
    open_gateway: OpenGateway, count: int, worth: bool
) -> None:
    """Beside the texts of the catalog, at the first build."""
    embedder = HashingEmbedder()
    tools = [tool(f"take_{number}", f"Take {number}.") for number in range(count)]
    gateway = open_gateway(tools, strategy="auto", embedder=embedder)

    await gateway.report()
    first = embedder.texts
    gateway.add_source(ListSource("more", [tool("put", "Put.")]))
    await gateway.report()

    assert worth == (EVERY[0] in chain.from_iterable(embedder.batches))
    assert 2 == embedder.texts - first
