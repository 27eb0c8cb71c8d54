"""SHACL: whether a graph looks as the dialect says. Needs the extra ``shacl`` (pyshacl)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Literal

from rdflib import RDF, SH, Graph, URIRef
from rdflib.term import Node

from graphs.errors import DocumentError, ExtraError
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import DOCUMENT_BASE
from graphs.rdf.exporter import to_rdf
from graphs.rdf.importer import parse_rdf

_SHAPES_FILE = "shapes.ttl"
Severity = Literal["violation", "warning", "info"]
_SEVERITIES: Mapping[str, Severity] = MappingProxyType({"Warning": "warning", "Info": "info"})
_ORDER = ("violation", "warning", "info")
_SHACL = "http://www.w3.org/ns/shacl#"
_EXECUTABLE = frozenset(
    {_SHACL + name for name in ("sparql", "select", "ask", "construct", "update", "rule", "js")}
    | {"http://www.w3.org/2002/07/owl#imports"}
)
"""Predicates that would make pyshacl run or fetch something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeViolation:
    """One point where a graph is not as its shapes say."""

    node: str
    """The node that is at fault."""
    path: str
    """The IRI of the predicate; empty if the fault is no predicate's."""
    value: str
    """The value that is at fault; empty if one is missing."""
    severity: Severity
    detail: str
    """What is wrong."""


def validate(facts: Iterable[Fact], *, further: str = "") -> tuple[ShapeViolation, ...]:
    """Compare *facts* with the shapes of the dialect.

    Args:
        facts: The graph.
        further: Turtle with shapes of the host's own; nothing that it imports is fetched.

    Returns:
        The violations first, each once; empty if all is well.

    Raises:
        ExtraError: pyshacl is not installed.
        DocumentError: *further* is no Turtle, or holds rules that would be run.
    """
    try:
        import pyshacl  # noqa: PLC0415  (an optional extra)
        from pyshacl import errors  # noqa: PLC0415  (an optional extra)
    except ModuleNotFoundError as error:
        raise ExtraError("shacl", package="pyshacl") from error
    shapes = files("graphs").joinpath(_SHAPES_FILE).read_text(encoding="utf-8")
    rules = parse_rdf(shapes, "turtle", path=_SHAPES_FILE)
    rules += parse_rdf(further, "turtle", path="further")
    forbidden = sorted(_EXECUTABLE & {str(predicate) for predicate in rules.predicates()})
    if forbidden:
        detail = f"shapes with {forbidden[0]} are not run: use the core of SHACL"
        raise DocumentError(detail, path="further")
    try:
        _, report, _ = pyshacl.validate(
            to_rdf(facts),
            shacl_graph=rules,
            inference="none",
            do_owl_imports=False,
            advanced=False,
            js=False,
            meta_shacl=False,
        )
    except (
        errors.ConstraintLoadError, errors.ReportableRuntimeError, errors.ShapeLoadError
    ) as error:  # fmt: skip
        raise DocumentError(f"the shapes make no sense: {error}", path="further") from error
    if not isinstance(report, Graph):
        raise DocumentError(f"the shapes make no sense: {report}", path="further")
    found = sorted(_violations(report), key=lambda f: (_ORDER.index(f.severity), f.node, f.detail))
    return tuple(dict.fromkeys(found))


def _violations(report: Graph) -> Iterator[ShapeViolation]:
    for result in report.subjects(RDF.type, SH.ValidationResult):
        severity = _text(report.value(result, SH.resultSeverity)).rpartition("#")[2]
        path = report.value(result, SH.resultPath)
        yield ShapeViolation(
            node=_text(report.value(result, SH.focusNode)).removeprefix(DOCUMENT_BASE),
            path=str(path) if isinstance(path, URIRef) else "",
            value=_text(report.value(result, SH.value)),
            severity=_SEVERITIES.get(severity, "violation"),
            detail=_text(report.value(result, SH.resultMessage)),
        )


def _text(node: Node | None) -> str:
    return "" if node is None else str(node)
