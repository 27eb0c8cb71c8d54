"""The host's own graph documents, wherever they come from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.index import GraphSource, load
from graphs import Document, DocumentError

TEXT = "---\ntitle: Pay\n---\n"


def _raise() -> Sequence[Document]:
    raise ValueError("the secret")


async def test_without_a_source_there_is_nothing_to_read() -> None:
    """The usual case."""
    assert ((), ()) == await load(None)


@pytest.mark.parametrize("form", [str, Path, "file", "list", "function"])
async def test_documents_come_from_folders_files_lists_and_functions(
    tmp_path: Path, form: object
) -> None:
    """Whatever the host has."""
    (tmp_path / "pay.md").write_text(TEXT, "utf-8")
    given = [Document(id="x", title="Pay")]
    sources: dict[object, GraphSource] = {
        str: str(tmp_path),
        Path: tmp_path,
        "file": tmp_path / "pay.md",
        "list": given,
        "function": lambda: given,
    }

    documents, notes = await load(sources[form])

    assert (["Pay"], ()) == ([each.title for each in documents], notes)


async def test_what_cannot_be_read_is_told_in_our_words(tmp_path: Path) -> None:
    """A fault of a document is told in full; a foreign error by its type alone."""

    def broken() -> Sequence[Document]:
        raise DocumentError("no title", path="a.md", line=3)

    missing = await load(tmp_path / "none")
    faults = [missing, await load(broken), await load(_raise)]

    assert [()] * 3 == [documents for documents, _ in faults]
    details = [note.detail for _, (note,) in faults]
    assert "none" in details[0]
    assert "a.md" in details[1]
    said = "the source of graph documents failed (ValueError): it must return documents"
    assert said == details[2]


async def test_one_broken_document_does_not_stop_the_others(tmp_path: Path) -> None:
    """Each fault is told with its file and line, those of single rules too."""
    (tmp_path / "a.md").write_text("---\ntitle: [\n---\n", "utf-8")
    (tmp_path / "b.md").write_text("---\ntitle: Pay\ngraph_edges: [{object: x}]\n---\n", "utf-8")

    documents, notes = await load(tmp_path)

    assert ["Pay"] == [each.title for each in documents]
    assert ["a.md:3", "b.md:3"] == [note.detail.rpartition(": ")[0][:6] for note in notes]
    assert {"graph_document_invalid"} == {note.code for note in notes}


async def test_a_document_with_a_value_of_another_type_is_left_out() -> None:
    """An easy slip in a program: a text where a link belongs. The others are used."""
    good = Document(id="good", title="Good")
    slip = Document(id="slip", title="Slip", related=("good",))  # type: ignore[arg-type]  # (the point)

    documents, notes = await load(lambda: [slip, good])

    assert (good,) == documents
    (note,) = notes
    assert ("graph_document_invalid", True) == (note.code, "'slip': related" in note.detail)
