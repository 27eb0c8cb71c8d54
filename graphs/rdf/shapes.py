"""SHACL validation of a graph against the dialect's shapes. Requires the extra ``shacl``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from rdflib import RDF, SH, Graph, URIRef
from rdflib.plugins.parsers.notation3 import BadSyntax
from rdflib.term import Node

from graphs.errors import DocumentError, ExtraError
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import DOCUMENT_BASE
from graphs.rdf.serialization import to_rdf


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeViolation:
    """A violation of a shape."""

    node: str
    """Id of the node that violates the shape."""
    path: str
    """IRI of the predicate; empty if the violation does not concern a predicate."""
    value: str
    """Wrong value; empty if a value is missing."""
    severity: Literal["violation", "warning"]
    detail: str


def validate(facts: Iterable[Fact], *, shapes: str = "") -> tuple[ShapeViolation, ...]:
    """Validate *facts* against the SHACL shapes of the Markdown-LD dialect, and against *shapes*.

    *shapes* are further SHACL shapes in Turtle. Their imports are not fetched.

    Returns:
        The violations, most severe first and without duplicates.

    Raises:
        ExtraError: If pyshacl is not installed.
        DocumentError: If *shapes* cannot be read.
    """
    try:
        import pyshacl  # noqa: PLC0415  (an optional extra)
    except ModuleNotFoundError as error:
        raise ExtraError("shacl", package="pyshacl") from error
    compared = Graph().parse(data=files("graphs").joinpath("shapes.ttl").read_text("utf-8"))
    try:
        compared.parse(data=shapes, format="turtle")
    except (BadSyntax, ValueError) as error:
        raise DocumentError(f"the shapes are not Turtle: {error}") from error
    _, report, _ = pyshacl.validate(
        to_rdf(facts), shacl_graph=compared, do_owl_imports=False, advanced=False, js=False
    )
    violations = sorted(_violations(report), key=lambda f: (f.severity, f.node, f.detail))
    return tuple(dict.fromkeys(violations))


def _violations(report: Graph) -> Iterator[ShapeViolation]:
    for result in report.subjects(RDF.type, SH.ValidationResult):
        path = report.value(result, SH.resultPath)
        is_warning = report.value(result, SH.resultSeverity) == SH.Warning
        yield ShapeViolation(
            node=_text(report.value(result, SH.focusNode)).removeprefix(DOCUMENT_BASE),
            path=str(path) if isinstance(path, URIRef) else "",
            value=_text(report.value(result, SH.value)),
            severity="warning" if is_warning else "violation",
            detail=_text(report.value(result, SH.resultMessage)),
        )


def _text(node: Node | None) -> str:
    return "" if node is None else str(node)
