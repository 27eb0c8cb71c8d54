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
def test_resolve_finds_predicates_by_name_prefixed_name_or_iri(
    word: str, expected: str | None
) -> None:
    assert expected == resolve(word)


def test_context_contains_every_predicate() -> None:
    """Readers of the exported JSON-LD must see the same predicates."""
    terms = context()

    assert [] == [name for name in PREDICATES if name not in terms]
    assert {"@id": "http://purl.org/dc/terms/requires", "@type": "@id"} == terms["requires"]


def test_role_of_an_iri_outside_the_vocabulary_is_fact() -> None:
    assert ("fact", "https://e.org/p") == (role("https://e.org/p"), iri("https://e.org/p"))


def test_label_with_a_colon_is_not_an_iri() -> None:
    """``domain:billing`` looks like a prefixed name but is a label."""
    assert [False, True] == [is_iri("domain:billing"), is_iri("urn:a:b")]
