"""The graph, written for others as RDF. The same facts, the same text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from graphs.facts.fact import Fact


def to_turtle(facts: Iterable[Fact]) -> str:
    """Write *facts* as Turtle."""
    return _rdf(facts, "turtle")


def to_n_triples(facts: Iterable[Fact]) -> str:
    """Write *facts* as N-Triples, sorted; empty without facts."""
    lines = sorted(filter(None, _rdf(facts, "nt").split("\n")))
    return "".join(f"{line}\n" for line in lines)


def to_json_ld(facts: Iterable[Fact]) -> str:
    """Write *facts* as JSON-LD with the context of the vocabulary inside."""
    text = _rdf(facts, "json-ld")
    return json.dumps(_ordered(json.loads(text)), ensure_ascii=False, indent=2) + "\n"


def _rdf(facts: Iterable[Fact], form: str) -> str:
    from graphs.rdf import convert  # noqa: PLC0415  (rdflib is heavy: a warm start must not pay for it)

    return convert.serialize(facts, form)


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return sorted(map(_ordered, value), key=_sort_key)
    return value


_sort_key: Callable[[object], str] = json.JSONEncoder(sort_keys=True).encode
