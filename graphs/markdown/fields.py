"""Fields of the front matter: known keys and typed values.

* Keys may be in snake_case or camelCase. An unknown key leaves a notice, unless it is private.
* A rule that cannot be read is skipped with a notice; the rest of the document is used.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from rapidfuzz import process
from rapidfuzz.distance import OSA

from graphs.errors import Code, Notice
from graphs.facts import vocabulary
from graphs.markdown.document import Edge, Link, Text
from graphs.markdown.frontmatter import Key, Scalar, Value
from graphs.parameters import KEY_SIMILARITY, SHOWN_KEY_CHARS

KEYS: Mapping[str, tuple[str, ...]] = {
    "id": ("id",),
    "url": ("canonical_url",),
    "title": ("title",),
    "summary": ("summary", "description"),
    "search_text": ("search_text",),
    "published": ("date_published",),
    "modified": ("date_modified",),
    "source_project": ("source_project",),
    "language": ("language",),
    "prefixes": ("rdf_prefixes",),
    "types": ("types", "rdf_types", "entry_type"),
    "tags": ("tags",),
    "keywords": ("keywords",),
    "aliases": ("aliases",),
    "authors": ("authors", "author"),
    "about": ("about",),
    "hints": ("entity_hints",),
    "groups": ("graph_groups",),
    "related": ("graph_related",),
    "next_steps": ("graph_next_steps",),
    "requires": ("graph_requires", "requires"),
    "consumes": ("inputs", "consumes"),
    "produces": ("outputs", "produces"),
    "entities": ("graph_entities",),
    "edges": ("graph_edges",),
    "forbidden": ("graph_forbid",),
    "texts": ("rdf_properties",),
}
"""Keys of the front matter for each field, keyed by field. `render` writes the first key."""
SINGLE_TEXTS = (
    "id", "url", "title", "summary", "search_text", "published", "modified", "source_project",
    "language",
)  # fmt: skip
TEXT_LISTS = ("types", "tags", "keywords", "aliases")
LINK_LISTS = (
    "authors", "about", "hints", "groups", "related", "next_steps", "requires", "consumes",
    "produces", "entities",
)  # fmt: skip
_KNOWN_KEYS = frozenset(key for keys in KEYS.values() for key in keys)
_PRIVATE_PREFIXES = ("x-", "x_")
"""Prefixes of keys that an author adds for private use."""
_PREDICATES: Mapping[str, str] = {
    "title": "name",
    "summary": "description",
    "tags": "keywords",
    "keywords": "keywords",
    "aliases": "altLabel",
}
"""Predicates of the fields whose texts may have several languages, keyed by field."""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_OBJECT = ("object", "object_id", "target", "target_id")


class Fields:
    """Front matter of one document, with access by field."""

    def __init__(self, front: Mapping[Key, Value], *, path: str) -> None:
        self._path = path
        self._by_key: defaultdict[str, list[Value]] = defaultdict(list)
        for key, value in front.items():
            self._by_key[_snake(key)].append(value)
        self.notices: dict[Notice, None] = {}
        """Notices of skipped rules, without duplicates, in order."""
        self.prefixes = dict(self._prefixes())
        """Namespaces that the document defines, keyed by prefix."""
        self._note_unknown(front)

    def one(self, name: str) -> str:
        """Return the text of the field *name*; empty if missing.

        Of texts in several languages, the one in the document's language is preferred.
        """
        chosen = self._texts_in_language(name)
        return chosen.value if chosen else ""

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the nonempty texts of the field *name* that have no language, in order."""
        return tuple(text.value for text in self._texts(name) if not text.language)

    def links(self, name: str) -> tuple[Link, ...]:
        """Return the links of the field *name*: texts, or mappings with ``id`` and ``label``."""
        links = (self._link(value, name) for value in self._values(name))
        return tuple(link for link in links if link and link.target)

    def edges(self, name: str) -> Iterator[Edge]:
        """Yield the edges of the field *name*. An empty subject means the document."""
        yield from filter(None, (self._edge(value, name) for value in self._values(name)))

    def properties(self) -> Iterator[Edge | Text]:
        """Yield the statements with other predicates. An empty subject means the document."""
        for predicate, value in self._properties():
            if isinstance(value, list):
                self._note_shape(value, "texts")
            elif target := self._target(value):
                yield Edge(subject="", predicate=predicate, object=target, line=_line(value))
            elif isinstance(value, dict):
                yield from self._literal(predicate, value)
            else:
                yield from self._text(value, predicate)

    def translations(self) -> Iterator[Text]:
        """Yield the texts that are not in the document's own language."""
        chosen = {self._texts_in_language(name) for name in _PREDICATES if name in SINGLE_TEXTS}
        texts = (text for name in _PREDICATES for text in self._texts(name))
        return (text for text in texts if text.language and text not in chosen)

    def language(self) -> str:
        """Return the document's language, or else the first language of the title."""
        tag = self.one("language")
        if tag:
            return self._tag(tag, self._all_values("language")[0])
        return next((text.language for text in self._texts("title")), "")

    def date(self, name: str) -> str:
        """Return the date of the field *name* as written; empty if it is missing."""
        text = self.one(name)
        if text and not vocabulary.is_date(text):
            detail = f"{text!r} is not a date: write one such as `2026-11-21`"
            self._note("date_invalid", detail, self._all_values(name)[0])
        return text

    def _note_unknown(self, front: Mapping[Key, Value]) -> None:
        described = {
            word for entry in self._values("texts") if isinstance(entry, dict) for word in entry
        }
        namespaces = vocabulary.NAMESPACES.keys() | self.prefixes.keys()
        for key in front:
            prefix, colon, _ = key.partition(":")
            is_own = _snake(key).startswith(_PRIVATE_PREFIXES) or key in described
            has_namespace = bool(colon) and (prefix in namespaces or vocabulary.is_iri(key))
            if not (_snake(key) in _KNOWN_KEYS or is_own or has_namespace):
                detail = f"unknown key {_with_suggestion(key)}. A key of your own begins with `x_`"
                self._note("key_unknown", detail, key)

    def _all_values(self, name: str) -> list[Value]:
        return [value for key in KEYS[name] for value in self._by_key.get(key, ())]

    def _values(self, name: str) -> list[Value]:
        return [item for value in self._all_values(name) for item in _as_list(value)]

    def _texts(self, name: str) -> Iterator[Text]:
        predicate = _PREDICATES.get(name, "")
        for value in self._all_values(name) if name in SINGLE_TEXTS else self._values(name):
            if isinstance(value, dict) and predicate:
                yield from self._translated(value, name)
            elif isinstance(value, Scalar):
                yield from self._text(value, predicate)
            else:
                self._note_shape(value, name)

    def _texts_in_language(self, name: str) -> Text | None:
        texts = list(self._texts(name))
        document_language = self.one("language") if name in _PREDICATES else ""
        return next(
            (text for text in texts if text.language == document_language), next(iter(texts), None)
        )

    def _translated(self, value: dict[Key, Value], name: str) -> Iterator[Text]:
        words = {key.lstrip("@"): item for key, item in value.items()}
        if "value" in words:
            language = words.get("language")
            tag = self._tag(language.text, value) if isinstance(language, Scalar) else ""
            pairs = [(tag, words["value"])]
        else:
            pairs = [(self._tag(key, item), item) for key, item in value.items()]
            pairs = [(tag, entry) for tag, item in pairs for entry in _as_list(item)]
        for tag, entry in pairs:
            if isinstance(entry, Scalar):
                yield from self._text(entry, _PREDICATES[name], tag)
            else:
                self._note_shape(entry, name)

    def _text(self, value: Scalar, predicate: str, language: str = "") -> Iterator[Text]:
        if text := value.text.strip():
            yield Text(predicate=predicate, value=text, language=language, line=value.line)

    def _tag(self, tag: str, value: Value) -> str:
        if vocabulary.is_language(tag):
            return tag
        self._note(
            "language_invalid", f"{tag!r} is not a language tag: write one such as `de`", value
        )
        return ""

    def _link(self, value: Value, name: str) -> Link | None:
        if isinstance(value, Scalar):
            return Link(target=value.text.strip(), line=value.line)
        if not isinstance(value, dict):
            self._note_shape(value, name)
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
            self._note("edge_invalid", detail, value)
            return None
        word = self._entry(value, ("predicate",), name)
        target = self._entry(value, _OBJECT, name)
        if not target or not (word or name == "forbidden"):
            self._note("edge_invalid", "an edge needs a `predicate` and an `object`", value)
            return None
        # Without a predicate, every predicate is forbidden.
        predicate = self._predicate(word, value) if word else ""
        if predicate is None:
            return None
        weight_text = self._entry(value, ("weight",), name) or "1"
        weight = vocabulary.read_weight(weight_text)
        if weight is None:
            detail = f"{weight_text!r} is not a weight: write a number above 0 and up to 1"
            self._note("weight_invalid", detail, value)
        return Edge(
            subject=self._entry(value, ("subject", "subject_id"), name),
            predicate=predicate,
            object=target,
            weight=weight or 1.0,
            line=_line(value),
        )

    def _predicate(self, word: str, value: Value) -> str | None:
        predicate = vocabulary.resolve(word, self.prefixes)
        if predicate is None:
            detail = f"unknown predicate {word!r}: use an IRI or {vocabulary.PREDICATE_NAMES}"
            self._note("predicate_unknown", detail, value)
        return predicate

    def _properties(self) -> Iterator[tuple[str, Value]]:
        for value in self._values("texts"):
            if not isinstance(value, dict):
                self._note_shape(value, "texts")
                continue
            row = self._entry(value, ("predicate",), "texts")
            pairs = [(row, value)] if row else [*value.items()]
            for word, item in pairs:
                predicate = self._predicate(word, value)
                yield from ((predicate, entry) for entry in _as_list(item) if predicate)

    def _target(self, value: Value) -> str:
        if isinstance(value, dict):
            return self._entry(value, ("id", *_OBJECT), "texts")
        return value.text if isinstance(value, Scalar) and vocabulary.is_iri(value.text) else ""

    def _literal(self, predicate: str, value: dict[Key, Value]) -> Iterator[Text]:
        text = self._entry(value, ("value", "@value"), "texts")
        tag = self._entry(value, ("language", "@language"), "texts")
        if not text:
            self._note("value_invalid", "a property needs a `value` or an `id`", value)
            return
        yield Text(
            predicate=predicate,
            value=text,
            language=self._tag(tag, value) if tag else "",
            datatype=self._entry(value, ("datatype", "type", "@type"), "texts"),
            line=_line(value),
        )

    def _prefixes(self) -> Iterator[tuple[str, str]]:
        for value in self._values("prefixes"):
            for name, item in value.items() if isinstance(value, dict) else [("", value)]:
                iri = item.text.strip() if isinstance(item, Scalar) else ""
                is_own = _PREFIX.fullmatch(name) and vocabulary.NAMESPACES.get(name, iri) == iri
                if is_own and vocabulary.is_iri(iri):
                    yield name, iri
                    continue
                detail = f"the prefix {name!r} is not new or has no IRI: write `ex: https://…`"
                self._note("prefix_invalid", detail, item)

    def _entry(self, value: dict[Key, Value], keys: tuple[str, ...], name: str) -> str:
        return next(iter(self._entries(value, keys, name)), "")

    def _entries(
        self, value: dict[Key, Value], keys: tuple[str, ...], name: str
    ) -> tuple[str, ...]:
        texts: list[str] = []
        items = (item for key, item in value.items() if _snake(key) in keys)
        for entry in (entry for item in items for entry in _as_list(item)):
            if isinstance(entry, Scalar):
                texts.append(entry.text.strip())
            else:
                self._note_shape(entry, name)
        return tuple(filter(None, texts))

    def _note_shape(self, value: Value, name: str) -> None:
        detail = f"{KEYS[name][0]!r} has a list or mapping where a text is expected: flatten it"
        self._note("value_invalid", detail, value)

    def _note(self, code: Code, detail: str, place: Value | Key) -> None:
        notice = Notice(path=self._path, line=_line(place), code=code, detail=detail)
        self.notices[notice] = None


def _snake(key: str) -> str:
    return _HUMP.sub("_", key).lower()


def _with_suggestion(key: str) -> str:
    """Quote an unknown key, and add the known key of which it is likely a misspelling."""
    shortened = key if len(key) <= SHOWN_KEY_CHARS else f"{key[:SHOWN_KEY_CHARS]}…"
    prefixed = (prefix + _snake(key) for prefix in ("graph_", "rdf_"))
    near = next((name for name in prefixed if name in _KNOWN_KEYS), "")
    if not near:
        scored = process.extractOne(
            _snake(key),
            sorted(_KNOWN_KEYS),
            scorer=OSA.normalized_similarity,
            score_cutoff=KEY_SIMILARITY,
        )
        near = scored[0] if scored else ""
    return f"{shortened!r} (did you mean {near!r}?)" if near else repr(shortened)


def _as_list(value: Value) -> list[Value]:
    return value if isinstance(value, list) else [value]


def _line(place: Value | Key) -> int:
    if isinstance(place, Scalar | Key):
        return place.line
    inside = place.values() if isinstance(place, dict) else place
    return next(filter(None, map(_line, inside)), 0)
