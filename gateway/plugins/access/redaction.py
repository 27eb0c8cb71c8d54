"""Hiding parts of arguments and results, as policies name them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gateway.options import AccessPolicy
from gateway.runtime.json_schema import as_objects
from gateway.runtime.secret_scanner import HIDDEN, find_secret, redact
from gateway.types import Content, InvokeResult, JsonObject

_Path = tuple[str, ...]
_BINARY = frozenset({"blob", "data"})
"""Members of a block that hold bytes as base64, which look as random as a secret."""


class Redactor:
    """Hides what *rules* name.

    Args:
        rules: Policies of ``redact``.
    """

    def __init__(self, rules: Sequence[AccessPolicy]) -> None:
        self._paths = [tuple(path.split(".")) for rule in rules for path in rule.paths]
        self._secrets = any(rule.secrets for rule in rules)

    def __bool__(self) -> bool:
        """Whether it hides anything."""
        return bool(self._paths or self._secrets)

    def value(self, value: object) -> object:
        """Return a JSON value without what is hidden."""
        return self._value(value, self._paths, "")

    def text(self, text: str) -> str:
        """Return a text without what is hidden; one that is JSON is read as JSON."""
        if text.lstrip()[:1] in {"{", "["}:
            doubled: list[str] = []
            try:
                parsed = json.loads(text, object_pairs_hook=partial(_object, doubled=doubled))
            except (ValueError, RecursionError):
                pass
            else:
                hidden = self.value(parsed)
                is_same = hidden == parsed and not doubled
                return text if is_same else json.dumps(hidden, ensure_ascii=False)
        return redact(text) if self._secrets else text

    def block(self, block: JsonObject) -> JsonObject:
        """Return a block of an answer, or a content of a resource, without what is hidden."""
        return {key: self._part(key, value, block) for key, value in block.items()}

    def blocks(self, answer: JsonObject, name: str) -> JsonObject:
        """Return an answer without what is hidden of the blocks in its list *name*."""
        if not self:
            return answer
        return {**answer, name: [self.block(each) for each in as_objects(answer.get(name))]}

    def result(self, result: InvokeResult) -> InvokeResult:
        """Return the answer of a tool without what is hidden."""
        if not self:
            return result
        blocks = (
            Content(type=each.type, text=self.text(each.text), data=self.block(each.data))
            for each in result.content
        )
        structured = result.structured
        # MCP servers put lists and texts into an object of one member, which their texts lack.
        own = [("result", *path) for path in self._paths] if _is_wrapped(structured) else []
        hidden = self._value(structured, [*self._paths, *own], "")
        return replace(result, content=tuple(blocks), structured=hidden)

    def _part(self, key: str, value: object, block: JsonObject) -> object:
        if isinstance(value, Mapping):
            return self.block(value)
        if isinstance(value, list):
            return [self._part(key, each, block) for each in value]
        if not isinstance(value, str) or (key in _BINARY and "mimeType" in block):
            return value
        return self.text(value) if key == "text" or self._secrets else value

    def _value(self, value: object, paths: Sequence[_Path], name: str) -> object:
        if isinstance(value, str):
            if self._secrets and find_secret(name, value) == (0, len(value)):
                return HIDDEN
            return redact(value) if self._secrets else value
        if isinstance(value, list | tuple):
            return [self._value(each, paths, name) for each in value]
        if not isinstance(value, Mapping):
            return value
        hidden = {}
        for key, inner in value.items():
            below = [path[1:] for path in paths if path[0] in {key, "*"}]
            is_hidden = () in below
            hidden[key] = HIDDEN if is_hidden else self._value(inner, below, key)
        return hidden


def _is_wrapped(value: object) -> bool:
    return isinstance(value, Mapping) and [*value] == ["result"]


def _object(pairs: Sequence[tuple[str, Any]], doubled: list[str]) -> dict[str, Any]:
    """Return an object; note a name that it has twice, since only the last one is looked at."""
    members = dict(pairs)
    if len(members) < len(pairs):
        doubled.append("")
    return members
