"""Texts of entities for the retrievers, and their documents for the graph. Pure.

Generated documents are *derived*; only the host's documents are *declared*, so a server cannot
declare anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice

from gateway.catalog.entries import INSTRUCTIONS, WORDS, flatten
from gateway.catalog.kinds import Field, row_of
from gateway.index.tool_graph import node_of
from gateway.index.tool_words import arguments, groups_of
from gateway.mcp.skills import FRONT
from gateway.options import GraphOptions
from gateway.runtime.json_schema import as_object, as_objects, as_text, as_texts, objects_in
from gateway.runtime.text import clean
from gateway.types import Entity
from graphs.lexical.analysis import split_identifier
from graphs.markdown.document import Document, Link, Section

EMBEDDED_CHARS = 900
"""Maximum length of an embedded text, in characters. Names and purposes come first; further details
would blur the vector."""
MAX_EXAMPLES = 50
_FIELD_CHARS = 300
_LISTS: Mapping[Field, int] = {"tools": 500, "skills": 500}
"""Maximum length, in characters, of the indexed lists of names. Other fields have the maximum
`_FIELD_CHARS`."""
_MAX_PARAMETERS = 40
_MAX_VALUES, _VALUES_CHARS = 50, 2000
"""Maximum number of indexed values of one argument, and maximum length of all indexed values of a
tool, in characters."""
_LINE_CHARS, _LINE_NAMES = 240, 12
"""Limits of a `tool_line`: characters of the description, and number of arguments or of result
fields."""
_OWN_FIELDS = frozenset({"name", "description", "tags"})
"""Front matter keys of a skill that are indexed as fields of their own."""


def embedding_text(entity: Entity) -> str:
    """Return the text of the entity that is embedded as a whole; never blank."""
    return _text(entity, row_of(entity.kind).embedded)


def name_text(entity: Entity) -> str:
    """Return the second embedded text, which emphasizes the entity's name; never blank.

    For a server, agent or skill it also contains the description, which has little weight in the
    whole text.
    """
    return _text(entity, row_of(entity.kind).leaning) or entity.name


def example_texts(entity: Entity) -> Sequence[str]:
    """Return the example requests that the host gives for the entity."""
    texts = (text[:EMBEDDED_CHARS].strip() for text in entity.hints.examples[:MAX_EXAMPLES])
    return [text for text in texts if text]


def lexical_fields(entity: Entity) -> Mapping[str, str]:
    """Return the entity's nonempty texts for the word index, keyed by field."""
    texts = {field: _FIELDS[field](entity) for field in row_of(entity.kind).indexed}
    return {field: text for field, text in texts.items() if text}


def humanized(name: str) -> str:
    """Split an identifier into words: ``create_salesInvoice`` -> ``create sales invoice``."""
    return " ".join(split_identifier(name)) or name


def _text(entity: Entity, fields: Iterable[Field]) -> str:
    parts = {field: _FIELDS[field](entity) for field in fields}
    texts = [
        part[: _LISTS.get(field, _FIELD_CHARS)].strip().rstrip(".") for field, part in parts.items()
    ]
    return ". ".join(dict.fromkeys(text for text in texts if text))[:EMBEDDED_CHARS]


def _parameters(entity: Entity) -> str:
    described = islice(arguments(entity), _MAX_PARAMETERS)
    return "\n".join(f"{name} {text}".rstrip() for name, text in described)


def _values(entity: Entity) -> str:
    schemas = objects_in(entity.definition.input_schema)
    listed = (as_texts(schema.get(key)) for schema in schemas for key in ("enum", "examples"))
    texts = chain.from_iterable(values[:_MAX_VALUES] for values in listed)
    return "\n".join(dict.fromkeys(texts))[:_VALUES_CHARS]


def _tools(entity: Entity) -> str:
    names = entity.definition.details.get("tools")
    return ", ".join(map(humanized, names)) if isinstance(names, list) else ""


def _tool_descriptions(entity: Entity) -> str:
    texts = entity.definition.details.get("tool_descriptions")
    return "\n".join(map(str, texts)) if isinstance(texts, list) else ""


def _capabilities(entity: Entity) -> str:
    """Return the capabilities in an agent card, a list of names or a mapping of names to flags."""
    listed = entity.metadata.get("capabilities")
    if isinstance(listed, Mapping):
        listed = [name for name, value in listed.items() if value]
    names = as_texts(listed)
    return f"Capabilities: {', '.join(map(humanized, names))}" if names else ""


def _skills(entity: Entity) -> str:
    skills = as_objects(entity.metadata.get("skills"))
    texts = (as_texts([skill.get("name"), skill.get("description")]) for skill in skills)
    return "\n".join(map(" ".join, texts))


def _metadata(entity: Entity) -> str:
    details = entity.definition.details
    front = details.get(FRONT)
    if isinstance(front, Mapping):
        return flatten({key: front[key] for key in front if key not in _OWN_FIELDS})
    return as_text(details.get(WORDS))


def _instructions(entity: Entity) -> str:
    return as_text(entity.metadata.get(INSTRUCTIONS))


def _hints(entity: Entity) -> str:
    hints = entity.hints
    return ", ".join((*hints.aliases, *hints.keywords, *hints.categories, *hints.tags))


_FIELDS: Mapping[Field, Callable[[Entity], str]] = {
    "name": lambda entity: humanized(entity.name),
    "title": lambda entity: entity.definition.title,
    "description": lambda entity: entity.hints.search_text or entity.description,
    "server": lambda entity: humanized(entity.server),
    "parameters": _parameters,
    "values": _values,
    "hints": _hints,
    "tools": _tools,
    "tool_descriptions": _tool_descriptions,
    "skills": _skills,
    "capabilities": _capabilities,
    "metadata": _metadata,
    "kind": lambda entity: row_of(entity.kind).word,
    "instructions": _instructions,
    "examples": lambda entity: "\n".join(entity.hints.examples),
}


def title_of(entity: Entity) -> str:
    """Return the title of the entity's document."""
    return entity.definition.title or humanized(entity.name)


def document_of(entity: Entity, options: GraphOptions) -> Document:
    """Return the Markdown-LD document of *entity*."""
    texts = lexical_fields(entity)
    hints = entity.hints
    return Document(
        id=node_of(entity.id),
        title=title_of(entity),
        summary=hints.search_text or entity.description,
        keywords=(entity.exposed_name, humanized(entity.server), *hints.keywords),
        tags=(*hints.tags, *hints.categories),
        aliases=hints.aliases,
        groups=tuple(Link(target=group) for group in groups_of(entity)) if options.groups else (),
        sections=tuple(
            Section(heading=name.capitalize(), level=2, text=texts[name])
            for name in ("parameters", "examples", "skills", "metadata", "tools")
            if texts.get(name)
        ),
        declared=False,
    )


def tool_line(entity: Entity) -> str:
    """Return a line for a chat model: id, description, required arguments and result fields."""
    reply = " ".join(clean(entity.description, limit=_LINE_CHARS).split())
    fields = as_object(as_object(entity.definition.output_schema).get("properties"))
    takes, gives = (", ".join(islice(names, _LINE_NAMES)) for names in (entity.required, fields))
    parts = (reply, takes and f"takes {takes}", gives and f"gives {gives}")
    return f"- {entity.id}: {'; '.join(filter(None, parts))}"
