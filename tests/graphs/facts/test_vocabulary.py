"""The table of predicates and what is derived from it."""

from __future__ import annotations

import pytest

from graphs.facts import PREDICATES, context, iri, is_iri, resolve, role


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("nextStep", "nextStep"),
        ("next_step", "nextStep"),
        ("NEXT-STEP", "nextStep"),
        ("alias", "altLabel"),
        ("dcterms:requires", "requires"),
        ("http://purl.org/dc/terms/requires", "requires"),
        ("schema:isPartOf", "https://schema.org/isPartOf"),
        ("https://e.org/p", "https://e.org/p"),
        ("nonsense", None),
        ("nobody:word", None),
        ("schema:", None),
        ("https://e.org/a b", None),
        ("", None),
    ],
)
def test_a_predicate_is_known_by_name_prefix_or_iri(word: str, expected: str | None) -> None:
    """Authors write in their own habit; facts hold one word for one thing."""
    assert expected == resolve(word)


def test_every_predicate_is_a_term_of_the_context() -> None:
    """JSON-LD readers elsewhere must see the same words."""
    terms = context()

    assert [] == [name for name in PREDICATES if name not in terms]
    assert {"@id": "http://purl.org/dc/terms/requires", "@type": "@id"} == terms["requires"]


def test_a_foreign_iri_is_a_plain_fact() -> None:
    """It is kept and exported, and changes no search."""
    assert ("fact", "https://e.org/p") == (role("https://e.org/p"), iri("https://e.org/p"))


def test_a_label_is_no_iri() -> None:
    """``domain:billing`` looks like a prefix and is a label."""
    assert [False, True] == [is_iri("domain:billing"), is_iri("urn:a:b")]
