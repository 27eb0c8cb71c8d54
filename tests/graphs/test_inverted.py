"""Words that come and go, against a fresh reading."""

from __future__ import annotations

import random

import pytest

from graphs.lexical.bm25_index import Postings

WEIGHTS = {"name": 3.0, "text": 1.0}
WORDS = (
    "create",
    "invoice",
    "invoices",
    "createInvoice",
    "sha256",
    "weather",
    "wether",
    "b",
    "sea",
)


def same(fresh: Postings, found: Postings) -> None:
    assert (fresh.size, set(fresh.terms), fresh.languages) == (
        found.size, set(found.terms), found.languages
    )  # fmt: skip
    assert set(fresh.spelling.words) == {word for word in found.spelling.words if word}
    for query in (*WORDS, "invoyce", "createweather", "zzz"):
        one, other = fresh.match(query), found.match(query)
        assert one.scores.tolist() == other.scores.tolist()
        assert one.coverage.tolist() == other.coverage.tolist()
        assert one.unmatched == other.unmatched


@pytest.mark.parametrize("number", range(20))
def test_changed_postings_are_fresh_ones(number: int) -> None:
    """To the last bit, wherever documents come between others."""
    draw = random.Random(number)  # noqa: S311  (the same texts at every run; no secret)

    def text() -> dict[str, str]:
        return {name: " ".join(draw.choices(WORDS, k=draw.randrange(6))) for name in WEIGHTS}

    documents = [text() for _ in range(draw.randrange(8))]
    index = Postings.build(documents, weights=WEIGHTS)
    for _ in range(8):
        gone = draw.sample(range(len(documents)), k=min(len(documents), draw.randrange(4)))
        later = [each for at, each in enumerate(documents) if at not in gone]
        places = sorted(draw.sample(range(len(later) + 3), k=3))
        new = {at: text() for at in places}
        for at, each in new.items():
            later.insert(at, each)
        new = {
            at: each for at, each in enumerate(later) if any(each is one for one in new.values())
        }
        index = index.changed({at: documents[at] for at in sorted(gone)}, new)
        documents = later
    same(Postings.build(documents, weights=WEIGHTS), index)


def test_words_that_nobody_says_any_more_are_given_up() -> None:
    """However often a catalog changes, its index is no larger than what it holds."""
    documents = [{"name": "create invoice"}, {"name": "weather"}]
    index = Postings.build(documents, weights=WEIGHTS)
    for number in range(3):
        odd = {"text": " ".join(f"w{number}x{each}" for each in range(700))}
        index = index.changed({}, {1: odd}).changed({1: odd}, {})

    same(Postings.build(documents, weights=WEIGHTS), index)
    assert len(index.names) < 1500
    assert len(index.spelling.words) < 1500


def test_many_documents_at_once_are_changed_too() -> None:
    """As many as there are, and more."""
    documents = [{"name": f"tool {number} {WORDS[number % 9]}"} for number in range(600)]
    index = Postings.build(documents[:300], weights=WEIGHTS)

    index = index.changed({}, dict(enumerate(documents[300:], 300)))
    same(Postings.build(documents, weights=WEIGHTS), index)
    index = index.changed(dict(enumerate(documents[:590])), {})

    same(Postings.build(documents[590:], weights=WEIGHTS), index)
