from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphs import read, write
from graphs.errors import DocumentError, GraphError
from graphs.markdown import Document, collect


def test_read_returns_the_documents_of_a_folder_sorted_by_path(tmp_path: Path) -> None:
    """The paths are relative to the folder, so equal folders give equal documents on every
    machine.
    """
    (tmp_path / "sub").mkdir()
    for name in ("b.md", "a.md", "sub/c.md", "note.txt"):
        (tmp_path / name).write_text(f"# {name}\n")

    assert ["a.md", "b.md", "sub/c.md"] == [document.path for document in read(tmp_path)]


def test_read_restores_the_documents_that_write_wrote(tmp_path: Path) -> None:
    documents = (
        Document(id="urn:t:1", path="x/a.md", title="a"),
        Document(id="urn:t:2", title="Погода now"),
    )

    files = write(documents, tmp_path / "new")

    assert ["x/a.md", "погода-now.md"] == [
        file.relative_to(tmp_path / "new").as_posix() for file in files
    ]
    assert ["urn:t:1", "urn:t:2"] == [document.id for document in read(tmp_path / "new")]


def test_read_accepts_a_single_file_or_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("# a\n")
    bundle = {"version": 1, "documents": [{"path": "x/a.md", "content": "# a\n"}]}
    (tmp_path / "b.json").write_text(json.dumps(bundle))

    assert ["a.txt"] == [document.path for document in read(tmp_path / "a.txt")]
    assert [("x/a.md", "a")] == [(d.path, d.title) for d in read(str(tmp_path / "b.json"))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "has version None"),
        ('{"version": 2}', "has version 2"),
        ('{"version": 1}', "has no list `documents`"),
        ('{"version": 1, "documents": ["a"]}', "lacks text `path` or `content`"),
        ('{"version": 1, "documents": [{"path": " ", "content": ""}]}', "lacks text `path`"),
    ],
)
def test_read_of_an_invalid_bundle_raises_an_error_with_the_reason(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "b.json").write_text(text)

    with pytest.raises(GraphError, match=message):
        read(tmp_path / "b.json")


def test_read_refuses_invalid_utf8_and_names_its_line(tmp_path: Path) -> None:
    """Guessing an encoding could give wrong names."""
    (tmp_path / "a.md").write_bytes(b"# a\n\n\xff\xfe")

    with pytest.raises(DocumentError) as caught:
        read(tmp_path)

    assert ("a.md", 3) == (caught.value.path, caught.value.line)


@pytest.mark.parametrize("path", ["../a.md", "/etc/a.md", "x/../../a.md"])
def test_write_refuses_a_document_path_outside_the_folder(tmp_path: Path, path: str) -> None:
    """The documents may come from an untrusted bundle."""
    with pytest.raises(GraphError, match="leads out of the folder"):
        write([Document(id="urn:t:1", path=path, title="a")], tmp_path)


def test_write_refuses_two_documents_with_the_same_path(tmp_path: Path) -> None:
    """The second file would replace the first."""
    documents = [Document(id=f"urn:t:{number}", title="a") for number in range(2)]

    with pytest.raises(GraphError, match="two documents have the file"):
        write(documents, tmp_path)
    assert () == read(tmp_path)


def test_collect_skips_invalid_documents(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\ntitle: a\nlanguage: not a tag\n---\n")
    (tmp_path / "b.md").write_text("---\ntitle: [a\n---\n")
    (tmp_path / "c.md").write_bytes(b"\xff")

    documents, notices = collect(tmp_path)

    assert ["a.md"] == [document.path for document in documents]
    assert [
        "a.md:3: 'not a tag' is not a language tag: write one such as `de`",
        "b.md:3: did not find expected ',' or ']': fix or quote the value",
        "c.md:1: not UTF-8: save the file as UTF-8",
    ] == list(map(str, notices))
    assert ["language_invalid", "document_invalid", "document_invalid"] == [n.code for n in notices]
    with pytest.raises(GraphError, match="there is no file or folder"):
        collect(tmp_path / "no")


def test_collect_does_not_parse_an_unchanged_text_again(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.md").write_text(f"# tool {number}\n")
    before, _ = collect(tmp_path)
    (tmp_path / "4.md").write_text("# another\n")

    after, _ = collect(tmp_path)

    changed = [new.title for old, new in zip(before, after, strict=True) if new is not old]
    assert ["another"] == changed
