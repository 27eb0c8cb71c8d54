"""Reading and writing of manifest files and folders."""

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
    """Write a file and create its folder. Return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def test_read_manifests_reads_all_manifests_of_a_folder(tmp_path: Path) -> None:
    """Other files are ignored."""
    put(tmp_path / "route.json", NEW)
    put(tmp_path / "mcp.json", SERVERS)
    put(tmp_path / "b.json", bundle([Entry(kind="dataset", name="iris")]))
    put(tmp_path / "pdf" / "SKILL.md", PDF)
    put(tmp_path / "notes.txt", "nothing")
    put(tmp_path / ".hidden.json", "{")
    (tmp_path / "empty").mkdir()

    imported = read_manifests(tmp_path, namespace="acme")

    assert () == imported.notes
    assert [
        "agent:acme/Route planner",
        "dataset:catalog/iris",
        "server:acme/bare",
        "server:acme/files",
        "server:acme/odd",
        "server:acme/web",
        "skill:acme/pdf-forms",
    ] == sorted(entry.id for entry in imported.entries)
    (skill,) = read_manifests(tmp_path / "pdf", namespace="acme").entries
    assert skill in imported.entries


def test_servers_of_an_mcp_json_are_read_without_secrets(tmp_path: Path) -> None:
    files, web, odd, bare = read_file(put(tmp_path / "mcp.json", SERVERS))

    assert "Reads files." == files.description
    assert {"transport": "stdio", "command": "files-server"} == files.metadata
    assert {"transport": "http", "url": "https://web.example:8443/mcp"} == web.metadata
    assert ({"transport": "http"}, {}) == (odd.metadata, bare.metadata)


def test_unusable_manifest_files_are_reported_and_the_others_are_read(tmp_path: Path) -> None:
    """All entries of a file are imported, or none."""
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

    imported = read_manifests(tmp_path)

    messages = [note.detail for note in imported.notes]
    assert ["agent:catalog/Route planner"] == [entry.id for entry in imported.entries]
    assert list("abcdfghij") == [text.split("'")[1].split(str(tmp_path))[1][1] for text in messages]
    for text, why in zip(
        messages,
        [
            "entry 2: entry 'x': kind 'tool'",
            "is not JSON",
            "is not a manifest",
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
        ({"version": 2, "entries": []}, "version 2; only version 1"),
        ({"version": 1, "entries": {}}, "must be a list"),
        ({"version": 1, "entries": [{"kind": "skill", "name": "a"}] * 2}, "duplicate id"),
        ({"mcpServers": {"a": {"description": 3}}}, "a.description must be a text"),
        ({"name": "x" * 300, "url": "http://a"}, "1 to 256"),
    ],
)
def test_unusable_manifest_file_is_an_error_if_it_is_read_alone(
    content: object, message: str, tmp_path: Path
) -> None:
    path = put(tmp_path / "a.json", content)

    with pytest.raises(ConfigError, match=message) as raised:
        read_manifests(path)
    assert str(path) in str(raised.value)


def test_missing_or_unreadable_manifest_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file or folder"):
        read_manifests(tmp_path / "nowhere.json")
    (tmp_path / "a.json").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        read_file(tmp_path / "a.json")


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(entries, max_size=4, unique_by=lambda entry: entry.id))
def test_entries_written_to_a_bundle_are_read_back_with_all_fields(every: list[Entry]) -> None:
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


def test_agent_and_skill_entries_get_files_of_their_own() -> None:
    """Entries with fields that such files cannot store are written to the bundle."""
    files = files_of(SAMPLES, Path("out"))

    names = sorted(str(path) for path in files)
    assert 1 == sum(name.endswith(".agent.json") for name in names)
    assert "out/pdf-forms/SKILL.md" in names
    assert "out/entries.json" in names
    assert not any(".." in name for name in names)


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(SAMPLES), unique_by=lambda entry: entry.id))
def test_entries_written_to_a_folder_are_read_back_unchanged(samples: list[Entry]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files_of(samples, Path(folder)).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        imported = read_manifests(Path(folder))

    assert () == imported.notes
    assert {entry.id: entry for entry in samples} == {entry.id: entry for entry in imported.entries}
