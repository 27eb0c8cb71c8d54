"""Conversion of Home Assistant's sentence patterns to queries in many languages, over a small
package.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from string import Formatter
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.sources.homeassistant import WORDS_FILE, convert_commands
from tests.benchmarks.written import write_json


def sample(pattern: str, lists: Mapping[str, Any], rules: Mapping[str, Any]) -> Iterator[str]:
    """Yield every sentence of a pattern that consists of lists."""
    names = [name for _, name, _, _ in Formatter().parse(pattern) if name]
    for words in product(*(lists[name]["values"] for name in names)):
        yield pattern.format_map(dict(zip(names, words, strict=True)))


def read_language(language: Mapping[str, Any]) -> Any:
    """Return the file of a language in the sampler's format."""
    return SimpleNamespace(slot_lists=language["lists"], expansion_rules={})


@pytest.fixture
def hassil() -> Any:
    """Module that replaces `hassil` and samples sentences from patterns of lists only."""
    return SimpleNamespace(
        Intents=SimpleNamespace(from_dict=read_language),
        parse_sentence=lambda text: SimpleNamespace(expression=text),
        sample_expression=sample,
    )


def block(*patterns: str) -> dict[str, Any]:
    """Return an intent with *patterns*."""
    return {"sentences": patterns}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Folder of a package with the same few patterns for each language."""
    intent = {"description": "Does it.", "slots": {"name": {"description": "What."}, "area": {}}}
    names = ("HassTurnOn", "HassVacuumStart", "HassSetVolume", "HassListAddItem")
    write_json(tmp_path / "intents.json", dict.fromkeys((*names, "HassNevermind"), intent))
    intents = {
        "HassTurnOn": [block("turn on the {name}"), block("on!"), block("light up the {area}")],
        "HassVacuumStart": [block("vacuum with the {name}"), block("vacuum the {floor} floor")],
        "HassSetVolume": [block("set the volume to {volume} in {zone}")],
        "HassListAddItem": [block("remember  to buy {thing}")],
        "HassNevermind": [block("please never mind")],
        "HassUnknown": [block("do what nobody knows")],
    }
    lists = {
        "volume": {"range": {"from": 0, "to": 100}},
        "zone": {"wildcard": True},
        "thing": {"wildcard": True},
        "floor": {"values": ["ground"]},
    }
    for code in json.loads(WORDS_FILE.read_text(encoding="utf-8")):
        data = {name: {"data": blocks} for name, blocks in intents.items()}
        language = {"language": code, "intents": data, "lists": lists}
        write_json(tmp_path / "data" / f"{code}.json", language)
    return tmp_path


def test_generated_commands_use_words_of_their_language(package: Path, hassil: Any) -> None:
    """There are at most two commands per intent. Too short commands and unsuitable devices are
    omitted.
    """
    converted = convert_commands(package, hassil)

    assert 4 == len(converted.tools)
    properties = converted.tools[0]["input_schema"]["properties"]
    assert {"type": "string", "description": "What."} == properties["name"]
    english = {row["id"]: row["query"] for row in converted.queries if row["lang"] == "en"}
    lights, devices = english.pop("en-HassTurnOn-0"), english.pop("en-HassTurnOn-1")
    assert lights in {"light up the kitchen", "light up the bedroom"}
    assert devices in {"turn on the lamp", "turn on the TV"}
    assert {
        "en-HassVacuumStart-0": "vacuum the ground floor",
        "en-HassSetVolume-0": "set the volume to 20 in kitchen",
        "en-HassListAddItem-0": "remember to buy milk",
    } == english
    assert {5} == {
        sum(row["id"].startswith(f"{code}-H") for row in converted.queries)
        for code in ("de", "zh-TW")
    }
    chinese = [row for row in converted.queries if row["id"].startswith("zh-")]
    assert {"zh"} == {row["lang"] for row in chinese}
    assert convert_commands(package, hassil) == converted


def test_every_language_has_all_words_that_patterns_need() -> None:
    """A missing word would leave a gap in a sentence."""
    words = json.loads(WORDS_FILE.read_text(encoding="utf-8"))

    assert 39 == len(words)
    keys = ("area", "name", "floor", "message", "item", "music")
    assert {keys} == set(map(tuple, words.values()))
    assert all(
        word.strip() for lists in words.values() for phrases in lists.values() for word in phrases
    )
