"""Documents and tools that nobody wrote, the same at every run.

* Their words follow Zipf's law over a few thousand invented ones, as those of real texts do.
* Each document has a next step, a prerequisite, a relative, a group of twenty, and data that it
  takes and gives: small crowds, so that no rule about large ones comes into play.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from gateway.plugins.quality.distractors import FixedSource
from gateway.types import ToolDefinition
from graphs import Document, Link

VERBS = ("list", "find", "get", "show", "create", "update", "send", "delete", "export", "check")
_WORDS = 4000
_DESCRIBED = 20
"""Words of a description."""
_GROUP = 20
_DATA = 5
_QUERY = 3


def _nouns() -> tuple[str, ...]:
    """Invent words of two to four syllables, as unlike each other as those of a language are."""
    syllables = [a + b for a, b in product("bcdfghjklmnprstvwz", ("a", "e", "i", "o", "u", "ar"))]
    rng = np.random.default_rng(3)
    found: dict[str, None] = {}
    while len(found) < _WORDS:
        picked = rng.integers(len(syllables), size=int(rng.integers(2, 5)))
        found["".join(syllables[each] for each in picked)] = None
    return tuple(found)


NOUNS = _nouns()


def node(number: int) -> str:
    """Return the id of a document."""
    return f"urn:benchmark:document:{number}"


def documents(count: int) -> list[Document]:
    """Write *count* documents."""
    return [
        Document(
            id=node(number),
            title=_name(number).replace("_", " "),
            summary=description,
            groups=(Link(target=f"group {number // _GROUP}"),),
            next_steps=(Link(target=node((number + 1) % count)),),
            requires=(Link(target=node((number * 7 + 3) % count)),),
            related=(Link(target=node((number * 13 + 5) % count)),),
            produces=(Link(target=f"data {number // _DATA}"),),
            consumes=(Link(target=f"data {number // _DATA + 1}"),),
        )
        for number, description in enumerate(_descriptions(count))
    ]


def servers(count: int) -> list[FixedSource]:
    """Make *count* tools, twenty a server."""
    tools = [
        ToolDefinition(
            name=_name(number),
            description=description,
            input_schema={
                "type": "object",
                "properties": {
                    f"{NOUNS[number // _DATA % len(NOUNS)]}_id": {"type": "string"},
                    "limit": {"type": "integer", "description": "How many at most."},
                },
                "required": [f"{NOUNS[number // _DATA % len(NOUNS)]}_id"],
            },
        )
        for number, description in enumerate(_descriptions(count))
    ]
    return [
        FixedSource(f"server{start // _GROUP}", tools[start : start + _GROUP])
        for start in range(0, count, _GROUP)
    ]


def queries(count: int) -> list[str]:
    """Ask *count* different questions of three words."""
    texts = _descriptions(count, seed=11, length=_QUERY - 1)
    return [f"{VERBS[number % len(VERBS)]} {text}" for number, text in enumerate(texts)]


def _name(number: int) -> str:
    verb, noun = VERBS[number % len(VERBS)], NOUNS[number // len(VERBS) % len(NOUNS)]
    again = number // (len(VERBS) * len(NOUNS))
    return f"{verb}_{noun}_{again}" if again else f"{verb}_{noun}"


def _descriptions(count: int, *, seed: int = 7, length: int = _DESCRIBED) -> Iterator[str]:
    ranks = np.random.default_rng(seed).zipf(1.1, size=(count, length)) % len(NOUNS)
    for row in ranks:
        yield " ".join(NOUNS[rank] for rank in row)
