"""The place of a fault is part of its message."""

from __future__ import annotations

from graphs.errors import NOTICES, DocumentError, ExtraError, Notice


def test_a_message_names_file_line_and_mend() -> None:
    """An editor can jump to ``path:line``."""
    error = DocumentError("mend it", path="a.md", line=3)

    assert ("a.md:3: mend it", "a.md", 3) == (str(error), error.path, error.line)


def test_a_notice_is_written_as_an_editor_jumps() -> None:
    """With or without a file."""
    notice = Notice(path="", line=2, code="edge_invalid", detail="mend it")

    assert "document:2: mend it" == str(notice)
    assert notice.code in NOTICES


def test_a_missing_extra_says_how_to_get_it() -> None:
    """One line to copy."""
    error = ExtraError("shacl", package="pyshacl")

    assert ("shacl", "pyshacl is not installed: pip install 'tool-gateway[shacl]'") == (
        error.extra,
        str(error),
    )
