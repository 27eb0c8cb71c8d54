"""Redaction of arguments and results, as policies require."""

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
"""Fields of base64 data in blocks with a MIME type. They are not scanned, because base64 looks like
a secret."""


class Redactor:
    """Replaces values at the paths of policies, and secrets if a policy requires it.

    Args:
        rules: Policies with the action ``redact``.
    """

    def __init__(self, rules: Sequence[AccessPolicy]) -> None:
        self._paths = [tuple(path.split(".")) for rule in rules for path in rule.paths]
        self._secrets = any(rule.secrets for rule in rules)

    def __bool__(self) -> bool:
        """Return whether the policies redact anything."""
        return bool(self._paths or self._secrets)

    def value(self, value: object) -> object:
        """Return a redacted copy of a JSON value."""
        return self._redact_value(value, self._paths, "")

    def text(self, text: str) -> str:
        """Return *text* redacted. JSON objects and lists in it are redacted by paths too."""
        if text.lstrip()[:1] in {"{", "["}:
            duplicates: list[str] = []
            try:
                parsed = json.loads(text, object_pairs_hook=partial(_object, duplicates=duplicates))
            except (ValueError, RecursionError):
                pass
            else:
                hidden = self.value(parsed)
                is_same = hidden == parsed and not duplicates
                return text if is_same else json.dumps(hidden, ensure_ascii=False)
        return redact(text) if self._secrets else text

    def block(self, block: JsonObject) -> JsonObject:
        """Return a redacted copy of a content block."""
        return {key: self._redact_part(key, value, block) for key, value in block.items()}

    def blocks(self, answer: JsonObject, name: str) -> JsonObject:
        """Return *answer* with its list *name* of content blocks redacted."""
        if not self:
            return answer
        return {**answer, name: [self.block(block) for block in as_objects(answer.get(name))]}

    def result(self, result: InvokeResult) -> InvokeResult:
        """Return the redacted result of a call."""
        if not self:
            return result
        blocks = (
            Content(type=content.type, text=self.text(content.text), data=self.block(content.data))
            for content in result.content
        )
        structured = result.structured
        # MCP servers wrap lists and texts in the field "result", which paths of policies omit.
        wrapped_paths = (
            [("result", *path) for path in self._paths] if _is_wrapped(structured) else []
        )
        hidden = self._redact_value(structured, [*self._paths, *wrapped_paths], "")
        return replace(result, content=tuple(blocks), structured=hidden)

    def _redact_part(self, key: str, value: object, block: JsonObject) -> object:
        if isinstance(value, Mapping):
            return self.block(value)
        if isinstance(value, list):
            return [self._redact_part(key, item, block) for item in value]
        if not isinstance(value, str) or (key in _BINARY and "mimeType" in block):
            return value
        return self.text(value) if key == "text" or self._secrets else value

    def _redact_value(self, value: object, paths: Sequence[_Path], name: str) -> object:
        if isinstance(value, str):
            if self._secrets and find_secret(name, value) == (0, len(value)):
                return HIDDEN
            return redact(value) if self._secrets else value
        if isinstance(value, list | tuple):
            return [self._redact_value(item, paths, name) for item in value]
        if not isinstance(value, Mapping):
            return value
        hidden = {}
        for key, inner in value.items():
            inner_paths = [path[1:] for path in paths if path[0] in {key, "*"}]
            is_hidden = () in inner_paths
            hidden[key] = HIDDEN if is_hidden else self._redact_value(inner, inner_paths, key)
        return hidden


def _is_wrapped(value: object) -> bool:
    return isinstance(value, Mapping) and [*value] == ["result"]


def _object(pairs: Sequence[tuple[str, Any]], duplicates: list[str]) -> dict[str, Any]:
    """Return the object of *pairs*. Append to *duplicates* if a name occurs twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        duplicates.append("")
    return members
