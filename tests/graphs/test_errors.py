"""The place of a fault is part of its message."""

from __future__ import annotations

from graphs.errors import DocumentError


def test_a_message_names_file_line_and_mend() -> None:
    """An editor can jump to ``path:line``."""
    error = DocumentError("mend it", path="a.md", line=3)

    assert ("a.md:3: mend it", "a.md", 3) == (str(error), error.path, error.line)
