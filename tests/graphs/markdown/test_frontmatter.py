"""Parsing of front matter that is too large or too deep, or has forbidden characters."""

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
def test_read_refuses_front_matter_that_could_exhaust_memory_or_time(
    block: str, detail: str
) -> None:
    """Documents may be untrusted."""
    with pytest.raises(DocumentError) as caught:
        read(block)

    assert detail == caught.value.detail


def test_read_of_an_empty_block_returns_an_empty_mapping() -> None:
    assert {} == read("")


def test_read_returns_every_scalar_as_a_string_with_its_line() -> None:
    """YAML would read the country ``no`` as a boolean and the version ``1.10`` as a number."""
    expected = {
        "no": Scalar(text="1.10", line=7),
        "on": [Scalar(text="no", line=8), Scalar(text="", line=9)],
    }

    assert expected == read("no: 1.10\non: [no,\n  '']", line=7)
