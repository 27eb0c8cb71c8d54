"""Texts that lie in one are those that were written, and no more is cut apart than is asked for."""

from __future__ import annotations

import pytest

from graphs.joined import Joined, Numbered, joined, numbered

ODD = ["", "a", "\ud800", "\x85", "\U0001f600", "line\nbreak", "a b", "ab"]


def held(*texts: str) -> Joined:
    return Joined(*joined(texts))


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ODD, ["x"] * 3], ids=str)
def test_texts_come_back(texts: list[str]) -> None:
    """One by one, all at once, from the end and by slices."""
    found = held(*texts)

    assert texts == [found[at] for at in range(len(texts))]
    assert texts == [held(*texts)[at - len(texts)] for at in range(len(texts))]
    assert (texts, len(texts)) == (list(found), len(found))
    assert texts == list(found[:]) == [*found[:2], *found[2:]]
    assert f"Joined({texts!r})" == repr(found)
    for at in (len(texts), -len(texts) - 1):
        with pytest.raises(IndexError):
            held(*texts)[at]


def test_texts_are_equal_to_the_same_texts_alone() -> None:
    """Whatever holds them; a text is no sequence of texts."""
    found = held("a", "b")

    assert [True, True, True] == [found == other for other in (["a", "b"], ("a", "b"), held(*"ab"))]
    assert [False, False, False] == [found == other for other in (["a"], "ab", 1)]


def test_a_text_is_found_whole() -> None:
    """Not as a part of another one, and not across two."""
    found = held("abc", "b", "", "c")

    assert [1, 2, 3, -1, -1, -1] == [found.find(each) for each in ("b", "", "c", "a", "bc", "b\0")]
    assert [True, False] == ["b" in found, "a" in found]


def test_the_first_few_are_cut_out_alone() -> None:
    """A start looks at some of many; who goes on has all of them, which costs less by then."""
    found = held(*map(str, range(500)))

    seen = [found[at] for at in range(64)]
    few = "_texts" in vars(found)
    seen += [found[at] for at in range(64, 500)]

    assert [str(at) for at in range(500)] == seen
    assert [False, True] == [few, "_texts" in vars(found)]


def test_the_first_few_are_looked_for_and_the_rest_is_numbered() -> None:
    """As for the texts themselves."""
    texts = held(*map(str, range(500)))
    found = Numbered(texts)

    first = [found.get(str(at)) for at in range(16)]
    few = "_texts" in vars(texts)
    rest = [found[str(at)] for at in range(16, 500)]

    assert list(range(500)) == first + rest
    assert [False, True] == [few, "_texts" in vars(texts)]


def test_among_long_texts_nothing_is_looked_for() -> None:
    """To go through them all would cost more than to number them."""
    texts = held(*("x" * 1000 + str(at) for at in range(200)))

    assert 3 == Numbered(texts)["x" * 1000 + "3"]
    assert "_texts" in vars(texts)


@pytest.mark.parametrize("looks", [0, 20])
def test_the_place_of_a_text_is_that_of_the_last_one(looks: int) -> None:
    """As in a table of them: looked for, or numbered."""
    texts = ["b", "a", "b", "c"]
    found = numbered(held(*texts))
    for _ in range(looks):
        found.get("a")

    assert numbered(texts) == {"a": 1, "b": 2, "c": 3} == dict(found)
    assert [2, 1, None, 7] == [found["b"], found.get("a"), found.get("d"), found.get("d", 7)]
    assert [True, False] == ["b" in found, "d" in found]
    assert 3 == len(found)
    with pytest.raises(KeyError):
        found["d"]
