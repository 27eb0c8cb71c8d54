"""Entries as files of a folder."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.catalog.entries import Entry
from gateway.manifests.agent_cards import read_card
from gateway.manifests.exporter import files_of
from gateway.manifests.importer import read_manifests
from gateway.manifests.skills import read_skill
from gateway.types import Hints
from tests.manifests.test_agent_cards import NEW
from tests.manifests.test_skills import PDF

CARD = read_card(NEW, where="card.json")
SKILL = read_skill(PDF, where="SKILL.md")
SAMPLES = (
    CARD,
    SKILL,
    Entry(kind="agent", name="bare"),
    Entry(kind="agent", name="Bare"),
    Entry(kind="agent", name="route", metadata=CARD.metadata, scopes=frozenset({"staff"})),
    Entry(kind="skill", name="pdf", description="d", status="draft"),
    Entry(kind="skill", name="../../etc", description="Leads out?"),
    Entry(kind="skill", name="空", description="Nothing that a file is called by."),
    Entry(kind="skill", name="nothing"),
    Entry(kind="skill", name="numbers", description="d", metadata={"version": 1}),
    Entry(kind="dataset", name="iris", hints=Hints(aliases=("flowers",))),
    Entry(kind="server", name="files", metadata={"transport": "stdio"}),
)


def test_a_card_and_a_skill_are_files_of_their_own() -> None:
    """What they cannot say goes into the bundle."""
    files = files_of(SAMPLES, Path("out"))

    names = sorted(str(path) for path in files)
    assert 1 == sum(name.endswith(".agent.json") for name in names)
    assert "out/pdf-forms/SKILL.md" in names
    assert "out/entries.json" in names
    assert not any(".." in name for name in names)


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(SAMPLES), unique_by=lambda entry: entry.id))
def test_a_folder_is_read_as_it_was_written(entries: list[Entry]) -> None:
    """Whatever is in it."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files_of(entries, Path(folder)).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        found = read_manifests(Path(folder))

    assert () == found.notes
    assert sorted(entries, key=lambda entry: entry.id) == sorted(
        found.entries, key=lambda entry: entry.id
    )
