"""One member of a JSON file set or taken out; all else stays byte for byte, comments too. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.errors import ConfigError
from gateway.manifests.jsonc import parse

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<mark>[{}\[\]:,])"""
    r"""|(?P<word>[^\s{}\[\]:,"]+)""",
    re.DOTALL,
)
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\n]*)?\r?\n")
_UNIT = re.compile(r"\n([ \t]+)\S")


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
    members: tuple[_Member, ...]

    def member(self, key: str) -> _Member | None:
        # Of two of a name a reader takes the last.
        return next((part for part in reversed(self.members) if part.key == key), None)


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
    whole = _whole(text, where)
    holder, rest = _deepest(text, path[:-1])
    left = [*rest, path[-1]]
    member = holder.member(left[0])
    new: object = value
    for key in reversed(left[1:]):
        new = {key: new}
    if member is not None:
        indent = _indent(text, member.start)
        changed = text[: member.value] + _dumped(text, new, indent) + text[member.end :]
    else:
        changed = _inserted(text, holder, left[0], new)
    return _checked(changed, _set(whole, path, value), where)


def without_member(text: str, path: Sequence[str], *, where: str) -> str:
    """Return *text* without what stands at *path*; the same if nothing does.

    Raises:
        ConfigError: It is no JSON object, or cannot be edited safely.
    """
    whole = _whole(text, where)
    holder, rest = _deepest(text, path[:-1])
    member = None if rest else holder.member(path[-1])
    if member is None:
        return text
    position = holder.members.index(member)
    start, end = _cut(text, member)
    cut = text[:start] + text[end:]
    if position == len(holder.members) - 1 and position > 0 and member.comma < 0:
        comma = holder.members[position - 1].comma
        # On one line, the blank after the comma goes too.
        after = start if start == member.start else comma + 1
        cut = text[:comma] + text[after:start] + text[end:]
    return _checked(cut, _dropped(whole, path), where)


def _whole(text: str, where: str) -> Mapping[str, object]:
    whole = parse(text, where=where)
    if not isinstance(whole, dict):
        raise ConfigError(f"{where!r} holds no JSON object")
    return whole


def _checked(text: str, expected: object, where: str) -> str:
    try:
        same = parse(text, where=where) == expected
    except ConfigError:
        same = False
    if not same:
        raise ConfigError(f"{where!r} is written so that it cannot be edited safely: do it by hand")
    return text


def _set(whole: object, path: Sequence[str], value: object) -> object:
    if not path:
        return value
    table = whole if isinstance(whole, dict) else {}
    return {**table, path[0]: _set(table.get(path[0]), path[1:], value)}


def _dropped(whole: object, path: Sequence[str]) -> object:
    table = whole if isinstance(whole, dict) else {}
    if len(path) == 1:
        return {key: value for key, value in table.items() if key != path[0]}
    return {**table, path[0]: _dropped(table.get(path[0]), path[1:])}


def _deepest(text: str, path: Sequence[str]) -> tuple[_Object, list[str]]:
    """Return the object that is as far along *path* as there are objects, and the rest of it."""
    holder = _object(text, 0)
    for depth, key in enumerate(path):
        member = holder.member(key)
        if member is None or not text.startswith("{", member.value):
            return holder, list(path[depth:])
        holder = _object(text, member.value)
    return holder, []


def _object(text: str, at: int) -> _Object:
    """Read the members of the first object from *at* on, deeper ones as they stand."""
    tokens = [part for part in _TOKEN.finditer(text, at) if part.lastgroup != "skip"]
    members: list[_Member] = []
    position = 1
    while position < len(tokens) and tokens[position][0] != "}":
        key = tokens[position]
        last = _value_end(tokens, position + 2)
        follows = tokens[last + 1] if last + 1 < len(tokens) else None
        comma = follows.start() if follows is not None and follows[0] == "," else -1
        name = json.loads(key[0]) if key.lastgroup == "text" else key[0]
        value = tokens[min(position + 2, len(tokens) - 1)].start()
        members.append(_Member(name, key.start(), value, tokens[last].end(), comma))
        position = last + (1 if comma < 0 else 2)
    end = tokens[position].end() if position < len(tokens) else len(text)
    return _Object(tokens[0].start(), end, tuple(members))


def _value_end(tokens: Sequence[re.Match[str]], position: int) -> int:
    depth = 0
    while position < len(tokens) - 1:
        mark = tokens[position][0]
        depth += (mark in {"{", "["}) - (mark in {"}", "]"})
        if depth <= 0:
            break
        position += 1
    return min(position, len(tokens) - 1)


def _inserted(text: str, holder: _Object, key: str, value: object) -> str:
    close = holder.end - 1
    end = len(text[:close].rstrip())
    if holder.members and "\n" not in text[holder.start : holder.end]:
        added = f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        comma = ", " if holder.members[-1].comma < 0 else " "
        return text[:end] + comma + added + text[end:]
    newline = "\r\n" if "\r\n" in text else "\n"
    if holder.members:
        last = holder.members[-1]
        indent = _indent(text, last.start)
        tail = text[end:close]
        if last.comma < 0:
            text, end = text[: last.end] + "," + text[last.end :], end + 1
    else:
        outer = _indent(text, holder.start)
        indent, tail = outer + _unit(text), newline + outer
    added = f"{json.dumps(key, ensure_ascii=False)}: {_dumped(text, value, indent)}"
    rest = text[end:].lstrip()
    return text[:end] + newline + indent + added + tail + rest


def _dumped(text: str, value: object, indent: str) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    written = json.dumps(value, ensure_ascii=False, indent=_unit(text))
    return written.replace("\n", newline + indent)


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _unit(text: str) -> str:
    match = _UNIT.search(text)
    return match[1] if match else "  "


def _cut(text: str, member: _Member) -> tuple[int, int]:
    """Return what of the text belongs to *member*: its whole lines, where it has them."""
    end = member.end if member.comma < 0 else member.comma + 1
    line = text.rfind("\n", 0, member.start) + 1
    rest = _REST_OF_LINE.match(text, end)
    if rest is not None and not text[line : member.start].strip():
        return line, rest.end()
    while text.startswith(" ", end):
        end += 1
    return member.start, end
