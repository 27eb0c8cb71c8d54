"""The inverted index: scores, coverage and what explains them."""

from __future__ import annotations

import numpy as np
import pytest

from graphs.lexical.analysis import tokens, words
from graphs.lexical.bm25_index import Postings
from graphs.lexical.lexicon import Lexicon

DOCUMENTS = [
    {"name": "create_invoice", "description": "Make an invoice for a customer"},
    {"name": "GitHub issues", "description": "Search the open issues of a repository"},
    {"name": "weather", "description": "The weather of a city, and of the sea", "other": "zebra"},
]
WEIGHTS = {"name": 3.0, "description": 1.0}
INDEX = Postings.build(DOCUMENTS, weights=WEIGHTS)


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
def test_the_document_that_was_meant_is_first(query: str, best: int) -> None:
    """Plurals, humps and typos are how people write."""
    assert best == int(np.argmax(INDEX.scores(query)))


def test_a_full_match_is_covered_whole_and_a_half_match_half() -> None:
    """Coverage is comparable between queries; scores are not."""
    index = Postings.build([{"a": "red green"}, {"a": "blue white"}], weights={"a": 1.0})

    assert [1.0, 0.0] == index.coverage("red green").tolist()
    assert [0.5, 0.5] == index.coverage("red blue").tolist()


def test_a_near_spelling_is_covered_partly() -> None:
    """A guess must not look like a match."""
    assert 0.0 < INDEX.coverage("wether")[2] < INDEX.coverage("weather")[2]


def test_a_word_that_nobody_knows_lowers_the_coverage() -> None:
    """Gibberish beside a word is still gibberish."""
    assert INDEX.coverage("invoice")[0] > INDEX.coverage("invoice qwxyzzy")[0] > 0


def test_unknown_words_are_told_as_they_were_asked() -> None:
    """A model can mend a question when it hears which word failed."""
    assert ("Xylophones", "y7") == INDEX.unmatched("Xylophones invoice y7 invioce Xylophones")
    assert ("Xylophones",) == INDEX.match("weather Xylophones").unmatched


def test_a_question_without_end_is_read_at_its_beginning() -> None:
    """Each letter of a script without spaces begins a word: thousands would be looked up."""
    letters = "".join(chr(0x4E00 + number) for number in range(4096))
    prose = " ".join(f"{number}" for number in range(400))

    assert [1024, 400] == [len(INDEX.read(text).asked) for text in (letters, prose)]
    assert INDEX.match(f"invoice {letters}").scores[0] > 0
    assert not INDEX.match(f"{letters} invoice").touched


def test_one_pass_gives_what_the_single_questions_give() -> None:
    """Callers must not pay twice, and must not get two answers."""
    hits = INDEX.match("invoice wether zzzz")

    assert hits.scores.tolist() == INDEX.scores("invoice wether zzzz").tolist()
    assert hits.coverage.tolist() == INDEX.coverage("invoice wether zzzz").tolist()
    assert ("invoice", "wether", "zzzz") == hits.words
    assert [np.float32, np.float32] == [hits.scores.dtype, hits.coverage.dtype]


def test_ready_made_terms_give_the_same_scores() -> None:
    """A caller that has split the text once need not have it split again."""
    query = "create invoice customers"

    assert INDEX.scores(query).tolist() == INDEX.scores(words(query)).tolist()


def test_a_rare_word_and_a_heavy_field_count_more() -> None:
    """BM25F, as it is meant to work."""
    index = Postings.build(
        [{"name": "mail", "text": "send"}, {"name": "send", "text": "mail"}, {"text": "send"}],
        weights={"name": 3.0, "text": 1.0},
    )

    scores = index.scores("mail")
    assert scores[0] > scores[1] > scores[2] == 0
    assert index.scores("mail")[0] > index.scores("send")[1]


def test_a_long_field_discounts_its_words() -> None:
    """A word among few says more."""
    index = Postings.build([{"a": "red"}, {"a": "red green blue white"}], weights={"a": 1.0})

    assert index.scores("red")[0] > index.scores("red")[1]


def test_the_explanation_adds_up_to_the_score() -> None:
    """Evidence that does not sum to the score is no evidence."""
    found = INDEX.explain("create invoyce", 0)

    assert [("create", "creat", "name"), ("invoyce", "invoic", "name")] == [
        (match.word, match.term, match.field) for match in found
    ]
    assert sum(m.weight for m in found) == pytest.approx(float(INDEX.scores("create invoyce")[0]))


def test_the_explanation_of_a_miss_is_empty() -> None:
    """Nothing matched, nothing is told; hits may stand for their question."""
    assert ((), ()) == (INDEX.explain("weather", 0), INDEX.explain(INDEX.match("sea"), 1))


def test_a_field_without_weight_is_not_indexed() -> None:
    """The table of weights is the list of fields."""
    assert ("zebra",) == INDEX.unmatched("zebra")


@pytest.mark.parametrize("query", ["", "→", []])
def test_an_empty_question_scores_nothing(query: str | list[str]) -> None:
    """And divides by nothing."""
    hits = INDEX.match(query)

    assert ([0.0] * 3, [0.0] * 3, ()) == (hits.scores.tolist(), hits.coverage.tolist(), hits.words)


@pytest.mark.parametrize("documents", [[], [{}], [{"name": ""}]])
def test_an_empty_catalog_answers(documents: list[dict[str, str]]) -> None:
    """An empty catalog is a catalog."""
    hits = Postings.build(documents, weights=WEIGHTS).match("create invoice")

    assert [0.0] * len(documents) == hits.scores.tolist()
    assert ("create", "invoice") == hits.unmatched


def test_a_number_beside_a_word_meets_the_word() -> None:
    """``sha256`` is a kind of ``sha``, but ``sha1`` is not ``sha256``."""
    index = Postings.build([{"a": "sha hash"}, {"a": "sha256 hash"}], weights={"a": 1.0})

    assert 0 < index.scores("sha256")[0] < index.scores("sha256")[1]


def test_a_lost_space_is_found_again() -> None:
    """``createinvoice`` is how people hurry."""
    index = Postings.build([{"a": "create invoice"}, {"a": "create issue"}], weights={"a": 1.0})

    assert ("createinvoice",) == index.match("createinvoice").words
    assert index.scores("createinvoice")[0] > index.scores("createinvoice")[1]


def test_many_unknown_words_are_no_typos() -> None:
    """In a long request each guess counts the less, so that the known words decide."""
    index = Postings.build([{"a": "invoice"}, {"a": "weather"}], weights={"a": 1.0})
    strangers = " ".join(f"qqqq{one}{two}" for one in "abcdef" for two in "ghijklmn")

    assert index.scores(f"invioce {strangers}")[0] < index.scores("invioce")[0] / 2 + 0.01


def test_each_language_has_its_stems_and_a_question_is_read_in_all_of_them() -> None:
    """Nobody says which language a question is in."""
    index = Postings.build(
        [{"a": [("Häuser kaufen", "de")]}, {"a": [("acheter des maisons", "fr")]}, {"a": "house"}],
        weights={"a": 1.0},
    )

    assert ["Haus", "maison"] == [
        word for word, best in (("Haus", 0), ("maison", 1)) if np.argmax(index.scores(word)) == best
    ]
    assert ("", "de", "fr") == index.languages


def test_an_identifier_is_met_whole_in_another_language() -> None:
    """``MeinHaus`` is one word in a German text."""
    index = Postings.build([{"a": [("MeinHaus", "de")]}, {"a": "nichts"}], weights={"a": 1.0})

    assert 0 == int(np.argmax(index.scores("meinhaus")))
    assert index.scores("MeinHaus")[0] > 0


def test_a_second_build_reads_only_what_is_new_and_forgets_what_is_gone() -> None:
    """A changed document costs a changed document."""
    lexicon = Lexicon()
    Postings.build(DOCUMENTS, weights=WEIGHTS, lexicon=lexicon)
    changed = [*DOCUMENTS[1:], {"name": "new", "description": "tool"}]

    again = Postings.build(changed, weights=WEIGHTS, lexicon=lexicon)

    fresh = Postings.build(changed, weights=WEIGHTS)
    assert 2 == lexicon.read_count
    assert (
        again.scores("new weather issues").tolist() == fresh.scores("new weather issues").tolist()
    )
    assert ("invoice",) == again.unmatched("invoice")
    assert sorted(again.names) == sorted(fresh.names)


@pytest.mark.parametrize(
    "query", ["create invoyce", "weather in the sea", "createinvoice", "createissue city", "zz"]
)
def test_the_words_of_many_documents_are_those_of_each_explanation(query: str) -> None:
    """One look-up a word instead of one a document."""
    hits = INDEX.match(query)
    every = list(range(INDEX.size))
    expected = [tuple(dict.fromkeys(each.word for each in INDEX.explain(hits, at))) for at in every]

    assert expected == INDEX.held(hits, every).words
    assert [] == INDEX.held(hits, []).words
    assert hits.coverage.tolist() == INDEX.held(INDEX.read(query), every).coverage
    assert hits.scores.tolist() == INDEX.held(INDEX.read(query), every).scores


def test_a_text_and_its_tokens_are_the_same_question() -> None:
    """So that two indexes can share one reading."""
    query = "create the wether invoice"

    assert INDEX.match(query).scores.tolist() == INDEX.match(tokens(query)).scores.tolist()


def test_a_word_is_resolved_once() -> None:
    """Also one that nobody knows, which costs the most; and not too many are kept."""
    index = Postings.build(DOCUMENTS, weights=WEIGHTS)

    index.match("invoice wether")
    resolved = dict(index.resolved)
    index.match("wether invoice")

    assert resolved == index.resolved
    assert 2 == len(resolved)
    index.match([f"x{number}" for number in range(9000)])
    assert len(index.resolved) < 9000
