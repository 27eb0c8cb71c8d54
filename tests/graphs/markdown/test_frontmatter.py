"""Front matter that text fixtures cannot contain: sizes, depths, characters."""

from __future__ import annotations

import pytest

from graphs.errors import DocumentError
from graphs.markdown import Scalar
from graphs.markdown.frontmatter import read


@pytest.mark.parametrize(
    ("block", "detail"),
    [
        ("a: " + "x" * 70_000, "the front matter is longer than 64 kB: move text into the body"),
        ("a: " + "[" * 60_000, "the front matter is nested deeper than 16: flatten it"),
        ("a: {" * 15_000, "the front matter is nested deeper than 16: flatten it"),
        ("- " * 30_000, "the front matter is nested deeper than 16: flatten it"),
        ("a: \ud800", "the front matter contains half a character: save it as UTF-8"),
        ("a: \x01", "the front matter contains a character that YAML forbids"),
    ],
    ids=["large", "lists", "mappings", "dashes", "surrogate", "control"],
)
def test_dangerous_front_matter_is_refused(block: str, detail: str) -> None:
    """Documents may be untrusted, so parsing must stay cheap."""
    with pytest.raises(DocumentError) as caught:
        read(block)

    assert detail == caught.value.detail


def test_empty_block_is_an_empty_mapping() -> None:
    assert {} == read("")


def test_scalars_are_strings_with_their_line() -> None:
    """``no`` may be a country and ``1.10`` a version."""
    expected = {
        "no": Scalar(text="1.10", line=7),
        "on": [Scalar(text="no", line=8), Scalar(text="", line=9)],
    }

    assert expected == read("no: 1.10\non: [no,\n  '']", line=7)
