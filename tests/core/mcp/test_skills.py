"""Entries of skills: faults, definitions, digests and files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.mcp import file_of, is_as_listed
from gateway.mcp.definitions import SKILLS, digest_definition, find_fault
from gateway.mcp.skills import MAX_BYTES, parse_skill

URI = "skill://acme/refunds/SKILL.md"
FRONT = {"name": "refunds", "description": "Pay back.", "tags": ["money", 3]}
FILE = file_of(URI, b"text")


def entry(**other: object) -> dict[str, Any]:
    return {"uri": URI, "frontmatter": FRONT, "resources": [FILE], **other}


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (entry(), ""),
        (entry(resources="dynamic"), ""),
        (entry(uri="github://o/r/refunds/SKILL.md", resources="dynamic"), ""),
        (entry(uri=""), "no uri"),
        (entry(frontmatter="name: refunds"), "front matter"),
        (entry(frontmatter={"name": "refunds"}), "front matter"),
        (entry(frontmatter={**FRONT, "name": "Refunds"}), "does not end in its name"),
        (entry(uri="skill://acme/refunds/README.md"), "does not end in its name"),
        (entry(resources=None), "not a list of at most 512"),
        (entry(resources=[FILE] * 513), "not a list of at most 512"),
        (entry(resources=[]), "lack SKILL.md"),
        (entry(resources=[FILE, FILE]), "name one twice"),
        (entry(resources=[FILE, {**FILE, "uri": "skill://acme/other"}]), "outside its folder"),
        (entry(resources=[{**FILE, "digest": "sha256:1"}]), "no digest"),
        (entry(resources=[{**FILE, "size": True}]), "no digest and size"),
        (entry(resources=[{**FILE, "size": MAX_BYTES + 1}]), "larger than 16777216"),
        (entry(resources=["SKILL.md"]), "no digest and size"),
    ],
)
def test_problem_of_an_unusable_skill_entry_is_returned(
    item: Mapping[str, object], reason: str
) -> None:
    fault = find_fault(item, SKILLS)

    assert (reason in fault) if reason else fault == ""


def test_definition_of_a_skill_has_the_values_of_its_front_matter() -> None:
    """The name of a skill's definition is its URI, by which it is read."""
    skill = parse_skill(entry(), URI, max_chars=100)

    assert (URI, "refunds", "Pay back.", ("money",)) == (
        skill.name,
        skill.title,
        skill.description,
        skill.hints.tags,
    )
    assert {"frontmatter": FRONT, "resources": [FILE]} == skill.details


def test_digest_of_a_skill_changes_with_its_files() -> None:
    """Other fields of an entry have no effect."""
    other = entry(resources=[file_of(URI, b"other")])
    digests = [digest_definition(item, SKILLS) for item in (entry(), entry(_meta={}), other)]

    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"text": "text"}, True),
        ({"blob": "dGV4dA=="}, True),
        ({"text": "Text"}, False),
        ({"text": "text "}, False),
        ({"blob": "dGV4d"}, False),
        ({}, False),
    ],
)
def test_content_of_a_skill_file_must_match_its_digest_and_size(
    content: dict[str, object], *, expected: bool
) -> None:
    assert expected == is_as_listed(content, {**FILE, "note": "x"})
