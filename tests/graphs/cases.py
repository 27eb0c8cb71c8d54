"""Read the text fixtures of tests/cases/graph."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "cases" / "graph"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case: its title, its documents and what is expected of them."""

    title: str
    documents: tuple[str, ...]
    expected: tuple[tuple[str, ...], ...]


def cases(name: str) -> list[Case]:
    """Read the cases of one file."""
    parts = re.split(r"^## (.+)$", (FOLDER / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [_case(title, text) for title, text in zip(parts[1::2], parts[2::2], strict=True)]


def _case(title: str, text: str) -> Case:
    blocks = _BLOCK.findall(text)
    rows = (row for kind, body in blocks if kind != "markdown" for row in body.splitlines())
    return Case(
        title=title,
        documents=tuple(body for kind, body in blocks if kind == "markdown"),
        expected=tuple(tuple(row.replace("\\n", "\n").split(" | ")) for row in rows),
    )
