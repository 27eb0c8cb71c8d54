"""JSON as people write it, with comments and trailing commas: read, or edited in one place. Pure.

* An edit sets one member or takes it out; all else stays byte for byte, comments too.
* A name that stands twice in one object is refused: JSON leaves open which of them counts, so that
  people and programs would read two different servers under one name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.errors import ConfigError

_FAULT = re.compile(r"<string>:(\d+) (.*) at column (\d+)", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<mark>[{}\[\]:,])"""
    r"""|(?P<word>[^\s{}\[\]:,"]+)""",
    re.DOTALL,
)
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\n]*)?\r?\n")
_UNIT = re.compile(r"\n([ \t]+)\S")


def parse(text: str, *, where: str) -> object:
    """Read *text*.

    Args:
        text: JSON; what plain JSON does not allow is read as JSON5.
        where: The file, for messages.

    Raises:
        ConfigError: It is neither; the message has line and column. Or a name stands twice in one
            of its objects.
    """

    def unique_members(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
        members: dict[str, object] = {}
        for name, value in pairs:
            if name in members:
                raise ConfigError(f"{where!r} has {name!r} twice in one object: remove one of them")
            members[name] = value
        return members

    try:
        return json.loads(text, object_pairs_hook=unique_members)
    except RecursionError:
        raise ConfigError(f"{where!r} is nested too deeply to be read") from None
    except json.JSONDecodeError as error:
        plain = error
    # Only who writes comments pays for it.
    import json5  # noqa: PLC0415  (slow to load, and seldom needed)

    try:
        return json5.loads(text, object_pairs_hook=unique_members)
    except (ValueError, RecursionError) as error:
        fault = _FAULT.search(str(error))
        line, column, message = plain.lineno, plain.colno, plain.msg
        if fault is not None and int(fault[1]) != line:
            line, column, message = int(fault[1]), int(fault[3]), fault[2]
        raise ConfigError(
            f"{where!r} is not JSON: line {line}, column {column}: {message}"
        ) from None


def parse_object(text: str, *, where: str) -> dict[str, Any]:
    """Read *text* as an object; a blank one is empty.

    Raises:
        ConfigError: See `parse`; or it is something else.
    """
    whole = parse(text, where=where) if text.strip() else {}
    if not isinstance(whole, dict):
        raise ConfigError(f"{where!r} holds no JSON object")
    return whole


@dataclass(frozen=True, slots=True)
class _Member:
    key: str
    start: int
    value: int
    end: int
    comma: int
    """Where its comma stands; -1 if it has none."""


@dataclass(frozen=True, slots=True)
class _Object:
    start: int
    end: int
    """After its closing brace."""
    members: Sequence[_Member]

    def member(self, key: str) -> _Member | None:
        return next((member for member in self.members if member.key == key), None)


def with_member(text: str, path: Sequence[str], value: object, *, where: str) -> str:
    """Return *text* with *value* at *path*; objects on the way are made.

    Args:
        text: A JSON object, comments allowed; blank is an empty one.
        path: Keys, at least one.
        value: What `json.dumps` can write.
        where: The file, for messages.

    Raises:
        ConfigError: It is no such text, or cannot be edited safely.
    """
    text = text if text.strip() else "{}\n"
    expected = table = parse_object(text, where=where)
    for key in path[:-1]:
        if not isinstance(table.get(key), dict):
            table[key] = {}
        table = table[key]
    table[path[-1]] = value
    holder, left = _deepest(text, path)
    member, new = holder.member(left[0]), value
    for key in reversed(left[1:]):
        new = {key: new}
    if member is not None:
        written = _write(text, new, _indent(text, member.start))
        changed = text[: member.value] + written + text[member.end :]
    else:
        changed = _insert(text, holder, left[0], new)
    return _checked(changed, expected, where)


def without_member(text: str, path: Sequence[str], *, where: str) -> str:
    """Return *text* without what stands at *path*; the same if nothing does.

    Raises:
        ConfigError: It is no JSON object, or cannot be edited safely.
    """
    expected = table = parse_object(text, where=where)
    holder, left = _deepest(text, path)
    member = holder.member(path[-1])
    if len(left) > 1 or member is None:
        return text
    for key in path[:-1]:
        table = table[key]
    del table[path[-1]]
    start, end = _lines_of(text, member)
    head = text[:start]
    if member is holder.members[-1] and len(holder.members) > 1 and member.comma < 0:
        comma = holder.members[-2].comma
        # On one line, the blank after the comma goes too.
        head = text[:comma] + text[start if start == member.start else comma + 1 : start]
    return _checked(head + text[end:], expected, where)


def _checked(text: str, expected: object, where: str) -> str:
    try:
        is_same = parse(text, where=where) == expected
    except ConfigError:
        is_same = False
    if not is_same:
        raise ConfigError(f"{where!r} is written so that it cannot be edited safely: do it by hand")
    return text


def _deepest(text: str, path: Sequence[str]) -> tuple[_Object, Sequence[str]]:
    """Return the object that is as far along *path* as there are objects, and the rest of it."""
    holder = _read_object(text, 0)
    for depth, key in enumerate(path[:-1]):
        member = holder.member(key)
        if member is None or not text.startswith("{", member.value):
            return holder, path[depth:]
        holder = _read_object(text, member.value)
    return holder, path[-1:]


def _read_object(text: str, at: int) -> _Object:
    """Read the members of the first object from *at* on, deeper ones as they stand."""
    tokens = [token for token in _TOKEN.finditer(text, at) if token.lastgroup != "skip"]
    members: list[_Member] = []
    position = 1
    while position < len(tokens) - 2 and tokens[position][0] != "}":
        key, value = tokens[position], tokens[position + 2]
        last = _value_end(tokens, position + 2)
        follows = tokens[min(last + 1, len(tokens) - 1)]
        comma = follows.start() if follows[0] == "," else -1
        name = json.loads(key[0]) if key.lastgroup == "text" else key[0]
        members.append(_Member(name, key.start(), value.start(), tokens[last].end(), comma))
        position = last + (1 if comma < 0 else 2)
    return _Object(tokens[0].start(), tokens[min(position, len(tokens) - 1)].end(), members)


def _value_end(tokens: Sequence[re.Match[str]], position: int) -> int:
    depth = 0
    for at in range(position, len(tokens)):
        mark = tokens[at][0]
        depth += (mark in {"{", "["}) - (mark in {"}", "]"})
        if depth <= 0:
            return at
    return len(tokens) - 1


def _insert(text: str, holder: _Object, key: str, value: object) -> str:
    close = holder.end - 1
    end = len(text[:close].rstrip())
    newline = "\r\n" if "\r\n" in text else "\n"
    head, outer = text[:end], _indent(text, holder.start)
    indent, tail = outer + _unit(text), newline + outer
    gap, written = newline + indent, _write(text, value, indent)
    if holder.members:
        last = holder.members[-1]
        indent, tail = _indent(text, last.start), text[end:close]
        gap, written = newline + indent, _write(text, value, indent)
        if "\n" not in text[holder.start : holder.end]:
            gap, written = " ", json.dumps(value, ensure_ascii=False)
        if last.comma < 0:
            head = text[: last.end] + "," + text[last.end : end]
    return f"{head}{gap}{json.dumps(key, ensure_ascii=False)}: {written}{tail}{text[close:]}"


def _write(text: str, value: object, indent: str) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    written = json.dumps(value, ensure_ascii=False, indent=_unit(text))
    return written.replace("\n", newline + indent)


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _unit(text: str) -> str:
    match = _UNIT.search(text)
    return match[1] if match else "  "


def _lines_of(text: str, member: _Member) -> tuple[int, int]:
    """Return what of the text belongs to *member*: its whole lines, where it has them."""
    end = member.end if member.comma < 0 else member.comma + 1
    line = text.rfind("\n", 0, member.start) + 1
    rest = _REST_OF_LINE.match(text, end)
    if rest is not None and not text[line : member.start].strip():
        return line, rest.end()
    while text.startswith(" ", end):
        end += 1
    return member.start, end
