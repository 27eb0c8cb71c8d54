"""Commands to a home in 39 languages, from the folder of ``home-assistant-intents``.

* The package has patterns of sentences for each intent. ``hassil``, which must be installed, yields
  every sentence of a pattern; one is drawn at random, always the same.
* An intent is a tool. Up to two commands of each language ask for it.
* Patterns leave open what rooms and devices are called, and what is said, bought or played: there
  stand words of ours (``home_words.json``) and one number.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.sources.rows import ConvertedSet, Row, query_row, read_json, tool_row

WORDS_FILE = Path(__file__).with_name("home_words.json")
"""By language: what stands in the lists ``area``, ``name`` and ``floor`` of patterns, what is said
(``message``), played (``music``), and bought or done (``item``)."""
_OUR_LISTS = ("area", "name", "floor")
_OPEN_LISTS = {
    "message": "message",
    "timer_command": "message",
    "search_query": "music",
    "zone": "area",
}
"""Lists that take any words, and which of ours stand there; in all others it is the item."""
_NUMBER = 20
"""The number in commands; the highest one of its list, if that is lower."""
_NO_TOOLS = {"HassNevermind", "HassRespond"}
"""The intents that do nothing."""
_DEVICE_INTENTS = {
    *("HassTurnOn", "HassTurnOff", "HassGetState", "HassLightSet", "HassSetPosition")
}
"""The intents that a lamp or a television may be named for."""
_COMMANDS = 2
"""At most so many for each intent and language."""
_SENTENCES = 150
"""One of so many first sentences of a pattern is drawn."""
_MIN_CHARS = 9
"""Characters of a command, at least."""

Sentences = Callable[[str], Iterator[str]]
"""A pattern -> every sentence of it."""


def convert_commands(package: Path, hassil: Any) -> ConvertedSet:
    """Convert the intents in *package*, and draw commands for them.

    Args:
        package: The unpacked folder.
        hassil: The module of that name.

    Returns:
        Tools and queries, language by language.

    Raises:
        ConfigError: *package* has no intents, or lacks a language that has words.
    """
    intents = read_json(package / "intents.json")
    tools = [_tool(name, intent) for name, intent in intents.items() if name not in _NO_TOOLS]
    known = {tool["id"] for tool in tools}
    queries: list[Row] = []
    for code, words in read_json(WORDS_FILE).items():
        language = read_json(package / "data" / f"{code}.json")
        language["lists"] = _lists(language["lists"], words)
        sentences = _sentences(language, hassil)
        for name, intent in language["intents"].items():
            if name in known:
                rng = random.Random(f"{code}{name}")
                drawn = _draw(_patterns(name, intent), sentences, rng)
                queries += [
                    query_row(f"{code}-{name}-{place}", text, [name], lang=code.partition("-")[0])
                    for place, text in enumerate(drawn)
                ]
    return ConvertedSet(tools=tuple(tools), queries=tuple(queries))


def _tool(name: str, intent: Row) -> Row:
    properties = {
        slot: {"type": "string", "description": each.get("description", "")}
        for slot, each in intent.get("slots", {}).items()
    }
    schema = {"type": "object", "properties": properties}
    return tool_row(name, "homeassistant", intent["description"], schema)


def _lists(lists: Mapping[str, Row], words: Mapping[str, Sequence[str]]) -> dict[str, Row]:
    """Return the lists that patterns name, with a word or a number where they leave any open."""
    ours = {name: {"values": words[name]} for name in _OUR_LISTS}
    return ours | {name: _list(name, each, words) for name, each in lists.items()}


def _list(name: str, values: Row, words: Mapping[str, Sequence[str]]) -> Row:
    if "range" in values:
        return {"values": [str(min(values["range"]["to"], _NUMBER))]}
    if values.get("wildcard"):
        return {"values": words[_OPEN_LISTS.get(name, "item")][:1]}
    return values


def _sentences(language: Row, hassil: Any) -> Sentences:
    intents = hassil.Intents.from_dict(language)

    def sentences(pattern: str) -> Iterator[str]:
        expression = hassil.parse_sentence(pattern).expression
        yield from hassil.sample_expression(expression, intents.slot_lists, intents.expansion_rules)

    return sentences


def _patterns(name: str, intent: Row) -> list[list[str]]:
    """Return the blocks of an intent's patterns."""
    return [
        [each for each in block["sentences"] if "{name}" not in each or name in _DEVICE_INTENTS]
        for block in intent["data"]
    ]


def _draw(blocks: list[list[str]], sentences: Sentences, rng: random.Random) -> list[str]:
    """Draw a block, of that a pattern, and of that a sentence; until there are enough."""
    drawn: set[str] = set()
    rng.shuffle(blocks)
    for patterns in blocks:
        rng.shuffle(patterns)
        for pattern in patterns[:1]:
            found = islice(sentences(pattern), _SENTENCES)
            texts = [text for text in found if len(text) >= _MIN_CHARS]
            if texts:
                drawn.add(rng.choice(texts))
        if len(drawn) == _COMMANDS:
            break
    return [" ".join(text.split()) for text in sorted(drawn)]
