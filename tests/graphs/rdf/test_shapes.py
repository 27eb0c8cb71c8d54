"""SHACL shapes of the dialect."""

from __future__ import annotations

import subprocess
import sys

from graphs.facts.extraction import extract_facts
from graphs.markdown.dialect import parse
from graphs.rdf.shapes import validate

GOOD = extract_facts(
    [
        parse("---\nid: urn:t:a\ntitle: a\nrequires: urn:t:b\ngraph_groups: g\n---\nText.\n"),
        parse("---\nid: urn:t:b\ntitle: {en: b, de: B}\n---\n"),
    ]
)


def test_a_graph_of_documents_is_as_the_shapes_say() -> None:
    """What the dialect makes, its shapes allow."""
    assert () == validate(GOOD)


def test_each_fault_names_its_node_and_what_is_wrong() -> None:
    """Violations first, then warnings."""
    nameless = tuple(f for f in GOOD if (f.subject, f.predicate) != ("urn:t:a", "name"))
    vague = parse("---\nid: urn:t:c\ntitle: c\nrequires: some thing\n---\n")

    found = validate([*nameless, *extract_facts([vague])])

    assert [("urn:t:a", "violation", "a document needs a name")] == [
        (f.node, f.severity, f.detail) for f in found[:1]
    ]
    assert ("urn:t:c", "warning") == (found[1].node, found[1].severity)
    assert "only a label" in found[1].detail


WITHOUT = """
import sys
sys.modules["pyshacl"] = None
from graphs import ExtraError, validate
try:
    validate([])
except ExtraError as error:
    print(error.extra, error)
"""


def test_without_pyshacl_the_extra_is_named() -> None:
    """An optional part says how to get it."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )

    assert "shacl pyshacl is not installed: pip install 'tool-gateway[shacl]'" in done.stdout
