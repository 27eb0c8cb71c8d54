from __future__ import annotations

import subprocess
import sys

import pytest

from graphs import parse
from graphs.errors import DocumentError
from graphs.facts import extract_facts
from graphs.rdf import validate

GOOD = extract_facts(
    [
        parse("---\nid: urn:t:a\ntitle: a\nrequires: urn:t:b\ngraph_groups: g\n---\nText.\n"),
        parse("---\nid: urn:t:b\ntitle: {en: b, de: B}\n---\n"),
    ]
)


def test_validate_finds_no_violations_in_a_graph_of_documents() -> None:
    assert () == validate(GOOD)


def test_validate_names_the_node_and_the_problem_of_a_violation() -> None:
    nameless = tuple(f for f in GOOD if (f.subject, f.predicate) != ("urn:t:a", "name"))
    vague = parse("---\nid: urn:t:c\ntitle: c\nrequires: some thing\n---\n")

    violations = validate([*nameless, *extract_facts([vague])])

    assert [("urn:t:a", "violation", "a document needs a name")] == [
        (f.node, f.severity, f.detail) for f in violations[:1]
    ]
    assert ("urn:t:c", "warning") == (violations[1].node, violations[1].severity)
    assert "only a label" in violations[1].detail


OWN = """
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix schema: <https://schema.org/> .
[] a sh:NodeShape ; sh:targetSubjectsOf schema:name ;
   sh:property [ sh:path schema:description ; sh:minCount 1 ; sh:message "say what it is" ] .
"""


def test_validate_also_uses_shapes_of_the_host() -> None:
    violations = validate(GOOD, shapes=OWN)

    assert {("urn:t:a", "say what it is"), ("urn:t:b", "say what it is")} <= {
        (violation.node, violation.detail) for violation in violations
    }
    with pytest.raises(DocumentError, match="the shapes are not Turtle"):
        validate(GOOD, shapes="no turtle")


WITHOUT = """
import sys
sys.modules["pyshacl"] = None
from graphs import ExtraError, validate
try:
    validate([])
except ExtraError as error:
    print(error.extra, error)
"""


def test_validate_without_pyshacl_names_the_extra_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )

    assert "shacl pyshacl is not installed: pip install 'tool-gateway[shacl]'" in done.stdout
