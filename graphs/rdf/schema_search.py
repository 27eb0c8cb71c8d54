"""Schema-aware search: a profile becomes SPARQL, and its rows become matches with evidence.

* The generated queries are part of the result: they show why something was found.
* SPARQL finds the texts in which a word begins like one of the question; what is a match is then
  decided by the terms of `lexical.analysis`, so that whole words are compared and plurals meet.
* This file writes text and reads rows. A `graphs.SparqlProcess` or a function answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from math import prod

from graphs.expansion import Step
from graphs.facts.vocabulary import iri, resolve
from graphs.lexical.analysis import Token, tokens, words
from graphs.rdf.profile import DEFAULT, FollowRole, Profile, Relation, TermMode, TextRule
from graphs.rdf.sparql_process import Answer, AskSparql, Row

_MAX_FOLLOWED = 12
_ROWS_A_MATCH = 20
_PARTLY = 0.8
"""What a text earns that says more than the question, against one that says just it."""
_MAX_WORDS = 32
_SHORTEST = 3
_SAFE = re.compile(r"[^\s<>\"{}|\\^`]+")
_SPECIAL = re.compile(r"[\\|.?*+(){}\[\]^$-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEvidence:
    """One text that speaks for a match."""

    predicate: str
    """The predicate of the text."""
    text: str
    """The text that met."""
    words: tuple[str, ...]
    """The words of the question that stand in it, as they were asked."""
    score: float
    """What it adds to the match, > 0."""
    path: tuple[Step, ...] = ()
    """The statement between the match and the node that the text belongs to; empty for its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaMatch:
    """A node that a profile has found."""

    node: str
    """Its IRI."""
    label: str
    """Its name; the IRI where it has none."""
    score: float
    """In (0, 1]; comparable between questions of one profile."""
    evidence: tuple[TextEvidence, ...]
    """What speaks for it, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A node that belongs to a match."""

    node: str
    label: str
    role: FollowRole
    score: float
    """The match's score times that of the predicate."""
    path: tuple[Step, ...]
    """The statement that leads to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaResult:
    """What a profile has found, and what was asked."""

    matches: tuple[SchemaMatch, ...] = ()
    """Best first, ties by label."""
    followed: tuple[Followed, ...] = ()
    """What belongs to them, best first; never a match itself."""
    sparql: str = ""
    """The query for the matches; empty if the question had no words."""
    expansion_sparql: str = ""
    """The query for what belongs to them; empty if nothing was found."""
    truncated: bool = False
    """Whether there were more rows than were read: the answer may lack something."""

    def of(self, role: FollowRole) -> tuple[Followed, ...]:
        """Return what belongs to the matches in one role."""
        return tuple(follow for follow in self.followed if follow.role == role)


def search_schema(
    ask: AskSparql, text: str, *, profile: Profile = DEFAULT, limit: int = 5
) -> SchemaResult:
    """Find nodes by *profile*.

    Args:
        ask: Answers SPARQL; ours, or an endpoint's.
        text: A question in any language; one without words finds nothing.
        profile: What is searched, and what is shown with it.
        limit: How many matches at most; at most 12 nodes that belong to them are given.

    Raises:
        QueryError: The query cannot be answered.
    """
    query = tokens(text)[:_MAX_WORDS]
    if not query or limit < 1:
        return SchemaResult()
    sparql = matches_query(query, profile, limit=limit * _ROWS_A_MATCH)
    answer = ask(sparql)
    matches = _matches(answer, query, profile)[:limit]
    if not matches or not profile.follows:
        return SchemaResult(matches=matches, sparql=sparql, truncated=answer.truncated)
    following = follow_query([match.node for match in matches], profile)
    followed = _followed(ask(following), matches, profile)
    return SchemaResult(
        matches=matches,
        followed=followed[:_MAX_FOLLOWED],
        sparql=sparql,
        expansion_sparql=following,
        truncated=answer.truncated,
    )


def matches_query(query: Sequence[Token], profile: Profile, *, limit: int) -> str:
    """Write the query that finds texts with words of *asked*, those with most of them first."""
    branches = [
        _branch(at, f"?node <{_iri(rule.predicate)}> ?text .")
        for at, rule in enumerate(profile.texts)
    ]
    branches += [
        _branch(at, _relation(relation))
        for at, relation in enumerate(profile.relations, len(profile.texts))
    ]
    met = " + ".join(f'IF(REGEX(STR(?text), "{_pattern(token)}", "i"), 1, 0)' for token in query)
    least = 1 if profile.terms == "any" else len(query)
    return (
        "SELECT DISTINCT ?node ?label ?rule ?via ?told ?text ?met WHERE {\n"
        + "\n  UNION\n".join(branches)
        + f"\n{_typed('?node', profile)}  BIND({met} AS ?met)\n  FILTER(?met >= {least})\n"
        f"  OPTIONAL {{ ?node <{_iri('name')}> ?label }}\n}}\n"
        f"ORDER BY DESC(?met) ?node ?rule ?text\nLIMIT {limit}"
    )


def follow_query(nodes: Iterable[str], profile: Profile) -> str:
    """Write the query that follows the predicates of *profile* from *nodes*."""
    branches = []
    for at, rule in enumerate(profile.follows):
        subject, target = ("?node", "?other") if rule.direction == "out" else ("?other", "?node")
        branches.append(_branch(at, f"{subject} <{_iri(rule.predicate)}> {target} ."))
    found = " ".join(f"<{node}>" for node in nodes)
    return (
        f"SELECT DISTINCT ?node ?other ?label ?rule WHERE {{\n  VALUES ?node {{ {found} }}\n"
        + "\n  UNION\n".join(branches)
        + f"\n{_typed('?other', profile)}"
        f"  OPTIONAL {{ ?other <{_iri('name')}> ?label }}\n}}\nORDER BY ?node ?rule ?other"
    )


def _relation(relation: Relation) -> str:
    subject, target = ("?node", "?via") if relation.direction == "out" else ("?via", "?node")
    texts = " ".join(f"<{_iri(text)}>" for text in relation.texts)
    edge = f"{subject} <{_iri(relation.predicate)}> {target} ."
    return f"{edge} VALUES ?told {{ {texts} }} ?via ?told ?text ."


def _typed(variable: str, profile: Profile) -> str:
    kinds = " ".join(f"<{kind}>" for kind in profile.types)
    return f"  VALUES ?type {{ {kinds} }}\n  {variable} a ?type .\n" if kinds else ""


def _iri(word: str) -> str:
    return iri(resolve(word) or word)


def _branch(rule: int, pattern: str) -> str:
    return f'  {{ {pattern} BIND("{rule}" AS ?rule) }}'


def _pattern(word: Token) -> str:
    """Write what a word of a text begins with that may be *word*, as a regular expression."""
    parts = [_start(spelt, part) for spelt, part in zip(word.spelt, word.parts, strict=True)]
    return r"[\\W_]*".join(parts)


def _start(spelt: str, stem: str) -> str:
    """Return the letters that all forms of a word begin with."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(spelt, stem, strict=False))
    start = spelt[: max(len(list(same)), min(_SHORTEST, len(spelt)))]
    return _SPECIAL.sub(lambda mark: "\\\\" + mark[0], start)


def _matches(answer: Answer, query: Sequence[Token], profile: Profile) -> tuple[SchemaMatch, ...]:
    found: list[SchemaMatch] = []
    rows = sorted((row for row in answer.rows if _node(row)), key=_node)
    for node, group in groupby(rows, key=_node):
        rows_of_node = list(group)
        evidence = dict.fromkeys(
            filter(None, (_evidence(row, query, profile) for row in rows_of_node))
        )
        if evidence:
            best = sorted(evidence, key=lambda text: (-text.score, text.predicate, text.text))
            label = min((_value(row, 1) for row in rows_of_node), default="") or node
            score = 1 - prod(1 - text.score for text in best)
            found.append(SchemaMatch(node=node, label=label, score=score, evidence=tuple(best)))
    return tuple(sorted(found, key=lambda match: (-match.score, match.label, match.node)))


def _evidence(row: Row, query: Sequence[Token], profile: Profile) -> TextEvidence | None:
    node, rule, via, text_predicate, text = _node(row), *(_value(row, at) for at in (2, 3, 4, 5))
    met = _met(text, query, profile.terms)
    if not met or not rule.isdigit():
        return None
    number = int(rule)
    rules: tuple[TextRule | Relation, ...] = (*profile.texts, *profile.relations)
    if number >= len(rules):
        return None
    predicate = rules[number].predicate
    whole = words(text) == [term for token in query for term in (*token.parts, *token.wholes)]
    share = 1.0 if whole else _PARTLY * len(met) / len(query)
    top = max(weighted.weight for weighted in rules)
    steps: tuple[Step, ...] = ()
    if number >= len(profile.texts):
        out = profile.relations[number - len(profile.texts)].direction == "out"
        steps = (_step(node, predicate, via) if out else _step(via, predicate, node),)
        predicate = text_predicate
    return TextEvidence(
        predicate=resolve(predicate) or predicate,
        text=text,
        words=met,
        score=rules[number].weight / top * share,
        path=steps,
    )


def _met(text: str, query: Sequence[Token], mode: TermMode) -> tuple[str, ...]:
    """Return the words of the question that stand in *text*; empty if they are not enough."""
    terms = words(text)
    held = frozenset(terms)
    met = tuple(
        token.surface
        for token in query
        if held.issuperset(token.parts) or not held.isdisjoint(token.wholes)
    )
    if mode != "any" and len(met) < len(query):
        return ()
    if mode == "phrase":
        phrase = [part for token in query for part in token.parts]
        plain = [part for token in tokens(text) for part in token.parts]
        ends = range(len(plain) - len(phrase) + 1)
        return met if any(plain[at : at + len(phrase)] == phrase for at in ends) else ()
    return met


def _followed(
    answer: Answer, matches: Sequence[SchemaMatch], profile: Profile
) -> tuple[Followed, ...]:
    scores = {match.node: match.score for match in matches}
    found: dict[tuple[str, str], Followed] = {}
    for followed in _followers(answer, scores, profile):
        earlier = found.get((followed.node, followed.role))
        if followed.node not in scores and (earlier is None or earlier.score < followed.score):
            found[followed.node, followed.role] = followed
    return tuple(
        sorted(
            found.values(), key=lambda followed: (-followed.score, followed.label, followed.node)
        )
    )


def _followers(answer: Answer, scores: dict[str, float], profile: Profile) -> Iterator[Followed]:
    for row in answer.rows:
        node, other, label, rule = _node(row), *(_value(row, at) for at in (1, 2, 3))
        if node in scores and _SAFE.fullmatch(other) and rule.isdigit():
            follow = profile.follows[int(rule)]
            ends = (node, other) if follow.direction == "out" else (other, node)
            yield Followed(
                node=other,
                label=label or other,
                role=follow.role,
                score=scores[node] * follow.score,
                path=(_step(ends[0], follow.predicate, ends[1]),),
            )


def _step(subject: str, predicate: str, target: str) -> Step:
    name = resolve(predicate) or predicate
    return Step(subject=subject, predicate=name, object=target, path="", line=0, declared=False)


def _node(row: Row) -> str:
    """Return the row's node, if it can stand in another query."""
    term = row[0] if row else None
    return term.value if term and term.kind == "iri" and _SAFE.fullmatch(term.value) else ""


def _value(row: Row, at: int) -> str:
    term = row[at] if at < len(row) else None
    return term.value if term else ""
