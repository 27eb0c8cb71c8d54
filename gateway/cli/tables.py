"""Conversion of values to JSON and to tables for people.

Text from servers is shown without markup and control characters.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from gateway.runtime.text import one_line
from gateway.types import CODES, Diagnostic, SearchResult

_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
_SUMMARY_CHARS = 120
_GOOD, _UNSURE, _BAD = "green", "yellow", "red"
_STYLES: Mapping[str, str] = {
    **dict.fromkeys(("ok", "pass", "yes"), _GOOD),
    **dict.fromkeys(("warn", "ask"), _UNSURE),
    **dict.fromkeys(("fail", "refuse", "no"), _BAD),
}
"""Colours of table cells, keyed by text."""


def printable(text: str) -> str:
    """Return *text* without characters that control a terminal."""
    return text.translate(_CONTROLS).encode("utf-8", "replace").decode()


def to_jsonable(value: object) -> Any:
    """Return *value* as objects, lists, strings, numbers, booleans and null.

    A diagnostic gets the meaning of its code. Sets are sorted. NaN and infinity become null.
    """
    if value is None or isinstance(value, str | int | float):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if is_dataclass(value) and not isinstance(value, type):
        item = {part.name: to_jsonable(getattr(value, part.name)) for part in fields(value)}
        if isinstance(value, Diagnostic):
            item["meaning"] = CODES.get(value.code, "")
        if isinstance(value, SearchResult):
            item["degraded"] = value.degraded
        return item
    if isinstance(value, Mapping):
        return {str(key): to_jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | AbstractSet):
        items = sorted(value, key=str) if isinstance(value, AbstractSet) else value
        return [to_jsonable(item) for item in items]
    return str(value)


def to_json(value: object) -> str:
    """Return *value* as indented JSON, escaped to ASCII if standard output cannot encode it."""
    data = to_jsonable(value)
    text = json.dumps(data, ensure_ascii=False, indent=2)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(data, indent=2)
    return text


class _WordTable(Table):
    """A table that breaks words only if the terminal is too narrow."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = [column.min_width or 0 for column in self.columns]
        while sum(widths) + 2 * len(widths) > options.max_width and max(widths) > 1:
            widths[widths.index(max(widths))] -= 1
        for column, width in zip(self.columns, widths, strict=True):
            column.min_width = width
        yield from super().__rich_console__(console, options)


def age_text(seconds: float | None) -> str:
    """Return an age such as "3 h ago", in its largest unit; "" for None."""
    if seconds is None:
        return ""
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    unit, size = next((unit for unit in units if seconds >= unit[1]), units[-1])
    return f"{seconds // size:.0f} {unit} ago"


def table(items: Iterable[object], *columns: str) -> Table:
    """Return a table without a frame: one row per item, one column per path.

    Paths are such as ``definition.description``. The heading is the last name of the path, or a
    prefix: ``about=definition.description``.
    """
    view = _WordTable(box=None, header_style="bold")
    paths = [column.rpartition("=")[2].split(".") for column in columns]
    rows = [
        [_cell(_member(item, path), path[-1]) for path in paths] for item in to_jsonable([*items])
    ]
    for place, (column, path) in enumerate(zip(columns, paths, strict=True)):
        heading = printable(column.rpartition("=")[0] or path[-1])
        words = [word for row in rows for word in row[place].plain.split()]
        longest = max(map(cell_len, [heading, *words]))
        style = "" if place else "bold"
        view.add_column(heading, overflow="fold", style=style, min_width=longest)
    for row in rows:
        view.add_row(*row)
    return view


def pairs(values: Mapping[str, object]) -> Table:
    """Return a table of names and values, without null and empty values."""
    view = Table(box=None, show_header=False)
    view.add_column(style="bold")
    view.add_column(overflow="fold")
    for name, value in to_jsonable(values).items():
        if value not in (None, "", [], {}):
            view.add_row(printable(name), _cell(value, name))
    return view


def document(data: object) -> RenderableType:
    """Return an object as text: single values as lines, nested ones as tables."""
    single: dict[str, object] = {}
    parts: list[RenderableType] = []
    for name, value in to_jsonable(data).items():
        if isinstance(value, dict):
            parts += [Text(f"\n{printable(name)}", style="bold underline"), pairs(value)]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            parts += [Text(f"\n{printable(name)}", style="bold underline"), table(value, *value[0])]
        else:
            single[name] = value
    return Group(pairs(single), *parts)


def _member(item: Any, path: list[str]) -> Any:
    """Return the value at *path* in an object, or of each object in a list."""
    if isinstance(item, list):
        return [_member(part, path) for part in item]
    if not path:
        return item
    return _member(item.get(path[0]), path[1:]) if isinstance(item, dict) else None


def _cell(value: object, name: str) -> Text:
    text = _cell_text(value)
    if name in {"description", "text"}:
        text = one_line(text, limit=_SUMMARY_CHARS)
    if name == "confidence" and isinstance(value, float):
        return Text(f"{value:.0%}", style=_GOOD if value >= 0.6 else _UNSURE)
    return Text(printable(text), style=_STYLES.get(text, ""))


def _cell_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    if isinstance(value, list):
        return ", ".join(map(_cell_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {_cell_text(item)}" for name, item in value.items())
    return "" if value is None else str(value)
