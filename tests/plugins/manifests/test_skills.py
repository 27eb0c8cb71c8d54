"""Skills as ``SKILL.md`` files."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.catalog import Entry
from gateway.errors import ConfigError
from gateway.plugins.manifests import read_skill, write_skill
from gateway.types import Hints

PDF = """---
name: pdf-forms
description: "Fills PDF forms: fields, boxes, signatures"
license: MIT
version: 1.0
tags: [pdf, office]
metadata:
  author: Ada
allowed-tools: Read Write
---

# Forms

    keep  this

---
"""


def test_read_skill_reads_front_matter_and_body() -> None:
    """All values remain texts, so the version 1.10 does not become a number."""
    entry = read_skill(PDF, where="SKILL.md")

    assert "skill:catalog/pdf-forms" == entry.id
    assert "Fills PDF forms: fields, boxes, signatures" == entry.description
    assert ("pdf", "office") == entry.hints.tags
    assert {
        "license": "MIT",
        "version": "1.0",
        "metadata": {"author": "Ada"},
        "allowed-tools": "Read Write",
        "instructions": "# Forms\n\n    keep  this\n\n---",
    } == entry.metadata


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# Forms", "no front matter"),
        ("---\nname: a\n", "no front matter"),
        ("---\nname: a\n---", "'description' is missing"),
        ("---\nname: [a]\ndescription: b\n---", "name must be a text"),
        ("---\nname: 'a\n---", "cannot be read"),
        ("---\n- a\n---", "must be an object"),
        ("---\n[a]: b\n---", "cannot be read|is missing"),
        ("---\na: &x b\nname: *x\n---", "write the value out"),
        ("---\nname: a\ndescription: b\ntags: c\n---", "tags must be a list"),
        ("---\nname: a\ndescription: b\ninstructions: c\n---", "below the front matter"),
        ("---\n" + "[" * 60_000 + "\n---", "cannot be read|nested deeper"),
        ("---\nname: " + "[" * 17 + "\n---", "nested deeper than 16: flatten it"),
        ("---\nname: \ud800\n---", "cannot be read"),
    ],
)
def test_error_of_an_invalid_skill_contains_the_remedy_and_the_file(
    text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        read_skill(text, where="a/SKILL.md")
    assert "a/SKILL.md" in str(raised.value)


printed = st.characters(categories=["L", "N", "P", "S"])
lines = st.text(printed, min_size=1, max_size=12)
keys = lines.filter(lambda key: key not in {"name", "description", "tags", "instructions"})
values = st.recursive(
    st.text(printed | st.sampled_from(" \n"), max_size=12),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(lines, inner, min_size=1, max_size=3)
    ),
    max_leaves=4,
)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=lines,
    description=st.text(printed | st.sampled_from(" \n"), min_size=1, max_size=40),
    tags=st.lists(lines, max_size=3).map(tuple),
    rest=st.dictionaries(keys, values, max_size=3),
    body=st.text(printed | st.sampled_from(" \n"), max_size=40).map(lambda text: text.strip("\n")),
)
def test_written_skill_is_read_back_with_all_fields(
    name: str, description: str, tags: tuple[str, ...], rest: dict[str, object], body: str
) -> None:
    """Texts that look like numbers, dates or YAML must not change."""
    metadata = {**rest, "instructions": body} if body else rest
    entry = Entry(
        kind="skill", name=name, description=description, hints=Hints(tags=tags), metadata=metadata
    )

    assert entry == read_skill(write_skill(entry), where="SKILL.md")
