"""Manifests on disk: each kind, whole folders, what cannot be used, and entries as files."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.catalog import Entry
from gateway.errors import ConfigError
from gateway.plugins.manifests import (
    MAX_SKILL_BYTES,
    bundle,
    files_of,
    read_bundle,
    read_card,
    read_file,
    read_manifests,
    read_skill,
    write_bundle,
)
from gateway.types import Hints
from tests.core.catalog.test_entry_json import entries
from tests.plugins.manifests.test_agent_cards import NEW
from tests.plugins.manifests.test_skills import PDF

SERVERS = {
    "mcpServers": {
        "files": {
            "command": "files-server",
            "args": ["--token", "s3cr3t"],
            "env": {"TOKEN": "s3cr3t"},
            "description": "Reads files.",
        },
        "web": {"url": "https://user:s3cr3t@web.example:8443/mcp?key=s3cr3t"},
        "odd": {"url": "http://[bad"},
        "bare": {},
    }
}


def put(path: Path, content: object) -> Path:
    """Write a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def test_every_manifest_of_a_folder_is_read(tmp_path: Path) -> None:
    """Cards, servers and bundles as JSON, skills in folders; the rest is no business of ours."""
    put(tmp_path / "route.json", NEW)
    put(tmp_path / "mcp.json", SERVERS)
    put(tmp_path / "b.json", bundle([Entry(kind="dataset", name="iris")]))
    put(tmp_path / "pdf" / "SKILL.md", PDF)
    put(tmp_path / "notes.txt", "nothing")
    put(tmp_path / ".hidden.json", "{")
    (tmp_path / "empty").mkdir()

    found = read_manifests(tmp_path, namespace="acme")

    assert () == found.notes
    assert [
        "agent:acme/Route planner",
        "dataset:catalog/iris",
        "server:acme/bare",
        "server:acme/files",
        "server:acme/odd",
        "server:acme/web",
        "skill:acme/pdf-forms",
    ] == sorted(entry.id for entry in found.entries)
    (skill,) = read_manifests(tmp_path / "pdf", namespace="acme").entries
    assert skill in found.entries


def test_servers_are_described_without_a_secret(tmp_path: Path) -> None:
    """Nothing of them is started, and nothing of them signs in."""
    files, web, odd, bare = read_file(put(tmp_path / "mcp.json", SERVERS))

    assert "Reads files." == files.description
    assert {"transport": "stdio", "command": "files-server"} == files.metadata
    assert {"transport": "http", "url": "https://web.example:8443/mcp"} == web.metadata
    assert ({"transport": "http"}, {}) == (odd.metadata, bare.metadata)


def test_what_cannot_be_used_is_reported_and_costs_the_others_nothing(tmp_path: Path) -> None:
    """A file gives all of its entries, or none."""
    half = {
        "version": 1,
        "entries": [{"kind": "skill", "name": "good"}, {"kind": "tool", "name": "x"}],
    }
    put(tmp_path / "a.json", half)
    put(tmp_path / "b.json", "{")
    put(tmp_path / "c.json", "[]")
    put(tmp_path / "d" / "SKILL.md", "# no front matter")
    put(tmp_path / "e.json", NEW)
    put(tmp_path / "f.json", NEW)
    put(tmp_path / "g.json", {"mcpServers": {"bad name": {}, "n": 3}})
    (tmp_path / "h.json").write_bytes(b"\xff\xfe")
    put(tmp_path.parent / "outside.json", NEW)
    (tmp_path / "i.json").symlink_to(tmp_path.parent / "outside.json")
    put(tmp_path / "j" / "SKILL.md", PDF + "x" * MAX_SKILL_BYTES)

    found = read_manifests(tmp_path)

    messages = [note.detail for note in found.notes]
    assert ["agent:catalog/Route planner"] == [entry.id for entry in found.entries]
    assert list("abcdfghij") == [text.split("'")[1].split(str(tmp_path))[1][1] for text in messages]
    for text, why in zip(
        messages,
        [
            "entry 2: entry 'x': kind 'tool'",
            "is not JSON",
            "is no manifest",
            "no front matter",
            "rename one",
            "n must be an object",
            "save it as UTF-8",
            "leads out of its folder",
            "split it",
        ],
        strict=True,
    ):
        assert why in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"version": 2, "entries": []}, "version 2; version 1"),
        ({"version": 1, "entries": {}}, "must be a list"),
        ({"version": 1, "entries": [{"kind": "skill", "name": "a"}] * 2}, "is there already"),
        ({"mcpServers": {"a": {"description": 3}}}, "a.description must be a text"),
        ({"name": "x" * 300, "url": "http://a"}, "1 to 256"),
    ],
)
def test_one_file_that_cannot_be_used_is_an_error(
    content: object, message: str, tmp_path: Path
) -> None:
    """It says which, and what to do."""
    path = put(tmp_path / "a.json", content)

    with pytest.raises(ConfigError, match=message) as raised:
        read_manifests(path)
    assert str(path) in str(raised.value)


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    """So is what cannot be opened."""
    with pytest.raises(ConfigError, match="there is no file or folder"):
        read_manifests(tmp_path / "nowhere.json")
    (tmp_path / "a.json").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        read_file(tmp_path / "a.json")


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(entries, max_size=4, unique_by=lambda entry: entry.id))
def test_a_bundle_is_read_as_it_was_written(every: list[Entry]) -> None:
    """To the last field, in the order of ids."""
    ordered = tuple(sorted(every, key=lambda entry: entry.id))

    assert ordered == read_bundle(json.loads(write_bundle(every)), where="b.json")


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
def test_a_folder_is_read_as_it_was_written(samples: list[Entry]) -> None:
    """Whatever is in it."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files_of(samples, Path(folder)).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        found = read_manifests(Path(folder))

    assert () == found.notes
    assert {entry.id: entry for entry in samples} == {entry.id: entry for entry in found.entries}
