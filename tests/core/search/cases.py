"""Reader of the ranking cases, described in `tests/cases/search/README.md`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.types import Hints, ToolDefinition
from graphs import Document, parse

FOLDER = Path(__file__).parents[2] / "cases" / "search"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A catalog, a request and the expected result."""

    title: str
    tools: tuple[ToolDefinition, ...]
    documents: tuple[Document, ...]
    search: Mapping[str, str]
    expected: Mapping[str, str]


def cases() -> list[Case]:
    all_cases: list[Case] = []
    for file in sorted(FOLDER.glob("*.md")):
        parts = re.split(r"^## (.+)$", file.read_text("utf-8"), flags=re.MULTILINE)
        shared = dict(_BLOCK.findall(parts[0]))
        all_cases += [
            _case(title, text, shared)
            for title, text in zip(parts[1::2], parts[2::2], strict=True)
            if file.name != "README.md"
        ]
    return all_cases


def _case(title: str, text: str, shared: Mapping[str, str]) -> Case:
    blocks = _BLOCK.findall(text)
    merged = {**shared, **dict(blocks)}
    return Case(
        title=title,
        tools=tuple(map(_tool, merged["catalog"].splitlines())),
        documents=tuple(parse(body) for kind, body in blocks if kind == "document"),
        search=_pairs(merged["search"]),
        expected=_pairs(merged["expected"]),
    )


def _tool(line: str) -> ToolDefinition:
    name, description, *aliases = (part.strip() for part in line.split("|"))
    return ToolDefinition(
        name=name,
        description=description,
        input_schema={"type": "object"},
        hints=Hints(aliases=tuple(aliases)),
    )


def _pairs(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def items(text: str) -> list[str]:
    """Split a text such as ``a, b``; an empty text has no items."""
    return [item.strip() for item in text.split(",") if item.strip()]
