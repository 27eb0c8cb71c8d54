"""Parser and editor for JSON with comments and trailing commas.

* An edit sets or removes one member. All other bytes stay, including comments.
* An object with two members of the same name is refused, because a person and a program might read
  two different servers under one name.
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
    """Return the value of *text*.

    Args:
        text: JSON, or else JSON5.
        where: Name of the file in errors.

    Raises:
        ConfigError: If *text* is invalid, with line and column, or repeats a name in one object.
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
    """Return the value of *text*, which must be an object. Blank text is an empty object.

    Raises:
        ConfigError: As for `parse`, or if *text* is another value.
    """
    whole = parse(text, where=where) if text.strip() else {}
    if not isinstance(whole, dict):
        raise ConfigError(f"{where!r} does not contain a JSON object")
    return whole


@dataclass(frozen=True, slots=True)
class _Member:
    key: str
    start: int
    value: int
    end: int
    comma: int
    """Position of the comma after the member, or -1."""


@dataclass(frozen=True, slots=True)
class _Object:
    start: int
    end: int
    """Position after the closing brace."""
    members: Sequence[_Member]

    def member(self, key: str) -> _Member | None:
        return next((member for member in self.members if member.key == key), None)


def with_member(text: str, path: Sequence[str], value: object, *, where: str) -> str:
    """Return *text* with *value* at *path*. Missing objects on the path are created.

    Args:
        text: JSON object, possibly with comments; blank text is an empty object.
        path: At least one key, the outermost first.
        value: Value for `json.dumps`.
        where: Name of the file in errors.

    Raises:
        ConfigError: If *text* is not a JSON object, or cannot be edited safely.
    """
    text = text if text.strip() else "{}\n"
    expected = table = parse_object(text, where=where)
    for key in path[:-1]:
        if not isinstance(table.get(key), dict):
            table[key] = {}
        table = table[key]
    table[path[-1]] = value
    container, remaining = _find_container(text, path)
    member, new = container.member(remaining[0]), value
    for key in reversed(remaining[1:]):
        new = {key: new}
    if member is not None:
        member_text = _write(text, new, _indent(text, member.start))
        changed = text[: member.value] + member_text + text[member.end :]
    else:
        changed = _insert(text, container, remaining[0], new)
    return _verify_edit(changed, expected, where)


def without_member(text: str, path: Sequence[str], *, where: str) -> str:
    """Return *text* without the member at *path* (keys, the outermost first), if it exists.

    Raises:
        ConfigError: If *text* is not a JSON object, or cannot be edited safely.
    """
    expected = table = parse_object(text, where=where)
    container, remaining = _find_container(text, path)
    member = container.member(path[-1])
    if len(remaining) > 1 or member is None:
        return text
    for key in path[:-1]:
        table = table[key]
    del table[path[-1]]
    start, end = _span_of(text, member)
    head = text[:start]
    if member is container.members[-1] and len(container.members) > 1 and member.comma < 0:
        comma = container.members[-2].comma
        # On one line, the space after the comma is removed too.
        head = text[:comma] + text[start if start == member.start else comma + 1 : start]
    return _verify_edit(head + text[end:], expected, where)


def _verify_edit(text: str, expected: object, where: str) -> str:
    try:
        is_same = parse(text, where=where) == expected
    except ConfigError:
        is_same = False
    if not is_same:
        raise ConfigError(f"{where!r} cannot be edited safely: edit it by hand")
    return text


def _find_container(text: str, path: Sequence[str]) -> tuple[_Object, Sequence[str]]:
    """Return the deepest object of *path* in *text*, and the keys below it."""
    container = _read_object(text, 0)
    for depth, key in enumerate(path[:-1]):
        member = container.member(key)
        if member is None or not text.startswith("{", member.value):
            return container, path[depth:]
        container = _read_object(text, member.value)
    return container, path[-1:]


def _read_object(text: str, at: int) -> _Object:
    """Return the members' positions in the first object from *at* on, without parsing values."""
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
    for index in range(position, len(tokens)):
        mark = tokens[index][0]
        depth += (mark in {"{", "["}) - (mark in {"}", "]"})
        if depth <= 0:
            return index
    return len(tokens) - 1


def _insert(text: str, container: _Object, key: str, value: object) -> str:
    close = container.end - 1
    end = len(text[:close].rstrip())
    newline = "\r\n" if "\r\n" in text else "\n"
    head, outer = text[:end], _indent(text, container.start)
    indent, tail = outer + _unit(text), newline + outer
    gap, member_text = newline + indent, _write(text, value, indent)
    if container.members:
        last = container.members[-1]
        indent, tail = _indent(text, last.start), text[end:close]
        gap, member_text = newline + indent, _write(text, value, indent)
        if "\n" not in text[container.start : container.end]:
            gap, member_text = " ", json.dumps(value, ensure_ascii=False)
        if last.comma < 0:
            head = text[: last.end] + "," + text[last.end : end]
    return f"{head}{gap}{json.dumps(key, ensure_ascii=False)}: {member_text}{tail}{text[close:]}"


def _write(text: str, value: object, indent: str) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    member_text = json.dumps(value, ensure_ascii=False, indent=_unit(text))
    return member_text.replace("\n", newline + indent)


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _unit(text: str) -> str:
    match = _UNIT.search(text)
    return match[1] if match else "  "


def _span_of(text: str, member: _Member) -> tuple[int, int]:
    """Return start and end of *member*, as whole lines if it does not share them."""
    end = member.end if member.comma < 0 else member.comma + 1
    line = text.rfind("\n", 0, member.start) + 1
    line_end = _REST_OF_LINE.match(text, end)
    if line_end is not None and not text[line : member.start].strip():
        return line, line_end.end()
    while text.startswith(" ", end):
        end += 1
    return member.start, end
