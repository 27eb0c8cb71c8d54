"""Commands to a home in 39 languages, out of the unpacked ``home_assistant_intents`` folder.

* The package has patterns of sentences for each intent; ``hassil``, which must be installed,
  tells every way to say one. A way is drawn by chance, always the same.
* An intent is a tool; up to two commands of each language ask for it, and it is their gold.
* Patterns leave open what rooms and devices are called, and what is said, bought or played: there
  stand words of ours (``homewords.json``), and one number.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.sources.rows import Row, Rows, loaded, query

WORDS = Path(__file__).with_name("homewords.json")
"""By language: what stands in the lists ``area``, ``name`` and ``floor`` of patterns, what is said
(``message``), played (``music``), and bought or done (``item``)."""
_OURS = ("area", "name", "floor")
_FREE = {"message": "message", "timer_command": "message", "search_query": "music", "zone": "area"}
"""Lists that take any words, and which of ours stand there; in all others it is the item."""
_NUMBER = 20
"""The number that is said; the highest of its list, if that is lower."""
_NO_TOOLS = {"HassNevermind", "HassRespond"}
"""The intents that do nothing."""
_DEVICES = {"HassTurnOn", "HassTurnOff", "HassGetState", "HassLightSet", "HassSetPosition"}
"""The intents that a lamp or a television may be named for."""
_COMMANDS = 2
"""At most so many an intent and language."""
_WAYS = 150
"""One of so many first ways to say a pattern is drawn."""
_SHORTEST = 9
"""Characters of a command."""

Ways = Callable[[str], Iterator[str]]


def commands(package: Path, hassil: Any) -> Rows:
    """Read the intents in *package*, and say commands for them.

    Args:
        package: The unpacked folder.
        hassil: The module of that name.

    Returns:
        Tools and queries, language by language.

    Raises:
        ConfigError: If *package* has no intents, or not those of a language that has words.
    """
    intents = loaded(package / "intents.json")
    tools = [_tool(name, told) for name, told in intents.items() if name not in _NO_TOOLS]
    offered = {tool["id"] for tool in tools}
    queries: list[Row] = []
    for tongue, words in loaded(WORDS).items():
        language = loaded(package / "data" / f"{tongue}.json")
        language["lists"] = _lists(language["lists"], words)
        ways = _ways(language, hassil)
        for name, intent in language["intents"].items():
            if name in offered:
                chance = random.Random(f"{tongue}{name}")  # noqa: S311  (it must repeat)
                drawn = _drawn(_patterns(name, intent), ways, chance)
                queries += [
                    query(f"{tongue}-{name}-{place}", text, [name], lang=tongue.partition("-")[0])
                    for place, text in enumerate(drawn)
                ]
    return tools, queries


def _tool(name: str, told: Row) -> Row:
    properties = {
        slot: {"type": "string", "description": each.get("description", "")}
        for slot, each in told.get("slots", {}).items()
    }
    return {
        "id": name,
        "name": name,
        "server": "homeassistant",
        "description": told["description"],
        "input_schema": {"type": "object", "properties": properties},
    }


def _lists(given: Mapping[str, Row], words: Mapping[str, Sequence[str]]) -> dict[str, Row]:
    """Give the lists that patterns name, with a word or a number where they leave any open."""
    ours = {name: {"values": words[name]} for name in _OURS}
    return ours | {name: _list(name, each, words) for name, each in given.items()}


def _list(name: str, given: Row, words: Mapping[str, Sequence[str]]) -> Row:
    if "range" in given:
        return {"values": [str(min(given["range"]["to"], _NUMBER))]}
    if given.get("wildcard"):
        return {"values": words[_FREE.get(name, "item")][:1]}
    return given


def _ways(language: Row, hassil: Any) -> Ways:
    """Give what tells every way to say a pattern, one after the other."""
    read = hassil.Intents.from_dict(language)

    def ways(pattern: str) -> Iterator[str]:
        said = hassil.parse_sentence(pattern).expression
        yield from hassil.sample_expression(said, read.slot_lists, read.expansion_rules)

    return ways


def _patterns(name: str, intent: Row) -> list[list[str]]:
    """Give the blocks of an intent's patterns."""
    return [
        [each for each in block["sentences"] if "{name}" not in each or name in _DEVICES]
        for block in intent["data"]
    ]


def _drawn(blocks: list[list[str]], ways: Ways, chance: random.Random) -> list[str]:
    """Draw a block, of that a pattern, and of that a way to say it; until there are enough."""
    drawn: set[str] = set()
    chance.shuffle(blocks)
    for patterns in blocks:
        chance.shuffle(patterns)
        for pattern in patterns[:1]:
            texts = [text for text in islice(ways(pattern), _WAYS) if len(text) >= _SHORTEST]
            if texts:
                drawn.add(chance.choice(texts))
        if len(drawn) == _COMMANDS:
            break
    return [" ".join(text.split()) for text in sorted(drawn)]
