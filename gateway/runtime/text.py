"""Small rules of text: cleaning, clipping, counting tokens, near names, literals, digests.

Words and stems are in `graphs.lexical.analysis`; here is only what the gateway itself needs. All
functions are linear in their input and accept any string, lone surrogates included.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache

_KEPT_CONTROLS = frozenset("\n\t")
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co"})
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
_W = rf"[^\W{_UNSPACED}]"
"""A letter or a digit of a literal: where words stand without spaces, all would be one."""
_JOINED = r"""
        (?<!\w)\w++(?:/\w++)++                  # owner/repository
      | (?<!\w)\w[^\W_]*+_\w++                 # snake_case
      | (?<!\w)\w++\.\w{1,5}+(?!\w)            # file.ext
    """
_DIGIT = re.compile(r"\d")
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""The name of an argument, in the form of nearly all: too plain to say anything else."""


def clean(text: str, *, limit: int) -> str:
    """Drop what no reader can see, fold white space, clip to *limit* characters.

    Control, format (bidi, zero-width, tag), surrogate and private characters are dropped; newlines
    stay. Descriptions of servers pass through here before anything reads them.
    """
    if not text:
        return ""
    if len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    # Clip twice: a 50 MB description must not be walked to its end to keep its first page.
    head = unicodedata.normalize("NFC", text[: limit * 2].encode("utf-8", "replace").decode())
    seen = head if head.isprintable() else "".join(filter(_is_seen, head))
    folded = re.sub(r"\n\s*\n\s*\n+", "\n\n", re.sub(r"[^\S\n]+", " ", seen)).strip()
    return folded[:limit].rstrip()


def plain(names: Iterable[object]) -> list[str]:
    """Return those of *names* that are too plain to hold an instruction."""
    return [name for name in names if isinstance(name, str) and _PLAIN.fullmatch(name)]


def visible(text: str) -> str:
    """Drop what no reader can see, and leave the rest as it is; see `clean`."""
    whole = text.encode("utf-8", "replace").decode()
    return whole if whole.isprintable() else "".join(filter(_is_seen, whole))


def _is_seen(char: str) -> bool:
    return char in _KEPT_CONTROLS or unicodedata.category(char) not in _UNSEEN_CATEGORIES


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
    """Return up to *limit* of *names* that look like *name*, best first; none if none is near."""
    from rapidfuzz import fuzz, process, utils  # noqa: PLC0415  (only a wrong name needs it)

    found = process.extract(
        name,
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
            yield from re.findall(_JOINED, run, re.VERBOSE)


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
