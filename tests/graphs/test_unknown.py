"""Which words of a question nobody holds."""

from __future__ import annotations

import numpy as np
import pytest

from graphs.lexical.bm25_index import Postings

TEXTS = ("send a letter", "send a parcel", "track the parcel")


@pytest.fixture
def index() -> Postings:
    return Postings.build([{"name": text} for text in TEXTS], weights={"name": 1.0})


def test_what_nobody_holds_is_unknown(index: Postings) -> None:
    """By rarity: such a word is the rarest of all."""
    read = index.read("send zebras")
    known, unknown = (word.weight for word in read.asked)

    assert index.scarcity(read)[0] == pytest.approx(unknown / (known + unknown))
    assert index.scarcity(read)[1] == pytest.approx(known / unknown)
    assert 0.0 == index.scarcity(index.read("send parcel"))[0]
    assert (1.0, 0.0) == index.scarcity(index.read("zebras"))


def test_a_question_without_words_has_nothing_unknown(index: Postings) -> None:
    assert (0.0, 0.0) == index.scarcity(index.read(""))


def test_it_is_asked_of_some_alone(index: Postings) -> None:
    """What another server's tools hold says nothing of this one's."""
    read = index.read("track letter")
    first = np.array([True, False, False])
    letter = index.read("letter")

    assert 0.0 == index.scarcity(read)[0]
    assert 0.0 < index.scarcity(read, first)[0] < 1.0
    assert (0.0, 1.0) == (index.scarcity(letter, first)[0], index.scarcity(letter, ~first)[0])
    assert 0.0 == index.scarcity(letter, ~first)[1]
