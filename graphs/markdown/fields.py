"""The keys of the front matter, read into typed values.

* Keys may be in snake_case or camelCase. An unknown key leaves a notice, but for those that the
  author marks as their own.
* A rule that cannot be read is passed over and leaves a notice; the rest of the document stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from graphs.errors import Code, Notice
from graphs.facts.vocabulary import (
    NAMESPACES,
    is_date,
    is_iri,
    is_language,
    predicate_names,
    resolve,
)
from graphs.markdown.document import Edge, Link, Text
from graphs.markdown.frontmatter import Key, Scalar, Value
from graphs.markdown.keys import KEYS, KNOWN_KEYS, is_own, meant, snake

OPEN_PREDICATE = ""
"""Stands in a ban of every predicate."""

_TRANSLATED: Mapping[str, str] = MappingProxyType(
    {
        "title": "name",
        "summary": "description",
        "tags": "keywords",
        "keywords": "keywords",
        "aliases": "altLabel",
    }
)
"""The predicate of each field whose texts may stand in several languages."""
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_OBJECT = ("object", "object_id", "target", "target_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The front matter of one document, asked by field."""

    values: Mapping[str, list[Value]]
    """The values of each snake_case key."""
    prefixes: Mapping[str, str]
    """The document's own namespaces."""
    path: str
    """The document's path, for notices."""
    notices: dict[Notice, None]
    """Takes a notice of each rule that is passed over, once."""

    @classmethod
    def of(cls, front: Mapping[str, Value], *, path: str) -> Fields:
        """Sort the keys of *front*; both spellings of a key are one key."""
        values: dict[str, list[Value]] = {}
        for key, value in front.items():
            values.setdefault(snake(key), []).append(value)
        bare = cls(values=values, prefixes={}, path=path, notices={})
        prefixes = dict(bare._prefixes())
        fields = cls(values=values, prefixes=prefixes, path=path, notices=bare.notices)
        fields._unknown(front)
        return fields

    def one(self, name: str) -> str:
        """Return the text of a field, in the document's language if there are several."""
        chosen = self._chosen(name)
        return chosen.value if chosen else ""

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts of a field that state no language, in order, without empty ones."""
        return tuple(text.value for text in self._field_texts(name) if not text.language)

    def links(self, name: str) -> tuple[Link, ...]:
        """Return the links of a field: plain texts, or mappings with ``id`` and ``label``."""
        found = (self._link(value, name) for value in self._each(name))
        return tuple(link for link in found if link and link.target)

    def edges(self) -> tuple[Edge, ...]:
        """Return the edges that the front matter states; an empty subject is the document."""
        return (
            *filter(None, (self._edge(value, "edges") for value in self._each("edges"))),
            *(
                Edge(subject="", predicate=predicate, object=target, line=_line(value))
                for predicate, value in self._properties()
                if (target := self._target(value))
            ),
        )

    def forbidden(self) -> tuple[Edge, ...]:
        """Return the edges that may not be derived; an empty predicate means every one."""
        found = (self._edge(entry, "forbidden") for entry in self._each("forbidden"))
        return tuple(filter(None, found))

    def other_texts(self) -> tuple[Text, ...]:
        """Return the texts in languages of their own, and those of further predicates."""
        chosen = {self._chosen(name) for name in _TRANSLATED if name in _SINGLE}
        texts = (text for name in _TRANSLATED for text in self._field_texts(name))
        translated = (text for text in texts if text.language and text not in chosen)
        return (*translated, *self._literals())

    def language(self) -> str:
        """Return the document's language; without one, the first language of the title."""
        tag = self.one("language")
        if tag:
            return self._tag(tag, self._all("language")[0])
        return next((text.language for text in self._field_texts("title")), "")

    def date(self, name: str) -> str:
        """Return the date of a field as it was written; empty if there is none."""
        text = self.one(name)
        if text and not is_date(text):
            detail = f"{text!r} is no date: write one such as `2026-11-21`"
            self._pass_over("date_invalid", detail, self._all(name)[0])
        return text

    def _unknown(self, front: Mapping[str, Value]) -> None:
        """Leave a notice of each key that is neither ours nor marked as the author's own."""
        described = {
            word for entry in self._each("texts") if isinstance(entry, dict) for word in entry
        }
        namespaces = NAMESPACES.keys() | self.prefixes.keys()
        for key in front:
            if snake(key) in KNOWN_KEYS or key in described or is_own(key, namespaces):
                continue
            detail = f"unknown key {meant(key)}. A key of your own begins with `x_`"
            line = key.line if isinstance(key, Key) else _line(front[key])
            notice = Notice(path=self.path, line=line, code="key_unknown", detail=detail)
            self.notices[notice] = None

    def _all(self, name: str) -> list[Value]:
        return [value for key in KEYS[name] for value in self.values.get(key, ())]

    def _each(self, name: str) -> list[Value]:
        return [
            item
            for value in self._all(name)
            for item in (value if isinstance(value, list) else [value])
        ]

    def _field_texts(self, name: str) -> Iterator[Text]:
        """Yield the texts of a field; a mapping holds one for each language."""
        for value in self._each(name) if name not in _SINGLE else self._all(name):
            if isinstance(value, dict) and name in _TRANSLATED:
                yield from self._in_languages(value, name)
            elif isinstance(value, Scalar):
                yield from self._in_language(value, name, "")
            else:
                self._shape(value, name)

    def _chosen(self, name: str) -> Text | None:
        texts = list(self._field_texts(name))
        own = self.one("language") if name in _TRANSLATED else ""
        return next((text for text in texts if text.language == own), next(iter(texts), None))

    def _in_languages(self, value: dict[str, Value], name: str) -> Iterator[Text]:
        words = {key.lstrip("@"): item for key, item in value.items()}
        if "value" in words:
            language = words.get("language")
            tag = self._tag(language.text, value) if isinstance(language, Scalar) else ""
            yield from self._in_language(words["value"], name, tag)
            return
        for key, item in value.items():
            tag = self._tag(key, item)
            for entry in item if isinstance(item, list) else [item]:
                yield from self._in_language(entry, name, tag)

    def _in_language(self, value: Value, name: str, language: str) -> Iterator[Text]:
        if not isinstance(value, Scalar):
            self._shape(value, name)
        elif text := value.text.strip():
            predicate = _TRANSLATED.get(name, name)
            yield Text(predicate=predicate, value=text, language=language, line=value.line)

    def _tag(self, tag: str, value: Value) -> str:
        if is_language(tag):
            return tag
        detail = f"{tag!r} is no language tag: write one such as `de`"
        self._pass_over("language_invalid", detail, value)
        return ""

    def _link(self, value: Value, name: str) -> Link | None:
        if isinstance(value, Scalar):
            return Link(target=value.text.strip(), line=value.line)
        if not isinstance(value, dict):
            self._shape(value, name)
            return None
        label = self._entry(value, ("label", "name", "value"), name)
        target = self._entry(value, ("id", "target"), name)
        return Link(
            target=target or label,
            label=label if target else "",
            types=self._entries(value, ("type", "types"), name),
            same_as=self._entries(value, ("same_as",), name),
            line=_line(value),
        )

    def _edge(self, value: Value, name: str) -> Edge | None:
        if not isinstance(value, dict):
            detail = "an edge is a mapping: write `predicate:` and `object:`"
            self._pass_over("edge_invalid", detail, value)
            return None
        word = self._entry(value, ("predicate",), name)
        target = self._entry(value, _OBJECT, name)
        if not target or not (word or name == "forbidden"):
            self._pass_over("edge_invalid", "an edge needs a `predicate` and an `object`", value)
            return None
        predicate = self._predicate(word, value) if word else OPEN_PREDICATE
        if predicate is None:
            return None
        return Edge(
            subject=self._entry(value, ("subject", "subject_id"), name),
            predicate=predicate,
            object=target,
            weight=self._weight(value, name),
            line=_line(value),
        )

    def _weight(self, value: dict[str, Value], name: str) -> float:
        text = self._entry(value, ("weight",), name) or "1"
        try:
            weight = float(text)
        except ValueError:
            weight = 0.0
        if 0 < weight <= 1:
            return weight
        detail = f"{text!r} is no weight: write a number above 0 and up to 1"
        self._pass_over("weight_invalid", detail, value)
        return 1.0

    def _predicate(self, word: str, value: Value) -> str | None:
        predicate = resolve(word, self.prefixes)
        if predicate is None:
            detail = f"unknown predicate {word!r}: use an IRI or {predicate_names()}"
            self._pass_over("predicate_unknown", detail, value)
        return predicate

    def _properties(self) -> Iterator[tuple[str, Value]]:
        """Yield each predicate and value of the further properties."""
        for value in self._each("texts"):
            if not isinstance(value, dict):
                self._shape(value, "texts")
                continue
            row = self._entry(value, ("predicate",), "texts")
            pairs: dict[str, list[Value]] = {word: _listed(item) for word, item in value.items()}
            for word, items in ({row: [value]} if row else pairs).items():
                predicate = self._predicate(word, value)
                yield from ((predicate, item) for item in items if predicate)

    def _target(self, value: Value) -> str:
        if isinstance(value, dict):
            return self._entry(value, ("id", *_OBJECT), "texts")
        return value.text if isinstance(value, Scalar) and is_iri(value.text) else ""

    def _literals(self) -> Iterator[Text]:
        for predicate, value in self._properties():
            if isinstance(value, Scalar):
                if value.text.strip() and not is_iri(value.text):
                    yield Text(predicate=predicate, value=value.text.strip(), line=value.line)
            elif isinstance(value, list):
                self._shape(value, "texts")
            elif not self._target(value):
                yield from self._literal(predicate, value)

    def _literal(self, predicate: str, value: dict[str, Value]) -> Iterator[Text]:
        text = self._entry(value, ("value", "@value"), "texts")
        tag = self._entry(value, ("language", "@language"), "texts")
        if not text:
            self._pass_over("value_invalid", "a property needs a `value` or an `id`", value)
            return
        yield Text(
            predicate=predicate,
            value=text,
            language=self._tag(tag, value) if tag else "",
            datatype=self._entry(value, ("datatype", "type", "@type"), "texts"),
            line=_line(value),
        )

    def _prefixes(self) -> Iterator[tuple[str, str]]:
        for value in self._each("prefixes"):
            for name, item in value.items() if isinstance(value, dict) else [("", value)]:
                iri = item.text.strip() if isinstance(item, Scalar) else ""
                own = _PREFIX.fullmatch(name) and NAMESPACES.get(name, iri) == iri
                if own and is_iri(iri):
                    yield name, iri
                    continue
                detail = f"the prefix {name!r} is no new name for an IRI: write `ex: https://…`"
                self._pass_over("prefix_invalid", detail, item)

    def _entry(self, value: dict[str, Value], keys: tuple[str, ...], name: str) -> str:
        return next(iter(self._entries(value, keys, name)), "")

    def _entries(
        self, value: dict[str, Value], keys: tuple[str, ...], name: str
    ) -> tuple[str, ...]:
        found: list[str] = []
        for item in (item for key, item in value.items() if snake(key) in keys):
            for entry in _listed(item):
                if isinstance(entry, Scalar):
                    found.append(entry.text.strip())
                else:
                    self._shape(entry, name)
        return tuple(filter(None, found))

    def _shape(self, value: Value, name: str) -> None:
        key = KEYS[name][0]
        detail = f"{key!r} must be text, not a list or mapping"
        if name not in _SINGLE:
            detail = f"{key!r} holds a list or mapping that means nothing here: flatten it"
        self._pass_over("value_invalid", detail, value)

    def _pass_over(self, code: Code, detail: str, value: Value) -> None:
        notice = Notice(path=self.path, line=_line(value), code=code, detail=detail)
        self.notices[notice] = None


_SINGLE = frozenset(
    {"id", "url", "title", "summary", "published", "modified", "source_project", "language"}
)


def _listed(value: Value) -> list[Value]:
    return value if isinstance(value, list) else [value]


def _line(value: Value) -> int:
    if isinstance(value, Scalar):
        return value.line
    inside = value.values() if isinstance(value, dict) else value
    return next(filter(None, map(_line, inside)), 0)
