"""Loading of the host's graph documents from all kinds of sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.index import GraphSource, load
from graphs import Document, DocumentError

TEXT = "---\ntitle: Pay\n---\n"


def _raise() -> Sequence[Document]:
    raise ValueError("the secret")


async def test_load_without_a_source_returns_no_documents() -> None:
    assert ((), ()) == await load(None)


@pytest.mark.parametrize("form", [str, Path, "file", "list", "function"])
async def test_load_reads_folders_files_lists_and_functions(tmp_path: Path, form: object) -> None:
    (tmp_path / "pay.md").write_text(TEXT, "utf-8")
    host_documents = [Document(id="x", title="Pay")]
    sources: dict[object, GraphSource] = {
        str: str(tmp_path),
        Path: tmp_path,
        "file": tmp_path / "pay.md",
        "list": host_documents,
        "function": lambda: host_documents,
    }

    documents, notes = await load(sources[form])

    assert (["Pay"], ()) == ([document.title for document in documents], notes)


async def test_load_reports_unreadable_sources(tmp_path: Path) -> None:
    """Errors about documents are reported in full. Other errors may contain secrets, so only their
    type is reported.
    """

    def broken() -> Sequence[Document]:
        raise DocumentError("no title", path="a.md", line=3)

    missing = await load(tmp_path / "none")
    faults = [missing, await load(broken), await load(_raise)]

    assert [()] * 3 == [documents for documents, _ in faults]
    details = [note.detail for _, (note,) in faults]
    assert "none" in details[0]
    assert "a.md" in details[1]
    message = "the source of graph documents failed (ValueError): it must return documents"
    assert message == details[2]


async def test_load_reads_other_documents_if_one_is_broken(tmp_path: Path) -> None:
    """Each fault is reported with file and line, even if it is in a single rule."""
    (tmp_path / "a.md").write_text("---\ntitle: [\n---\n", "utf-8")
    (tmp_path / "b.md").write_text("---\ntitle: Pay\ngraph_edges: [{object: x}]\n---\n", "utf-8")

    documents, notes = await load(tmp_path)

    assert ["Pay"] == [document.title for document in documents]
    assert ["a.md:3", "b.md:3"] == [note.detail.rpartition(": ")[0][:6] for note in notes]
    assert {"graph_document_invalid"} == {note.code for note in notes}


async def test_document_with_a_field_of_the_wrong_type_is_skipped() -> None:
    """It is an easy mistake in code that creates documents: here, a text instead of a link."""
    good = Document(id="good", title="Good")
    slip = Document(id="slip", title="Slip", related=("good",))  # type: ignore[arg-type]  # (the point)

    documents, notes = await load(lambda: [slip, good])

    assert (good,) == documents
    (note,) = notes
    assert ("graph_document_invalid", True) == (note.code, "'slip': related" in note.detail)
