"""Scanner of definitions for prompt injections: texts that instruct the model.

Known attacks hide instructions in descriptions, schemas, defaults and invisible characters ("tool
poisoning", Invariant Labs, 2025; OWASP MCP Top 10, MCP03). Others repeat keywords so that a tool
matches every query. A trained classifier (`injection_model`) finds the instructions. A finding is a
reason for a review, not a verdict.
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
"""Maximum number of scanned characters of each text, from its beginning."""
_MAX_TOTAL_CHARS = 400_000
"""Maximum number of scanned characters of a whole definition. `_FIRST_KEYS` come first."""
_STEP_CHARS = 1000
_OVERLAP_CHARS = 300
"""Overlap of the texts of two successive scan steps, in characters."""
_FIRST_KEYS = ("name", "description", "title", "inputSchema", "outputSchema", "annotations")
_SCHEMA_KEYWORDS = ("type", "properties", "required", "items", "description", "inputSchema")
_SCHEMA_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")

_HIDDEN_CHARACTERS = re.compile(
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
"""Pattern of readable text in decoded data: the whole data, or at least 24 readable characters in a
row, which do not occur by chance."""
_JOINED_WORDS = re.compile(r"(?:[-_/+]?[A-Z]?[a-z]{2,}+){4,}|(?:[-_/+][A-Z]{2,}+){4,}|[a-z]{16,}")
"""Pattern of plain words that look like base64, because separators or camel case join them."""
_PLAIN_ATTRIBUTE = re.compile(
    r"""[\w:-]+\s*=\s*(["'])(?:(?!\1|[^\W\d_]{2,}\s+[^\W\d_]{2,}).)*(?:\1|\Z)""", re.DOTALL
)
"""Pattern of an SVG attribute whose value does not contain two words in a row."""
_WORDS = re.compile(r"(?:[^\W\d_]{2,}\W+){2}[^\W\d_]{2,}|[\u3040-\u9fff\uac00-\ud7af]{6}")
"""Pattern of words in decoded data: three words, or letters of a language that does not separate
words."""
_WORD = r"[^\W\d_]{2,}"
_MIN_REPEATS = 8
"""Minimum number of occurrences of a word for a text to count as stuffed with this word."""
_MAX_WORD_SHARE = 0.3
_MIN_KEY_WORDS = 24
"""Minimum number of words of a list of keywords. A sentence with a colon is a normal
enumeration."""
_MAX_FUNCTION_WORD_SHARE = 0.05
_FUNCTION_WORDS = (
    r"\b(?:an?|and|are|as|at|be|by|can|do|for|from|given|has|if|into?|is|its?|not|of|on|only|or"
    r"|returns?|that|the|their|them|then|this|to|used?|using|when|where|which|will|with|your?)\b"
)
"""Pattern of function words, which occur in English sentences but not in lists of keywords."""


def scan_definition(
    tool: JsonObject, on_step: Callable[[], None] = lambda: None
) -> tuple[str, ...]:
    """Return the reasons why the definition *tool* looks like an attack; empty if there are none.

    *on_step* is called between the steps of the scan, which take a few milliseconds.
    """
    first = {key: tool[key] for key in _FIRST_KEYS if key in tool}
    texts = (_decode_data(text[:_MAX_TOTAL_CHARS]) for text in texts_of({**first, **tool}))
    raw = "\n".join(text[:_MAX_CHARS] for text in texts)[:_MAX_TOTAL_CHARS]
    reasons: set[str] = set()
    for start in range(0, len(raw), _STEP_CHARS):
        on_step()
        part = raw[start : start + _STEP_CHARS + _OVERLAP_CHARS]
        if _HIDDEN_CHARACTERS.search(part):
            reasons.add("hidden characters")
        if _is_order(part):
            reasons.add("reads like an order to a model")
    description = tool.get("description")
    read = _decode_data(description[:_MAX_TOTAL_CHARS]) if isinstance(description, str) else ""
    if is_stuffed(read[:_MAX_CHARS].casefold()):
        reasons.add("heaps up key words")
    return tuple(sorted(reasons))


def _decode_data(text: str) -> str:
    """Return *text* with base64 and drawings replaced by the text that they contain."""
    if uri := _DRAWING_URI.match(text):
        return _read_drawing(unquote(text[uri.end() :]))
    return _BASE64.sub(lambda found: _read_base64(found[0]), text)


def _read_base64(run: str) -> str:
    """Return the readable text that *run* encodes, and words in *run*, which look like base64."""
    if re.fullmatch("[0-9a-fA-F]+", run):
        return run
    digits = "".join(run.split()).rstrip("=").translate(_URL_SAFE)
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return "\n".join([_read_bytes(base64.b64decode(digits + "==")), *_JOINED_WORDS.findall(run)])


def _read_bytes(data: bytes) -> str:
    whole = data.decode("utf-8", "replace")
    text = "\n".join(_READABLE.findall(whole))
    return _read_drawing(text) if 2 * len(text) >= len(whole) else ""


def _read_drawing(text: str) -> str:
    """Return *text*; if it is an SVG drawing, without attributes that are not words."""
    return _PLAIN_ATTRIBUTE.sub("\n", text).replace('"', "\n") if "<svg" in text else text


def _is_order(part: str) -> bool:
    """Return whether the classifier finds an instruction in *part* or in its encoded texts."""
    decoded = [text for run in _ENCODED.findall(part) if _WORDS.search(text := _decode(run))]
    return (
        score_order([sentence for text in (part, *decoded) for sentence in split_sentences(text)])
        > 0
    )


def _decode(text: str) -> str:
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
    """Return whether one word dominates *text*, or *text* lists keywords without sentences."""
    words = re.findall(_WORD, text)
    if words:
        _, count = Counter(words).most_common(1)[0]
        if count >= _MIN_REPEATS and count > _MAX_WORD_SHARE * len(words):
            return True
    for sentence in re.split(r"[.!?;\n]+", text):
        listed = re.findall(_WORD, sentence)
        grammar = len(re.findall(_FUNCTION_WORDS, sentence))
        if len(listed) < _MIN_KEY_WORDS or ":" in sentence or not sentence.isascii():
            continue
        if len(set(listed)) > len(listed) / 2 and grammar <= _MAX_FUNCTION_WORD_SHARE * len(listed):
            return True
    return False


def texts_of(value: object) -> Iterator[str]:
    """Yield each text and key in the JSON *value*, except schema keywords."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name not in _SCHEMA_KEYWORDS:
                yield name
            if name != "type" or inner not in _SCHEMA_TYPES:
                yield from texts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner)
