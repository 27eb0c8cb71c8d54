"""Turtle and JSON-LD from elsewhere, read as facts. Nothing is ever fetched.

* JSON-LD is looked through before it is parsed: a context that is named instead of written out is
  refused in every place and shape, but for our own, which the packaged one stands for.
* Sizes and depths are bounded; a fault is a `DocumentError`.
* rdflib is imported at the two doors of this file, not with it.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TypeAlias

from graphs.errors import DocumentError
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import CONTEXT_IRI

MAX_CHARS = 64 * 1024 * 1024
MAX_DEPTH = 64
CONTEXT_FILE = "context.jsonld"
_NAMED = frozenset({"@import"})
_Json: TypeAlias = "dict[str, _Json] | list[_Json] | str | float | bool | None"


def from_turtle(text: str, *, path: str = "", declared: bool = True) -> tuple[Fact, ...]:
    """Read Turtle (or N-Triples) as facts, in the order of the text.

    Args:
        text: Turtle; blank nodes are numbered in the order of the text.
        path: Where it was read; it names the text in errors and in the facts.
        declared: Whether the host stands for the text.

    Raises:
        DocumentError: The text cannot be read.
    """
    from graphs.rdf import convert  # noqa: PLC0415  (rdflib is heavy: a warm start must not pay for it)

    _measure(text, path)
    return convert.read_facts(text, "turtle", path=path, declared=declared)


def from_json_ld(text: str, *, path: str = "", declared: bool = True) -> tuple[Fact, ...]:
    """Read JSON-LD as facts; the arguments are those of `from_turtle`.

    Raises:
        DocumentError: The text cannot be read, or names a context that would have to be fetched.
    """
    from graphs.rdf import convert  # noqa: PLC0415  (rdflib is heavy: a warm start must not pay for it)

    _measure(text, path)
    try:
        found: _Json = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        raise DocumentError("no JSON, or nested too deeply", path=path, line=line) from error
    safe = json.dumps(_safe(found, path, depth=0))
    return convert.read_facts(safe, "json-ld", path=path, declared=declared)


def packaged_context() -> dict[str, object]:
    """Return the JSON-LD context as it is shipped, which equals that of the vocabulary."""
    text = files("graphs").joinpath(CONTEXT_FILE).read_text(encoding="utf-8")
    found: dict[str, object] = json.loads(text)
    return found


def _measure(text: str, path: str) -> None:
    if len(text) > MAX_CHARS:
        raise DocumentError("more than 64 MB: split the graph", path=path)


def _safe(value: _Json, path: str, *, depth: int) -> _Json:
    """Return *value* with our own context written out; refuse whatever else has to be fetched."""
    if depth > MAX_DEPTH:
        raise DocumentError(f"nested deeper than {MAX_DEPTH}: flatten it", path=path)
    if isinstance(value, list):
        return [_safe(each, path, depth=depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, _Json] = {}
    for key, item in value.items():
        if key in _NAMED:
            raise DocumentError(f"{key!r} names a context: write it out", path=path)
        inside = _written_out(item, path) if key == "@context" else item
        found[key] = _safe(inside, path, depth=depth + 1)
    return found


def _written_out(context: _Json, path: str) -> _Json:
    if isinstance(context, list):
        return [_written_out(each, path) for each in context]
    if context is None or isinstance(context, dict):
        return context
    if not isinstance(context, str):
        raise DocumentError(f"{context!r} is no context: write a mapping", path=path)
    if context == CONTEXT_IRI:
        ours: _Json = json.loads(json.dumps(packaged_context()["@context"]))
        return ours
    detail = f"the context {context!r} would have to be fetched: write it out, or use {CONTEXT_IRI}"
    raise DocumentError(detail, path=path)
