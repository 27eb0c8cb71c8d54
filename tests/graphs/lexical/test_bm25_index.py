from __future__ import annotations

import numpy as np
import pytest

from graphs.lexical import BM25Index, tokens

DOCUMENTS = [
    {"name": "create_invoice", "description": "Make an invoice for a customer"},
    {"name": "GitHub issues", "description": "Search the open issues of a repository"},
    {"name": "weather", "description": "The weather of a city, and of the sea", "other": "zebra"},
]
WEIGHTS = {"name": 3.0, "description": 1.0}
INDEX = BM25Index.build(DOCUMENTS, weights=WEIGHTS)


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("invoices", 0),
        ("invioce", 0),
        ("github isues", 1),
        ("git hub", 1),
        ("searchIssues", 1),
        ("GitHub", 1),
        ("wheather of cities", 2),
    ],
)
def test_match_scores_the_best_document_highest(query: str, best: int) -> None:
    assert best == int(np.argmax(INDEX.match(query).scores))


def test_coverage_is_the_share_of_the_query_that_a_document_matches() -> None:
    """Spelling corrections and unknown words give a lower coverage."""
    index = BM25Index.build([{"a": "red green"}, {"a": "blue white"}], weights={"a": 1.0})

    assert [1.0, 0.0] == index.match("red green").coverage.tolist()
    assert [0.5, 0.5] == index.match("red blue").coverage.tolist()
    assert 0.0 < INDEX.match("wether").coverage[2] < INDEX.match("weather").coverage[2]
    assert INDEX.match("invoice").coverage[0] > INDEX.match("invoice qwxyzzy").coverage[0] > 0


def test_unmatched_returns_unknown_words_as_the_query_spells_them() -> None:
    """A model can correct a query if it knows which words matched no document."""
    assert ("Xylophones", "y7") == INDEX.analyze(
        "Xylophones invoice y7 invioce Xylophones"
    ).unmatched
    assert ("Xylophones",) == INDEX.match("weather Xylophones").unmatched
    assert ("zebra",) == INDEX.analyze(
        "zebra"
    ).unmatched  # A field without a weight is not indexed.


def test_analyze_ignores_words_beyond_the_maximum_of_a_query() -> None:
    """In a script without spaces each letter begins a word, so a long query has thousands of
    words.
    """
    letters = "".join(chr(0x4E00 + number) for number in range(4096))
    prose = " ".join(f"{number}" for number in range(400))

    assert [1024, 400] == [len(INDEX.analyze(text).terms) for text in (letters, prose)]
    assert INDEX.match(f"invoice {letters}").scores[0] > 0
    assert not INDEX.match(f"{letters} invoice").scores.any()


def test_match_scores_rare_words_weighty_fields_and_short_fields_higher() -> None:
    index = BM25Index.build(
        [{"name": "mail", "text": "send"}, {"name": "send", "text": "mail"}, {"text": "send"}],
        weights={"name": 3.0, "text": 1.0},
    )

    scores = index.match("mail").scores
    assert scores[0] > scores[1] > scores[2] == 0
    assert index.match("mail").scores[0] > index.match("send").scores[1]
    short = BM25Index.build([{"a": "red"}, {"a": "red green blue white"}], weights={"a": 1.0})
    assert short.match("red").scores[0] > short.match("red").scores[1]


def test_keyword_stuffing_neither_wins_nor_changes_other_scores() -> None:
    """Stuffed documents contain all words of the query, and rank below a document with half of
    them.
    """
    honest = [{"a": f"red green thing{number}"} for number in range(20)]
    heap = {"a": " ".join(["red", "green", "blue", *(f"word{number}" for number in range(500))])}
    index = BM25Index.build([*honest, *[heap] * 5], weights={"a": 1.0})
    alone = BM25Index.build([*honest, heap], weights={"a": 1.0})

    scores = index.match("red green blue").scores
    assert scores[:20].min() > 2 * scores[20:].max()
    assert alone.lengths[-1, 0] > 500
    red = [built.impacts[0] / built.idf[built.terms["red"]] for built in (index, alone)]
    assert red[0] == pytest.approx(red[1])


def test_misspelt_word_of_a_query_matches_its_correction() -> None:
    matches = INDEX.document_matches("create invoyce", [0, 1])

    assert ("create", "invoyce") == matches.words[0]
    assert [] == INDEX.document_matches("create invoyce", []).words


@pytest.mark.parametrize("query", ["", "→"])
def test_empty_query_scores_every_document_0(query: str) -> None:
    hits = INDEX.match(query)

    assert ([0.0] * 3, [0.0] * 3, ()) == (hits.scores.tolist(), hits.coverage.tolist(), hits.words)


@pytest.mark.parametrize("documents", [[], [{}], [{"name": ""}]])
def test_index_without_documents_answers_queries(documents: list[dict[str, str]]) -> None:
    hits = BM25Index.build(documents, weights=WEIGHTS).match("create invoice")

    assert [0.0] * len(documents) == hits.scores.tolist()
    assert ("create", "invoice") == hits.unmatched


def test_query_word_that_ends_with_a_number_matches_the_word_without_it() -> None:
    """``sha256`` matches ``sha``, but it does not match ``sha1``."""
    index = BM25Index.build([{"a": "sha hash"}, {"a": "sha256 hash"}], weights={"a": 1.0})

    assert 0 < index.match("sha256").scores[0] < index.match("sha256").scores[1]


def test_query_word_with_a_missing_space_matches_both_words() -> None:
    index = BM25Index.build([{"a": "create invoice"}, {"a": "create issue"}], weights={"a": 1.0})

    assert ("createinvoice",) == index.match("createinvoice").words
    assert index.match("createinvoice").scores[0] > index.match("createinvoice").scores[1]
    assert ("invoicexissue", "x" * 40) == index.analyze(f"invoicexissue {'x' * 40}").unmatched


def test_corrections_count_less_if_a_query_has_many_unknown_words() -> None:
    """In a long request, the words that the index contains should decide."""
    index = BM25Index.build([{"a": "invoice"}, {"a": "weather"}], weights={"a": 1.0})
    strangers = " ".join(f"qqqq{first}{two}" for first in "abcdef" for two in "ghijklmn")

    assert (
        index.match(f"invioce {strangers}").scores[0] < index.match("invioce").scores[0] / 2 + 0.01
    )


def test_query_is_stemmed_in_all_languages_of_the_indexed_texts() -> None:
    """The language of a query is unknown."""
    index = BM25Index.build(
        [
            {"a": (("Häuser kaufen", "de"),)},
            {"a": (("acheter des maisons", "fr"),)},
            {"a": "house"},
        ],
        weights={"a": 1.0},
    )

    assert ["Haus", "maison"] == [
        word
        for word, best in (("Haus", 0), ("maison", 1))
        if np.argmax(index.match(word).scores) == best
    ]
    assert ("", "de", "fr") == index.languages


def test_query_identifier_matches_a_whole_word_of_another_language() -> None:
    """In a German text, ``MeinHaus`` is one word."""
    index = BM25Index.build([{"a": (("MeinHaus", "de"),)}, {"a": "nichts"}], weights={"a": 1.0})

    assert 0 == int(np.argmax(index.match("meinhaus").scores))
    assert index.match("MeinHaus").scores[0] > 0


def test_match_accepts_the_tokens_of_a_query_instead_of_its_text() -> None:
    query = "create the wether invoice"

    assert INDEX.match(query).scores.tolist() == INDEX.match(tokens(query)).scores.tolist()


def test_index_can_have_more_terms_than_16_bits_can_number() -> None:
    """The ids of terms are sorted 16 bits at a time."""
    documents = [{"name": f"x{number} y{number}"} for number in range(40_000)]

    index = BM25Index.build(documents, weights=WEIGHTS)

    assert [39_999] == index.match("y39999").scores.nonzero()[0].tolist()
    assert [7] == index.match("x7").scores.nonzero()[0].tolist()


def test_fields_containing_returns_the_fields_with_a_word_of_the_query() -> None:
    (word,) = INDEX.analyze("weather").terms
    (identifier,) = INDEX.analyze("GitHub").terms

    bits, is_whole = INDEX.fields_containing(word, "name")

    assert ([0, 0, 3], [False, False, True]) == (bits.tolist(), is_whole.tolist())
    assert [0, 1, 0] == INDEX.fields_containing(identifier)[0].tolist()
    row = INDEX.terms["invoic"]
    assert [True, False] == [
        INDEX.occurs_in(row, np.array(mask)) for mask in ([1, 0, 0], [0, 1, 1])
    ]
