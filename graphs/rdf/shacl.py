"""pyshacl, at work. This file imports it and rdflib; `graphs.rdf.shapes` is the door to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import pyshacl
from pyshacl.errors import ConstraintLoadError, ReportableRuntimeError, ShapeLoadError
from rdflib import RDF, SH, Graph, URIRef
from rdflib.term import Node

from graphs.errors import DocumentError
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import DOCUMENT_BASE
from graphs.rdf import convert
from graphs.rdf.faults import SHAPES_FILE, Fault, Severity

_SEVERITIES: Mapping[str, Severity] = MappingProxyType({"Warning": "warning", "Info": "info"})
_FAULTS = (ConstraintLoadError, ReportableRuntimeError, ShapeLoadError)
_ORDER = ("violation", "warning", "info")
_RUN = frozenset(
    {str(SH[name]) for name in ("sparql", "select", "ask", "construct", "update", "rule", "js")}
    | {"http://www.w3.org/2002/07/owl#imports"}
)
"""Predicates that would make pyshacl run or fetch something."""


def check(facts: Iterable[Fact], shapes: str, further: str) -> tuple[Fault, ...]:
    """Compare *facts* with *shapes* and *further*, both Turtle; see `shapes.validate`."""
    rules = convert.parsed(shapes, "turtle", path=SHAPES_FILE)
    rules += convert.parsed(further, "turtle", path="further")
    forbidden = sorted(_RUN & {str(predicate) for predicate in rules.predicates()})
    if forbidden:
        detail = f"shapes with {forbidden[0]} are not run: use the core of SHACL"
        raise DocumentError(detail, path="further")
    try:
        _, report, _ = pyshacl.validate(
            convert.to_rdf(facts),
            shacl_graph=rules,
            inference="none",
            do_owl_imports=False,
            advanced=False,
            js=False,
            meta_shacl=False,
        )
    except _FAULTS as error:
        raise DocumentError(f"the shapes make no sense: {error}", path="further") from error
    if not isinstance(report, Graph):
        raise DocumentError(f"the shapes make no sense: {report}", path="further")
    found = sorted(_faults(report), key=lambda f: (_ORDER.index(f.severity), f.node, f.detail))
    return tuple(dict.fromkeys(found))


def _faults(report: Graph) -> Iterator[Fault]:
    for result in report.subjects(RDF.type, SH.ValidationResult):
        severity = _text(report.value(result, SH.resultSeverity)).rpartition("#")[2]
        path = report.value(result, SH.resultPath)
        yield Fault(
            node=_text(report.value(result, SH.focusNode)).removeprefix(DOCUMENT_BASE),
            path=str(path) if isinstance(path, URIRef) else "",
            value=_text(report.value(result, SH.value)),
            severity=_SEVERITIES.get(severity, "violation"),
            detail=_text(report.value(result, SH.resultMessage)),
        )


def _text(node: Node | None) -> str:
    return "" if node is None else str(node)
