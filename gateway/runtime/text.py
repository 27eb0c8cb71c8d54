"""Small rules of text: cleaning, clipping, counting tokens, near names, literals, digests.

Words and stems are in `graphs.lexical.analysis`; here is only what the gateway itself needs. All
functions are linear in their input and accept any string, lone surrogates included.
"""

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
_UNSEEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891"
    "\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ue000-\uf8ff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff"
) + _NONCHARACTERS
"""Control, format and private characters, and all that Unicode calls default ignorable: fillers,
variation selectors, tags."""
_LINE_ENDS = "\x0b\x0c\x85\u2028\u2029"
_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
"""Seen by what they do to their neighbours, or not at all."""
_SHAPED = (
    "\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1800-\u18af\ufb50-\ufdcf\ufe70-\ufefc"
)
"""Scripts whose letters a joiner shapes: Arabic, Syriac, Indic, Khmer, Mongolian."""
_EMOJI = "\u00a9\u00ae\u203c-\u27bf\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_ODD_ASCII = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
_W = rf"[^\W{_UNSPACED}]"
"""A letter or a digit of a literal: where words stand without spaces, all would be one."""
_COMPOUND = r"""
        (?<!\w)\w++(?:/\w++)++                  # owner/repository
      | (?<!\w)\w[^\W_]*+_\w++                 # snake_case
      | (?<!\w)\w++\.\w{1,5}+(?!\w)            # file.ext
    """
_NEAR_CHARS = 256
_DIGIT = re.compile(r"\d")
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""The name of an argument, in the form of nearly all: too plain to say anything else."""


def clean(text: str, *, limit: int) -> str:
    """Drop what no reader can see, fold white space, clip to *limit* characters.

    What is dropped, `visible` says; newlines stay. Descriptions of servers pass through here before
    anything reads them.
    """
    if not text:
        return ""
    if len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    # Clip twice: a 50 MB description must not be walked to its end to keep its first page.
    seen = visible(normalize("NFC", text[: limit * 2]))
    folded = re.sub(r"\n\s*\n\s*\n+", "\n\n", re.sub(r"[^\S\n]+", " ", seen)).strip()
    return folded[:limit].rstrip()


def normalize(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return *text* in the normal form *form*, without what follows 30 combining marks in a row.

    That is the limit of the Stream-Safe Text Format (UAX 15). Python sorts a run of marks in
    quadratic time.
    """

    def is_mark(character: str) -> bool:
        return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) > 0

    if marks := "" if text.isascii() else "".join(sorted(filter(is_mark, {*text}))):
        text = re.sub(f"([{marks}]{{30}})[{marks}]+", r"\1", text)
    return unicodedata.normalize(form, text)


def plain(names: Iterable[object]) -> list[str]:
    """Return those of *names* that are too plain to hold an instruction."""
    return [name for name in names if isinstance(name, str) and _PLAIN.fullmatch(name)]


def visible(text: str) -> str:
    """Drop what no reader can see, and leave the rest as it is.

    * Control, format (bidi, zero-width, tag), private and default ignorable characters are dropped.
    * Joiners stay where they shape a letter of Arabic or an Indic script, or join two emoji; so
      does the variation selector of an emoji. Never two in a row.
    * Line ends of other kinds become newlines; CR LF, tabs and newlines stay.
    * A lone surrogate becomes ``?``: what is left can be written as UTF-8.
    """
    # Of other texts the distinct characters are looked at: they are few.
    if _ODD_ASCII.search(text) if text.isascii() else _odd().search("".join({*text})):
        for odd, stand_in in _stand_ins():
            text = odd.sub(stand_in, text)
    return text


@cache
def _odd() -> re.Pattern[str]:
    return re.compile(rf"[\r\ud800-\udfff{_LINE_ENDS}{_JOINERS}{_UNSEEN}]")


@cache
def _stand_ins() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return what takes the place of what, in this order."""
    joiners = re.compile(
        rf"""(?=[{_JOINERS}])(?!
            (?<=[{_SHAPED}])[\u200c\u200d](?=[{_SHAPED}]|\W|\Z)
          | (?:(?<=[{_EMOJI}])|(?<=[{_EMOJI}]\ufe0f))\u200d(?=[{_EMOJI}])
          | (?<=[{_EMOJI}])[\ufe0e\ufe0f]
          | (?<=[0-9#*])\ufe0f(?=\u20e3)
        ).""",
        re.VERBOSE,
    )
    return (
        (re.compile(rf"\r(?!\n)|[{_LINE_ENDS}]"), "\n"),
        (re.compile("[\ud800-\udfff]"), "?"),
        (re.compile(f"[{_UNSEEN}]+"), ""),
        (joiners, ""),
    )


def is_visible(text: str) -> bool:
    """Whether *text* is one line without anything that `visible` would change."""
    return text.isprintable() and visible(text) == text


def visible_json(value: T) -> T:
    """Return JSON as `visible` leaves its texts, keys too; numbers that JSON lacks become null."""
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
    """Estimate how many tokens a model reads in *text*; 0 for an empty one.

    A token is four characters, or one wide character (CJK, Thai, Hangul). That is within about 15 %
    of the o200k vocabulary on JSON schemas and English prose. Where it is shown, say that it is an
    estimate.
    """
    wide = 0 if text.isascii() else len(_wide().findall(text))
    return wide + -(-(len(text) - wide) // 4)


def json_tokens(value: object) -> int:
    """Estimate the tokens of *value* as JSON."""
    return estimate_tokens(json.dumps(value, ensure_ascii=False, default=str))


@cache
def _wide() -> re.Pattern[str]:
    return re.compile(
        "[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
    )


def near(name: str, names: Iterable[str], *, limit: int = 5) -> tuple[str, ...]:
    """Return up to *limit* of *names* that look like *name*, best first; none if none is near.

    Of *name* the first 256 characters count: each of *names* is compared with all of them.
    """
    from rapidfuzz import fuzz, process, utils  # noqa: PLC0415  (only a wrong name needs it)

    found = process.extract(
        name[:_NEAR_CHARS],
        sorted(names),
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        limit=limit,
        score_cutoff=60,
    )
    return tuple(match for match, _, _ in found)


def literals(text: str) -> tuple[str, ...]:
    """Return the literals that no rewriting may change: ids, e-mails, versions, file names."""
    return tuple(dict.fromkeys(found.strip(".,;:") for found in _literals(text)))


def _literals(text: str) -> Iterator[str]:
    for match in _literal().finditer(text):
        run = match["run"]
        # Anything with a digit: ids, versions, dates. A lone digit is a number.
        if run is None or _DIGIT.search(run, 1):
            yield match.group()
        else:
            yield from re.findall(_COMPOUND, run, re.VERBOSE)


@cache
def _literal() -> re.Pattern[str]:
    # Not when the module loads: nothing else that a search needs takes as long to compile.
    return re.compile(
        rf"""(?<!{_W}|[.+-])(?:{_W}|[.+-])++@(?:{_W}|-)++\.(?:{_W}|[.-])++  # e-mail
          | https?://[^\s{_UNSPACED}]++                               # address
          | (?P<run>(?:(?!https?://){_W})++(?:[-./#:](?:(?!https?://){_W})++)*+)  # joined words
        """,
        re.VERBOSE,
    )


def digest(text: str) -> str:
    """Return the digest of *text*, 40 hexadecimal digits: equal digests mean equal texts."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
