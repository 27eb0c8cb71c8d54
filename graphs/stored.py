"""Postings as arrays with names, and back: what a saved index holds of its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from graphs.joined import kept, numbered
from graphs.lexical.bm25 import Scale
from graphs.lexical.bm25_index import Postings
from graphs.lexical.inverted import Inverted
from graphs.lexical.trigrams import Spelling

_ARRAYS = tuple(each.name for each in fields(Inverted) if each.type == "np.ndarray")


def words_of(postings: Postings) -> dict[str, object]:
    """Give what is read whole at once: sizes and words, fit for JSON."""
    inverted = postings.inverted
    return {
        "size": inverted.size,
        "scale": asdict(inverted.scale),
        "means": inverted.means,
        "languages": dict(inverted.languages),
        "terms": inverted.names,
        "words": inverted.spelling.words,
    }


def arrays_of(postings: Postings) -> dict[str, np.ndarray]:
    """Give the arrays by name."""
    inverted, spelling = postings.inverted, postings.spelling
    found = {name: getattr(inverted, name) for name in _ARRAYS}
    return found | {
        "grams": spelling.grams,
        "grams_at": spelling.offsets,
        "grams_in": spelling.members,
    }


def postings_of(words: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Postings:
    """Put together what `words_of` and `arrays_of` took apart."""
    used = np.diff(arrays["offsets"]) > 0
    held: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
    names, spellings = kept(words["terms"]), kept(words["words"])
    scale = {**words["scale"]}
    inverted = Inverted(
        scale=Scale(
            fields=tuple(scale["fields"]),
            weights=tuple(scale["weights"]),
            k1=scale["k1"],
            b=scale["b"],
        ),
        size=words["size"],
        terms=numbered(names) if used.all() else _those(names, used.tolist()),
        names=names,
        means=tuple(words["means"]),
        languages=words["languages"],
        spelling=Spelling(
            words=spellings,
            ids=_those(spellings, spellings) if "" in spellings else numbered(spellings),
            grams=arrays["grams"],
            offsets=arrays["grams_at"],
            members=arrays["grams_in"],
        ),
        **held,
    )
    return Postings.of(inverted)


def _those(words: Sequence[str], there: Sequence[object]) -> dict[str, int]:
    """Give the place of each word that is *there*: seldom is any not."""
    return {word: at for at, (word, held) in enumerate(zip(words, there, strict=True)) if held}
