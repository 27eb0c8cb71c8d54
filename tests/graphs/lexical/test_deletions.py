"""The index of words at one slip, against the definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from graphs.lexical.deletions import MAX_LENGTH, DeletionIndex, HashedWords

_WORD = st.text("abcé\u0434", max_size=6)
_LONGER = st.text("abcdefg", min_size=3, max_size=8)


@given(st.lists(_WORD, unique=True, max_size=30), st.lists(_WORD, max_size=24))
def test_one_edit_is_what_it_says(words: list[str], asked: list[str]) -> None:
    """Exactly the words at distance one, for every asked word."""
    found = DeletionIndex.build(words).within_one_edit(HashedWords.of(asked))

    for word, ids in zip(asked, found, strict=True):
        near = [at for at, each in enumerate(words) if OSA.distance(word, each) <= 1]
        assert (near if word else []) == ids


def test_two_edits_begin_as_the_word_does() -> None:
    """The second slip is not on the first letter."""
    near = DeletionIndex.build(["accommodation", "commodity", "accordion"])

    assert [0] == near.within_two_edits("acomodation")
    assert [] == near.within_two_edits("")


@given(st.lists(_LONGER, unique=True, max_size=30), _LONGER)
def test_two_edits_are_what_they_say(words: list[str], asked: str) -> None:
    """Exactly the words at distance two or nearer that begin as the word does."""
    found = DeletionIndex.build(words).within_two_edits(asked)

    alike = [at for at, each in enumerate(words) if each[0] == asked[0]]
    assert [at for at in alike if OSA.distance(asked, words[at]) <= 2] == found


def test_a_long_word_is_no_misspelling() -> None:
    """Words that are too long are neither indexed nor looked up."""
    blob = "a" * (MAX_LENGTH + 1)
    near = DeletionIndex.build([blob])

    assert [[], []] == near.within_one_edit(HashedWords.of([blob, "a" * MAX_LENGTH]))
    assert [] == near.within_two_edits(blob)
