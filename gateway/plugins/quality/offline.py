"""Test requests without a model: from names, parameters, enums and examples, by rules. Pure.

A request never holds the tool's name. It shares words with the tool all the same, so that it tells
which tools hide others rather than whether people's own words are understood.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from gateway.errors import InvalidRequestError
from gateway.index.texts import humanized
from gateway.index.tool_words import CREATE, DISCOVER, FILLERS, INSPECT, SUPPLY
from gateway.plugins.quality.requests import EvalRequest
from gateway.runtime.json_schema import as_object
from gateway.runtime.text import clean, one_line
from gateway.types import Entity

ACTIONS: Mapping[str, frozenset[str]] = {
    "find": DISCOVER,
    "create": CREATE | {"make", "insert", "write", "generate"},
    "remove": frozenset({"delete", "remove", "cancel", "clear", "drop", "destroy"}),
    "change": frozenset({"update", "edit", "modify", "set", "change", "rename", "patch", "put"}),
    "send": frozenset({"send", "post", "publish", "share", "upload", "notify"}),
    "read": INSPECT | SUPPLY,
}
MAX_CHARS = 200
_MAX_VALUE_CHARS = 40
_MAX_PARAMETERS = 2


@cache
def phrases() -> Mapping[str, Mapping[str, str]]:
    """Return the phrases of ``phrases.md`` by language and action."""
    text = Path(__file__).with_name("phrases.md").read_text(encoding="utf-8")
    lines = [line.strip("| ") for line in text.splitlines() if line.startswith("|")]
    heads, _, *rows = ([cell.strip() for cell in line.split("|")] for line in lines)
    return {row[0]: dict(zip(heads[1:], row[1:], strict=True)) for row in rows}


def offline_requests(
    tools: Iterable[Entity], *, languages: Sequence[str] = ("en",), typos: bool = True
) -> tuple[EvalRequest, ...]:
    """Return up to three requests for each tool and language.

    Args:
        tools: Those that should be found.
        languages: Of the phrases; the words of the tools stay as they are.
        typos: Whether the third request is made, a misspelt one.

    Returns:
        Requests of the styles ``words``, ``parameters`` and ``typos``. One that several tools could
        serve alike names its tool's server; if that does not help, any of these will do.

    Raises:
        InvalidRequestError: If a language has no phrases.
    """
    for language in {*languages} - phrases().keys():
        raise InvalidRequestError(f"no phrases are in {language!r}: {', '.join(phrases())}")
    tools = list(tools)
    return tuple(
        EvalRequest(
            text=text, wanted=(tuple(served),), source="rules", style=style, language=language
        )
        for language in languages
        for style, text, served in _told_apart(tools, language, typos=typos)
    )


def _told_apart(
    tools: Sequence[Entity], language: str, *, typos: bool
) -> Iterator[tuple[str, str, list[str]]]:
    """Yield style, text and the ids of the tools that should be found for it."""
    texts = {tool.id: _texts(tool, language, typos=typos) for tool in tools}
    counts = Counter(text for found in texts.values() for text in {*found.values()})
    merged: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for tool in tools:
        for style, text in texts[tool.id].items():
            named = text if counts[text] == 1 else f"{tool.server}: {text}"
            merged[style, named].append(tool.id)
    for (style, text), served in merged.items():
        yield style, text, served


def _texts(tool: Entity, language: str, *, typos: bool) -> dict[str, str]:
    """Return the requests for a tool by style, none with its name in it."""
    phrase = phrases()[language]
    words = humanized(tool.name).split()
    verb, action = _action(words)
    about = [word for word in words if word != verb and word not in FILLERS]
    parameters = [*_parameters(tool)]
    subject = " ".join(about or [name for name, _ in parameters] or [tool.server])
    plain = phrase[action].format(subject, verb=verb)
    details = [" ".join(pair).strip() for pair in parameters if not {*pair[0].split()} <= {*about}]
    styles = {"words": plain}
    if details:
        styles["parameters"] = phrase["with"].format(plain, **{"with": ", ".join(details)})
    usable = _usable(styles, tool) or _usable({"words": _described(tool)}, tool)
    if usable and typos:
        usable["typos"] = _misspelt([*usable.values()][-1])
    return usable


def _misspelt(text: str) -> str:
    """Return *text* with a swap of letters in its longest word, and one of the next lost."""
    first, second, *_ = (*sorted({*text.split()}, key=lambda word: (-len(word), word)), "", "")
    at = len(first) // 2
    text = text.replace(first, first[: at - 1] + first[at] + first[at - 1] + first[at + 1 :], 1)
    return text.replace(second, second[:1] + second[2:], 1) if len(second) > 3 else text


def _usable(styles: Mapping[str, str], tool: Entity) -> dict[str, str]:
    cleaned = {style: clean(text, limit=MAX_CHARS) for style, text in styles.items()}
    return {key: text for key, text in cleaned.items() if text and not holds_name(text, tool)}


def _action(words: Sequence[str]) -> tuple[str, str]:
    """Return the verb of a name, and which action it is: the first word where no verb is known."""
    for word in words:
        for action, verbs in ACTIONS.items():
            if word in verbs:
                return word, action
    return (words[0], "act") if words else ("", "find")


def _parameters(tool: Entity) -> Iterator[tuple[str, str]]:
    """Yield the words of the first required parameters, or else of those with given values, each
    with a value if the schema has one.
    """
    properties = as_object(tool.definition.input_schema.get("properties"))
    values = {str(name): _value(as_object(schema)) for name, schema in properties.items()}
    chosen = [name for name in tool.required if name in values]
    chosen = chosen or [name for name, value in values.items() if value]
    for name in chosen[:_MAX_PARAMETERS]:
        yield humanized(name), values[name]


def _value(schema: Mapping[str, object]) -> str:
    """Return a value that the schema gives, as a short text; empty if there is none."""
    for key in ("examples", "enum"):
        listed = schema.get(key)
        for value in listed if isinstance(listed, list | tuple) else ():
            if isinstance(value, str | int) and 0 < len(text := str(value)) <= _MAX_VALUE_CHARS:
                return text
    return ""


def _described(tool: Entity) -> str:
    """Return what the description says first, without the words of the name."""
    name = {*humanized(tool.name).split()}
    text = one_line(clean(tool.description, limit=MAX_CHARS), limit=MAX_CHARS)
    return " ".join(word for word in text.split() if name.isdisjoint(humanized(word).split()))


def holds_name(text: str, tool: Entity) -> bool:
    """Return whether *text* holds the words of the tool's name, one after the other."""
    # In scripts without spaces a letter may stand right before it.
    name = re.escape(humanized(tool.name))
    return bool(re.search(rf"(?<![a-z0-9]){name}(?![a-z0-9])", humanized(text)))
