"""Flags tool definitions that look like an attack on a model: text that talks to it, not of a tool.

A definition is data that a stranger wrote and a model reads. Known attacks hide orders in
descriptions, schemas, defaults and invisible characters ("tool poisoning", Invariant Labs, 2025;
OWASP MCP Top 10, MCP03), or heap up key words, so that a tool is found for everything. Orders are
found by a model that was learned (`injection_model`), also in text that is encoded. Of binary data
(icons and other files in base64) nothing is read. What is reported is a reason to look, not a
verdict.
"""

from __future__ import annotations

import base64
import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from urllib.parse import unquote

from gateway.mcp.injection_model import score_order, split_sentences
from gateway.types import JsonObject

_MAX_CHARS = 20_000
"""How much of each text is looked at: more than a model is ever shown of it …"""
_MAX_ALL_CHARS = 400_000
"""… and of all texts, what a person or a model reads first."""
_STEP_CHARS = 1000
_OVERLAP_CHARS = 300
"""How much is looked at in one step, and how much of that again in the next one."""
_READ = ("name", "description", "title", "inputSchema", "outputSchema", "annotations")
_KEYWORDS = ("type", "properties", "required", "items", "description", "inputSchema")
_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")

_HIDDEN = re.compile(
    "[\U000e0000-\U000e007f\u202a-\u202e\u2066-\u2069\x00-\x08\x0e-\x1f\x7f]"
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3}"
    "|(?:\\w[\u200b\u2060\ufeff]\\w)|[\u200b-\u200f\u2060-\u2064\ufeff]{4}"
)
_URL_SAFE = str.maketrans("-_", "+/")
_ENCODED = re.compile(
    r"(?:[A-Za-z0-9+/_-]{4}){5,}[A-Za-z0-9+/_-]{0,3}={0,2}"
    r"|(?:%[0-9A-Fa-f]{2}){12,}|(?:\\u[0-9a-fA-F]{4}){12,}|(?:&#x?[0-9a-fA-F]+;){12,}"
)
_BASE64 = re.compile("[A-Za-z0-9+/_-]{40,}(?:\\r?\\n[A-Za-z0-9+/_-]{40,})*={0,2}")
_DRAWING_URI = re.compile(r"data:image/svg\+xml(?![^,]*;base64,)[^,]*,", re.IGNORECASE)
_UNREADABLE = r"\x00-\x08\x0b-\x1f\x7f\ufffd"
_READABLE = re.compile(rf"\A[^{_UNREADABLE}]+\Z|[^{_UNREADABLE}]{{24,}}")
"""Bytes that are text, and text among other bytes: 24 characters are not there by chance."""
_JOINED_WORDS = re.compile(r"(?:[-_/+]?[A-Z]?[a-z]{2,}+){4,}|(?:[-_/+][A-Z]{2,}+){4,}|[a-z]{16,}")
"""Words in the characters of base64, joined by some of them or by humps."""
_PLAIN_ATTRIBUTE = re.compile(
    r"""[\w:-]+\s*=\s*(["'])(?:(?!\1|[^\W\d_]{2,}\s+[^\W\d_]{2,}).)*(?:\1|\Z)""", re.DOTALL
)
"""An attribute without two words in a row."""
_WORDS = re.compile(r"(?:[^\W\d_]{2,}\W+){2}[^\W\d_]{2,}|[\u3040-\u9fff\uac00-\ud7af]{6}")
"""What a decoded text must hold: words, or a run of letters where words are not parted."""
_WORD = r"[^\W\d_]{2,}"
_MIN_REPEATS = 8
"""How often one word must stand in a text before its share of the text is looked at."""
_MAX_WORD_SHARE = 0.3
_MIN_KEY_WORDS = 24
"""Words of one list, without a colon before it that would name what is listed."""
_MAX_GRAMMAR_SHARE = 0.05
_GRAMMAR = (
    r"\b(?:an?|and|are|as|at|be|by|can|do|for|from|given|has|if|into?|is|its?|not|of|on|only|or"
    r"|returns?|that|the|their|them|then|this|to|used?|using|when|where|which|will|with|your?)\b"
)
"""Words that every English sentence has some of, and a heap of key words none."""


def scan_definition(
    tool: JsonObject, on_step: Callable[[], None] = lambda: None
) -> tuple[str, ...]:
    """Return why the definition *tool*, as its server sent it, looks like an attack; else empty.

    Args:
        tool: The definition.
        on_step: Called between the steps of the work, each some milliseconds at most.
    """
    first = {key: tool[key] for key in _READ if key in tool}
    texts = (_read_data(text[:_MAX_ALL_CHARS]) for text in texts_of({**first, **tool}))
    raw = "\n".join(text[:_MAX_CHARS] for text in texts)[:_MAX_ALL_CHARS]
    reasons: set[str] = set()
    for start in range(0, len(raw), _STEP_CHARS):
        on_step()
        part = raw[start : start + _STEP_CHARS + _OVERLAP_CHARS]
        if _HIDDEN.search(part):
            reasons.add("hidden characters")
        if _is_order(part):
            reasons.add("reads like an order to a model")
    description = tool.get("description")
    read = _read_data(description[:_MAX_ALL_CHARS]) if isinstance(description, str) else ""
    if is_stuffed(read[:_MAX_CHARS].casefold()):
        reasons.add("heaps up key words")
    return tuple(sorted(reasons))


def _read_data(text: str) -> str:
    """Return *text* with the text in its base64, or in the drawing that it is, instead of these."""
    if uri := _DRAWING_URI.match(text):
        return _read_drawing(unquote(text[uri.end() :]))
    return _BASE64.sub(lambda found: _read_base64(found[0]), text)


def _read_base64(run: str) -> str:
    """Return the text that *run* stands for, and the words that only look like base64."""
    if re.fullmatch("[0-9a-fA-F]+", run):
        return run
    digits = "".join(run.split()).rstrip("=").translate(_URL_SAFE)
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return "\n".join([_read_bytes(base64.b64decode(digits + "==")), *_JOINED_WORDS.findall(run)])


def _read_bytes(data: bytes) -> str:
    """Return the text that most of *data* is; empty for binary data."""
    whole = data.decode("utf-8", "replace")
    text = "\n".join(_READABLE.findall(whole))
    return _read_drawing(text) if 2 * len(text) >= len(whole) else ""


def _read_drawing(text: str) -> str:
    """Return *text*; if it is a drawing (SVG), without attributes that are not words."""
    return _PLAIN_ATTRIBUTE.sub("\n", text).replace('"', "\n") if "<svg" in text else text


def _is_order(part: str) -> bool:
    """Whether the model finds an order in *part* of a definition's text, or in what it encodes."""
    decoded = [text for each in _ENCODED.findall(part) if _WORDS.search(text := _decode(each))]
    return score_order([each for text in (part, *decoded) for each in split_sentences(text)]) > 0


def _decode(text: str) -> str:
    """Return what *text* stands for in base64, hexadecimal digits or escapes; empty for nothing."""
    if text[0] in "%&":
        return html.unescape(unquote(text))
    with suppress(ValueError):
        if text[0] == "\\":
            return text.encode().decode("unicode_escape")
        if re.fullmatch("[0-9a-fA-F]+", text):
            return bytes.fromhex(text).decode()
        padded = text.rstrip("=").translate(_URL_SAFE) + "=="
        return base64.b64decode(padded).decode()
    return ""


def is_stuffed(text: str) -> bool:
    """Whether one word makes up much of *text*, or key words stand in it without a sentence."""
    words = re.findall(_WORD, text)
    if words:
        _, count = Counter(words).most_common(1)[0]
        if count >= _MIN_REPEATS and count > _MAX_WORD_SHARE * len(words):
            return True
    for sentence in re.split(r"[.!?;\n]+", text):
        listed = re.findall(_WORD, sentence)
        grammar = len(re.findall(_GRAMMAR, sentence))
        if len(listed) < _MIN_KEY_WORDS or ":" in sentence or not sentence.isascii():
            continue
        if len(set(listed)) > len(listed) / 2 and grammar <= _MAX_GRAMMAR_SHARE * len(listed):
            return True
    return False


def texts_of(value: object) -> Iterator[str]:
    """Yield each text in *value*, the keys of objects too, except the keywords of schemas."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name not in _KEYWORDS:
                yield name
            if name != "type" or inner not in _TYPES:
                yield from texts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner)
