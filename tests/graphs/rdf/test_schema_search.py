"""Schema-aware and hybrid search."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphs.errors import QueryError
from graphs.facts.extraction import extract_facts
from graphs.facts.vocabulary import CONCEPT_TYPE
from graphs.graph_builder import compile_facts
from graphs.markdown.parser import parse
from graphs.rdf.convert import to_rdf
from graphs.rdf.profile import DEFAULT, Follow, Profile, Relation, TermMode, TextRule
from graphs.rdf.schema_search import search_schema
from graphs.rdf.sparql import answer
from graphs.rdf.sparql_process import Answer, Term
from graphs.text_search import find

CREATE = """---
id: urn:t:create
title: create invoice
summary: Makes an invoice for a customer
graph_groups: accounting
requires: urn:t:login
graph_next_steps: urn:t:send
---
"""
TEXTS = [
    CREATE,
    "---\nid: urn:t:send\ntitle: send invoice\nsummary: Mails it\ngraph_related: urn:t:mail\n---\n",
    "---\nid: urn:t:mail\ntitle: send mail\nsummary: Sends any message\nkeywords: [C++]\n---\n",
    "---\nid: urn:t:login\ntitle: log in\ngraph_groups: accounting\n---\n",
    "---\nid: urn:t:weather\ntitle: 天气预报\nsummary: happily reporting\n---\n",
]
FACTS = extract_facts([parse(text, path=f"{at}.md") for at, text in enumerate(TEXTS)])
INDEX = compile_facts(FACTS)
GRAPH = to_rdf(FACTS)


def ask(text: str) -> Answer:
    return answer(GRAPH, text)


def nodes(text: str, profile: Profile = DEFAULT, limit: int = 5) -> str:
    found = search_schema(ask, text, profile=profile, limit=limit)
    return " ".join(match.node.rpartition(":")[2] for match in found.matches)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("invoices", "send create"),
        ("create invoice", "create send"),
        ("accounting", "create login"),
        ("天气", "weather"),
        ("c++", "mail"),
        ("reports", "weather"),
        ("voice", ""),
        ("", ""),
        ('") } DROP ALL #', ""),
    ],
)
def test_whole_words_meet_in_every_form_and_script(text: str, expected: str) -> None:
    """A part of a word is another word; and a question is data, not SPARQL."""
    assert sorted(expected.split()) == sorted(nodes(text).split())


@pytest.mark.parametrize(
    ("mode", "text", "expected"),
    [
        ("any", "send invoice", "send mail create"),
        ("all", "invoice send", "send"),
        ("phrase", "send invoice", "send"),
        ("phrase", "invoice send", ""),
        ("phrase", "invoices for customers", "create"),
    ],
)
def test_a_profile_says_how_words_are_compared(mode: TermMode, text: str, expected: str) -> None:
    """Any of them, all of them, or in their order."""
    found = nodes(text, replace(DEFAULT, terms=mode))

    assert expected.split()[:1] == found.split()[:1]
    assert sorted(expected.split()) == sorted(found.split())


def test_evidence_names_predicate_text_words_and_way() -> None:
    """And the generated queries are in the result."""
    found = search_schema(ask, "Accounting customers")

    (group, own) = sorted(
        found.matches[0].evidence, key=lambda each: each.predicate == "description"
    )
    assert ("description", ("customers",), ()) == (own.predicate, own.words, own.path)
    assert ("prefLabel", "accounting", ("Accounting",)) == (
        group.predicate,
        group.text,
        group.words,
    )
    assert ["memberOf"] == [step.predicate for step in group.path]
    assert "SELECT DISTINCT ?node" in found.sparql
    assert found.matches[0].node in found.expansion_sparql


def test_what_belongs_to_a_match_is_followed_in_its_direction() -> None:
    """Prerequisites, next steps and relations, never a match itself."""
    found = search_schema(ask, "send invoice", limit=1)

    assert ["urn:t:send"] == [match.node for match in found.matches]
    assert ["urn:t:mail"] == [each.node for each in found.of("related")]
    back = search_schema(ask, "sends any message", limit=1)
    assert ["urn:t:send"] == [each.node for each in back.of("related")]
    made = search_schema(ask, "create", limit=1)
    assert [["urn:t:login"], ["urn:t:send"]] == [
        [each.node for each in made.of("prerequisite")],
        [each.node for each in made.of("next_step")],
    ]


def test_a_text_that_says_just_the_question_comes_first_and_scores_stay_below_one() -> None:
    """Evidence adds up without leaving its range."""
    found = search_schema(ask, "send mail", limit=3)

    assert "urn:t:mail" == found.matches[0].node
    assert all(0 < match.score <= 1 for match in found.matches)


def test_a_profile_chooses_types_predicates_and_directions() -> None:
    """Concepts can be what is looked for."""
    concepts = Profile(
        texts=(TextRule(predicate="skos:prefLabel", weight=1.0),),
        relations=(Relation(predicate="memberOf", weight=0.5, direction="in", texts=("name",)),),
        follows=(),
        types=(CONCEPT_TYPE,),
    )
    anything = replace(concepts, types=())

    assert ["accounting", "accounting"] == [nodes("accounting", concepts), nodes("log", concepts)]
    found = search_schema(ask, "log", profile=anything)
    assert ["urn:t:login"] == [step.subject for step in found.matches[0].evidence[0].path]
    assert "" == found.expansion_sparql


@pytest.mark.parametrize(
    "wrong",
    [
        {"texts": (), "relations": ()},
        {"texts": (TextRule(predicate="no such", weight=1.0),)},
        {"follows": (Follow(predicate="no such", role="related", score=1.0),)},
        {"types": ("no iri> }",)},
    ],
)
def test_a_profile_that_makes_no_query_is_refused(wrong: dict[str, object]) -> None:
    """When it is written, not when it is asked."""
    with pytest.raises(QueryError, match="the profile"):
        Profile(**wrong)  # type: ignore[arg-type]  # faults on purpose


def test_a_strange_endpoint_cannot_smuggle_anything_into_the_next_query() -> None:
    """Its rows are data too."""
    evil = Term(kind="iri", value="urn:x> } DROP ALL #")
    text = Term(kind="literal", value="invoice")
    rule = Term(kind="literal", value="0")
    far = Term(kind="literal", value="99")
    node = Term(kind="iri", value="urn:x")
    rows = (
        (evil, None, rule, None, None, text),
        (node, None, far, None, None, text),
        (node, None, None, None, None, text),
        (None,),
        (),
    )

    found = search_schema(lambda _: Answer(kind="select", rows=rows), "invoice")

    assert () == found.matches


def test_one_function_answers_in_three_modes() -> None:
    """Words find typos, the schema brings its evidence, and both together bring both."""
    by_words = find(INDEX, "invioce", mode="focused")
    by_schema = find(INDEX, "accounting", mode="schema", ask=ask)
    both = find(INDEX, "create invoice", mode="hybrid", ask=ask, limit=2)

    assert {"urn:t:create", "urn:t:send"} == {each.node for each in by_words.matches}
    assert (None, None) == (by_words.schema, by_words.matches[0].by_schema)
    assert "urn:t:create" == both.matches[0].node
    assert both.matches[0].by_words
    assert both.matches[0].by_schema
    assert 2 == len(both.matches)
    assert by_schema.schema
    (step,) = (
        by_schema.matches[0].by_schema.evidence[0].path if by_schema.matches[0].by_schema else ()
    )
    assert ("0.md", 5) == (step.path, step.line)
    assert find(INDEX, "invioce", mode="hybrid", ask=ask).matches


def test_a_mode_that_needs_sparql_says_so() -> None:
    """Nothing is started behind the host's back."""
    with pytest.raises(ValueError, match="needs `ask`"):
        find(INDEX, "invoice", mode="hybrid")


def test_a_statement_that_the_index_does_not_hold_keeps_no_line() -> None:
    """An endpoint may know more than we."""
    found = find(compile_facts([]), "send invoice", mode="schema", ask=ask)

    assert found.schema
    assert {("", 0)} == {(s.path, s.line) for each in found.schema.followed for s in each.path}
