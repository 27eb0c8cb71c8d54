"""Text functions that take linear time and accept any string, including lone surrogates."""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Literal, TypeVar, cast

T = TypeVar("T")
_NONCHARACTERS = "\ufdd0-\ufdef" + "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
)
_INVISIBLE = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891"
    "\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ue000-\uf8ff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff"
) + _NONCHARACTERS
"""Ranges of invisible characters: control, format and private characters, and Unicode's default
ignorable characters (fillers, variation selectors, tags)."""
_LINE_ENDS = "\x0b\x0c\x85\u2028\u2029"
_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
"""Joiners and variation selectors, which are visible only through their effect on neighbours."""
_SHAPED_SCRIPTS = (
    "\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1800-\u18af\ufb50-\ufdcf\ufe70-\ufefc"
)
"""Scripts in which a joiner changes the shape of letters: Arabic, Syriac, Indic, Khmer,
Mongolian."""
_EMOJI = "\u00a9\u00ae\u203c-\u27bf\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_CONTROL_ASCII = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
_W = rf"[^\W{_UNSPACED}]"
"""A letter or a digit of a literal. Scripts without spaces are excluded, because a whole sentence
would be one literal."""
_COMPOUND = r"""
        (?<!\w)\w++(?:/\w++)++                  # owner/repository
      | (?<!\w)\w[^\W_]*+_\w++                 # snake_case
      | (?<!\w)\w++\.\w{1,5}+(?!\w)            # file.ext
    """
_NEAR_CHARS = 256
_DIGIT = re.compile(r"\d")
_SIMPLE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Argument names that are too short and simple to contain an instruction for a model."""


def clean(text: str, *, limit: int) -> str:
    """Remove invisible characters (see `visible`), fold white space and clip *text* to *limit*.

    Newlines inside the text are kept, but several blank lines become one.
    """
    if not text:
        return ""
    if len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    # Clipped before cleaning too, because a description may have 50 MB.
    cleaned = visible(normalize("NFC", text[: limit * 2]))
    folded = re.sub(r"\n\s*\n\s*\n+", "\n\n", re.sub(r"[^\S\n]+", " ", cleaned)).strip()
    return folded[:limit].rstrip()


def normalize(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return *text* in a Unicode normal form, with at most 30 combining marks in a row.

    Python sorts a run of marks in quadratic time, so it is cut as in the Stream-Safe Text Format
    (UAX 15).
    """

    def is_mark(character: str) -> bool:
        return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) > 0

    if marks := "" if text.isascii() else "".join(sorted(filter(is_mark, {*text}))):
        text = re.sub(f"([{marks}]{{30}})[{marks}]+", r"\1", text)
    return unicodedata.normalize(form, text)


def plain(names: Iterable[object]) -> list[str]:
    """Return the *names* that are too short and simple to contain an instruction for a model."""
    return [name for name in names if isinstance(name, str) and _SIMPLE_NAME.fullmatch(name)]


def visible(text: str) -> str:
    """Remove invisible characters from *text*.

    * Control, format (bidi, zero-width, tag), private and default ignorable characters are removed.
    * Joiners are kept if they shape a letter of Arabic or an Indic script, or join two emoji.
      Variation selectors of emoji are kept. Two joiners or selectors in a row are never kept.
    * Line ends other than CR LF become newlines. CR LF, tabs and newlines are kept.
    * A lone surrogate becomes ``?``, so that the result can be written as UTF-8.
    """
    # Non-ASCII texts have few distinct characters.
    if _CONTROL_ASCII.search(text) if text.isascii() else _removable().search("".join({*text})):
        for pattern, replacement in _replacements():
            text = pattern.sub(replacement, text)
    return text


@cache
def _removable() -> re.Pattern[str]:
    return re.compile(rf"[\r\ud800-\udfff{_LINE_ENDS}{_JOINERS}{_INVISIBLE}]")


@cache
def _replacements() -> tuple[tuple[re.Pattern[str], str], ...]:
    joiners = re.compile(
        rf"""(?=[{_JOINERS}])(?!
            (?<=[{_SHAPED_SCRIPTS}])[\u200c\u200d](?=[{_SHAPED_SCRIPTS}]|\W|\Z)
          | (?:(?<=[{_EMOJI}])|(?<=[{_EMOJI}]\ufe0f))\u200d(?=[{_EMOJI}])
          | (?<=[{_EMOJI}])[\ufe0e\ufe0f]
          | (?<=[0-9#*])\ufe0f(?=\u20e3)
        ).""",
        re.VERBOSE,
    )
    return (
        (re.compile(rf"\r(?!\n)|[{_LINE_ENDS}]"), "\n"),
        (re.compile("[\ud800-\udfff]"), "?"),
        (re.compile(f"[{_INVISIBLE}]+"), ""),
        (joiners, ""),
    )


def is_visible(text: str) -> bool:
    """Return whether *text* is one line that `visible` would not change."""
    return text.isprintable() and visible(text) == text


def visible_json(value: T) -> T:
    """Return JSON with `visible` applied to all texts and keys. NaN and infinity become null."""
    return cast("T", _clean_json(value))


def _clean_json(value: object) -> object:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {visible(str(key)): _clean_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_clean_json, value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def one_line(text: str, *, limit: int) -> str:
    """Return the first sentence or line of *text*, clipped with an ellipsis."""
    line = text.strip().split("\n", 1)[0].strip()
    sentence = re.split(r"(?<=[.!?。])\s", line, maxsplit=1)[0]
    if len(sentence) <= limit:
        return sentence
    return sentence[: limit - 1].rstrip() + "…"


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of *text*.

    A token is four characters, or one wide character (CJK, Thai, Hangul). For JSON schemas and
    English prose, the error is about 15 % of the tokens of o200k.
    """
    wide = 0 if text.isascii() else len(_wide_characters().findall(text))
    return wide + -(-(len(text) - wide) // 4)


def json_tokens(value: object) -> int:
    """Estimate the number of tokens of *value* as JSON."""
    return estimate_tokens(json.dumps(value, ensure_ascii=False, default=str))


@cache
def _wide_characters() -> re.Pattern[str]:
    return re.compile(
        "[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
    )


def counted(count: int, singular: str, plural: str = "") -> str:
    """Return *count* with a noun, such as "1 tool" or "2 tools"."""
    return f"{count} {singular if count == 1 else plural or f'{singular}s'}"


def near(name: str, names: Iterable[str], *, limit: int = 5) -> tuple[str, ...]:
    """Return up to *limit* of *names* that are similar to *name*, most similar first.

    Only the first 256 characters of *name* are compared.
    """
    from rapidfuzz import fuzz, process, utils  # noqa: PLC0415  (only a wrong name needs it)

    matches = process.extract(
        name[:_NEAR_CHARS],
        sorted(names),
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        limit=limit,
        score_cutoff=60,
    )
    return tuple(match for match, _, _ in matches)


def literals(text: str) -> tuple[str, ...]:
    """Return the words (ids, e-mails, versions, file names) that a rewritten query must keep."""
    return tuple(dict.fromkeys(literal.strip(".,;:") for literal in _literals(text)))


def _literals(text: str) -> Iterator[str]:
    for match in _literal_pattern().finditer(text):
        run = match["run"]
        # Words with a digit after the first character are ids, versions or dates.
        if run is None or _DIGIT.search(run, 1):
            yield match.group()
        else:
            yield from re.findall(_COMPOUND, run, re.VERBOSE)


@cache
def _literal_pattern() -> re.Pattern[str]:
    # Compiled on first use, because compiling it is slow.
    return re.compile(
        rf"""(?<!{_W}|[.+-])(?:{_W}|[.+-])++@(?:{_W}|-)++\.(?:{_W}|[.-])++  # e-mail
          | https?://[^\s{_UNSPACED}]++                               # address
          | (?P<run>(?:(?!https?://){_W})++(?:[-./#:](?:(?!https?://){_W})++)*+)  # joined words
        """,
        re.VERBOSE,
    )


def digest(text: str) -> str:
    """Return a digest of 40 hexadecimal digits. Equal digests mean equal texts."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
