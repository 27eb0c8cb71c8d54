"""What a SPARQL query answers, as plain values: no rdflib here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

TermKind = Literal["iri", "literal", "blank"]
AnswerKind = Literal["select", "ask", "construct", "describe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One RDF term."""

    kind: TermKind
    value: str
    """The IRI, the text of the literal, or the blank node's own name."""
    language: str = ""
    """The language of a literal; empty if it has none."""
    datatype: str = ""
    """The datatype IRI of a literal; empty for plain text."""


Row: TypeAlias = tuple[Term | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a query answers."""

    kind: AnswerKind
    columns: tuple[str, ...] = ()
    """The variables in order; subject, predicate and object of a described graph."""
    rows: tuple[Row, ...] = ()
    """The solutions, None where a variable is not bound; or the triples."""
    value: bool | None = None
    """The answer to an ASK; None otherwise."""
    truncated: bool = False
    """Whether there were more rows than the limit."""

    def column(self, name: str) -> tuple[Term | None, ...]:
        """Give the values of one column; empty if there is no such column."""
        at = self.columns.index(name) if name in self.columns else -1
        return tuple(row[at] for row in self.rows) if at >= 0 else ()


Ask: TypeAlias = Callable[[str], Answer]
"""Answers a SPARQL text; raises `QueryError` for one that it refuses."""


def to_json(answer: Answer) -> dict[str, object]:
    """Write *answer* as JSON values."""
    return {
        "kind": answer.kind,
        "columns": answer.columns,
        "rows": [
            [each and [each.kind, each.value, each.language, each.datatype] for each in row]
            for row in answer.rows
        ],
        "value": answer.value,
        "truncated": answer.truncated,
    }


def from_json(found: Mapping[str, object]) -> Answer:
    """Read what `to_json` has written; nothing else."""
    rows: list[list[list[str] | None]] = found["rows"]  # type: ignore[assignment]  # our own JSON
    return Answer(
        kind=found["kind"],  # type: ignore[arg-type]  # our own JSON
        columns=tuple(map(str, found["columns"])),  # type: ignore[call-overload]  # our own JSON
        rows=tuple(tuple(each and _term(each) for each in row) for row in rows),  # type: ignore[misc]  # an empty cell is None
        value=found["value"],  # type: ignore[arg-type]  # our own JSON
        truncated=bool(found["truncated"]),
    )


def _term(parts: list[str]) -> Term:
    kind, value, language, datatype = parts
    return Term(kind=kind, value=value, language=language, datatype=datatype)  # type: ignore[arg-type]  # our own JSON
