from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.lexical import fold, slug, split_identifier, tokens


def words(text: str, *, language: str = "") -> list[str]:
    found_tokens = tokens(text, language=language)
    return [term for token in found_tokens for term in (*token.parts, *token.wholes)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create_invoice", ["creat", "invoic"]),
        ("create-invoice.now", ["creat", "invoic", "now"]),
        ("createInvoice", ["creat", "invoic", "createinvoic"]),
        ("GitHub", ["git", "hub", "github"]),
        ("HTTPServer URLs", ["http", "server", "httpserver", "url"]),
        ("issues of the files", ["issu", "file"]),
        ("the browser page of a user's filter", ["browser", "page", "user", "filter"]),
        ("the user\u2019s", ["user"]),
        ("s3 c c++ c# k8s K8S", ["s3", "c", "c++", "c#", "k8s", "k8s"]),
        ("fix# a+b", ["fix", "b"]),
        ("sha256", ["sha256", "sha"]),
        ("what is this", ["what", "is", "this"]),
        ("天气预报", ["天气", "气预", "预报"]),
        ("天", ["天"]),
        ("用AI搜索", ["用", "ai", "搜索"]),
        ("날씨 예보", ["날씨", "예보"]),
        ("Résumés", ["resum"]),
        ("\uff46\uff55\uff4c\uff4c", ["full"]),
        ("погода погоды", ["погод", "погод"]),
        ("\ud800a\udfffb", ["b"]),
        ("\u200d 👩\u200d👧", []),
        ("", []),
        ("→ ...", []),
    ],
)
def test_tokens_returns_the_terms_of_a_text(text: str, expected: list[str]) -> None:
    assert expected == words(text)


@pytest.mark.parametrize("pair", ["किताब किताबें", "χώρα χώρες", "كتاب الكتاب", "քաղաքը քաղաքի"])
def test_tokens_stems_each_script_with_its_own_stemmer(pair: str) -> None:
    """Search without an embedding model must work in the languages of the texts."""
    first, other = words(pair)

    assert first == other


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Häuser погоды", "de-AT", ["haus", "погод"]),
        ("files", "xx", ["file"]),
        ("was files", "nl", ["was", "file"]),
        ("die was", "de", ["die", "was"]),
    ],
)
def test_tokens_stems_in_the_given_language(text: str, language: str, expected: list[str]) -> None:
    """The stop list is English, so ``was`` is kept in other languages."""
    assert expected == words(text, language=language)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("getK8sPods", ["get", "k8s", "pods"]),
        ("list-all.issues_now", ["list", "all", "issues", "now"]),
        ("X509Certificate2", ["x509", "certificate2"]),
        ("EC2", ["ec2"]),
        ("", []),
    ],
)
def test_split_identifier_splits_at_separators_and_case_changes(
    name: str, expected: list[str]
) -> None:
    assert tuple(expected) == split_identifier(name)


def test_fold_ignores_case_and_separators() -> None:
    assert fold("create_invoice") == fold("Create-Invoice ")


@settings(deadline=None)
@given(st.text(st.characters(blacklist_categories=()), max_size=80))
def test_any_text_can_be_tokenized_and_made_a_slug(text: str) -> None:
    """Texts come from untrusted servers."""
    assert all(term and term == term.strip() for term in words(text))
    assert slug(text)


def test_slugs_of_different_labels_differ() -> None:
    names = ["погода", "天气", "ห้อง", "หอง", "C", "C++", "C#", "→", "!", "?", "<", "a" * 200]

    assert len(names) == len({slug(name) for name in names})


def test_slug_ignores_case_spaces_and_unicode_composition() -> None:
    assert [slug("Größe-2")] * 3 == [slug("größe_2"), slug(" GRÖSSE  2 "), slug("Gro\u0308ße 2")]
