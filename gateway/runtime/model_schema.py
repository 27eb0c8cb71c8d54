"""Conversion of any JSON Schema to a schema that model services accept.

The result has no references, and only the keywords in the table of docs/what-the-agent-sees.md.
Descriptions contain the rules that these keywords cannot express.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import compress
from typing import Any, NamedTuple

from gateway.runtime import schema_keywords as words
from gateway.runtime.json_schema import as_object, as_texts, objects_in, resolve_pointer

NAMES = "\0names"
"""Key in an object of a converted schema: original property names, keyed by changed names."""
_HINTS = "\0hints"
_META = ("title", "description", "default", _HINTS)
_MAX_JSON_DEPTH = 128
_MAX_LEVELS = 30
"""Maximum nesting depth of a converted schema; real schemas are below 12."""
_MAX_REFERENCES = 200
"""Maximum number of references on the way to one schema."""
_MAX_SCHEMAS = 4000
"""Maximum number of schemas that one conversion reads, because references can multiply them."""
_MAX_NUMBER = 2**63
_MAX_HINT_CHARS = 160
Tree = dict[str, Any]
"""A JSON Schema, or its keywords."""


class _Place(NamedTuple):
    level: int = 0
    open: frozenset[str] = frozenset()
    """References that were followed on the way to this place."""

    def inner(self) -> _Place:
        return self._replace(level=self.level + 1)


class ModelSchema(NamedTuple):
    """A converted schema. Do not change it."""

    tree: Tree
    """Schema of type object, with `NAMES`."""
    lost: tuple[str, ...]
    """Rules of the original schema that cannot be converted.

    Formats are not included: an unsupported format is only mentioned in a description.
    """


def convert(schema: object) -> ModelSchema:
    """Convert *schema*, which may be any value, to a schema that model services accept.

    At the top, the properties of all choices (``anyOf``) are optional. Results are cached.
    """
    return _convert_text(json.dumps(_to_json(schema)))


@lru_cache(maxsize=256)
def _convert_text(text: str) -> ModelSchema:
    converter = _Converter(json.loads(text))
    try:
        return ModelSchema(converter.convert(converter.root, _Place()), tuple(converter.lost))
    except RecursionError:
        return ModelSchema({"type": "object", "properties": {}}, ("all parts",))


def _to_json(value: object, depth: int = _MAX_JSON_DEPTH) -> object:
    """Return *value* as JSON, without numbers that services cannot read and without deep parts."""
    if isinstance(value, Mapping):
        items = value.items() if depth else ()
        return {str(key): _to_json(item, depth - 1) for key, item in items if _is_readable(item)}
    if isinstance(value, list | tuple):
        return [_to_json(item, depth - 1) for item in value if depth and _is_readable(item)]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _is_readable(value: object) -> bool:
    return not isinstance(value, int | float) or -_MAX_NUMBER < value < _MAX_NUMBER


@dataclass(slots=True)
class _Converter:
    root: Any
    """Schema to convert, the target of its references."""
    lost: dict[str, None] = field(default_factory=dict)
    _read: int = 0
    _targets: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in objects_in(self.root):
            for key, mark in (("$anchor", "#"), ("$dynamicAnchor", "#"), ("$id", ""), ("id", "")):
                if isinstance(name := part.get(key), str):
                    names = {name.rstrip("#"), name.rstrip("#").split("/")[-1]}
                    self._targets |= {mark + name: part for name in names}

    def convert(self, schema: object, place: _Place) -> Tree:
        return self._build(*self._flatten(schema, place), is_top=not place.level)

    def _flatten(self, schema: object, place: _Place) -> tuple[Tree, _Place]:
        """Return the keywords of *schema*, joined with its references and conjunctions."""
        self._read += 1
        if (
            self._read > _MAX_SCHEMAS
            or place.level > _MAX_LEVELS
            or len(place.open) > _MAX_REFERENCES
        ):
            self.lost["deep parts"] = None
            return {}, place
        if not isinstance(schema, dict):
            return {}, place
        flat = self._keywords(schema)
        for key in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(reference := schema.get(key), str):
                place = self._follow(reference, flat, place)
        for part in words.items_of(schema.get("allOf")):
            inner, place = self._flatten(part, place)
            _join(flat, inner)
        dependent = as_object(schema.get("dependentSchemas") or schema.get("dependencies"))
        for part in (schema.get("then"), schema.get("else"), *dependent.values()):
            inner, place = self._flatten(part, place)
            _join(flat, {key: inner[key] for key in inner.keys() & {"properties"}})
        return flat, place

    def _keywords(self, schema: Tree) -> Tree:
        flat: Tree = {}
        for key, value in schema.items():
            is_valid = value is None or isinstance(value, words.TYPES_OF_VALUES.get(key, object))
            if (key in words.UNTOLD and value != {"type": "string"}) or not is_valid:
                self.lost[key] = None
            elif key in words.TYPES_OF_VALUES and (
                value is not None or key in {"const", "default"}
            ):
                flat[key] = value
        for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            # Draft 4 marks a bound as exclusive.
            if flat.get(exclusive) is True and bound in flat:
                flat[exclusive] = flat.pop(bound)
        if "examples" in flat:
            _hint(flat, f"such as {words.list_values(flat.pop('examples')[:3])}")
        # Draft 3 marks a property itself as required.
        required = flat.pop("required", None)
        required = [required] if isinstance(required, str) else required
        return {**flat, "required": required} if isinstance(required, list) else flat

    def _follow(self, reference: str, flat: Tree, place: _Place) -> _Place:
        """Join the target of *reference* into *flat*."""
        target = self._resolve(reference)
        if target is None:
            self.lost[f"reference {reference}"] = None
        elif reference in place.open or target is self.root:
            name = reference.rsplit("/", 1)[-1].lstrip("#") or "the parameters"
            _join(flat, {key: value for key, value in as_object(target).items() if key == "type"})
            _hint(flat, f"same form as {name}")
            self.lost[f"recursion of {name}"] = None
        else:
            inner, place = self._flatten(target, place._replace(open=place.open | {reference}))
            _join(flat, inner)
        return place

    def _resolve(self, reference: str) -> object:
        base, _, fragment = reference.partition("#")
        document = self._targets.get(base) if base else self.root
        target = self._targets.get(reference, document if not fragment else None)
        if target is None and fragment.startswith("/"):
            target = resolve_pointer(f"#{fragment}", document)
        return target if isinstance(target, dict | bool) else None

    def _build(self, flat: Tree, place: _Place, *, is_top: bool = False) -> Tree:
        choices = self._choices(flat, place)
        if choices and (is_top or flat.get("properties")):
            place = place._replace(open=place.open.union(*(inner.open for _, inner in choices)))
            self._join_choices(flat, [branch for branch, _ in choices])
        elif choices:
            return self._union(flat, choices)
        values = [flat["const"]] if "const" in flat else flat.get("enum", [])
        types = ["object"] if is_top else self._types(flat, values)
        kinds = [kind for kind in types if kind != "null"]
        if len(kinds) > 1 or (kinds and values and "null" in types):
            rules = {key: flat[key] for key in flat if key not in {"nullable", *_META}}
            return self._union(flat, [({**rules, "type": kind}, place) for kind in types], {})
        node: Tree = {"type": types if len(types) > 1 else types[0]} if types else {}
        if values and kinds in (["array"], ["object"]):
            _hint(flat, f"only {words.list_values(values)}")
        if kinds == ["array"]:
            node |= self._array(flat, place)
        elif kinds == ["object"]:
            node |= self._object(flat, place)
        elif kinds:
            node |= self._scalar(kinds[0], flat, values)
        return _with_meta(node, flat)

    def _choices(self, flat: Tree, place: _Place) -> list[tuple[Tree, _Place]]:
        branches = [*flat.pop("anyOf", ()), *flat.pop("oneOf", ())]
        is_schema = (branch is True or isinstance(branch, dict) for branch in branches)
        return [self._flatten(branch, place) for branch in compress(branches, is_schema)]

    def _union(
        self, flat: Tree, choices: list[tuple[Tree, _Place]], rules: Tree | None = None
    ) -> Tree:
        """Return a choice among *choices*, each joined with *rules*, by default those of *flat*."""
        branches: list[Tree] = []
        rules = {key: flat[key] for key in flat if key not in _META} if rules is None else rules
        for branch, place in choices:
            _join(branch, rules)
            built = self._build(branch, place)
            for part in built["anyOf"] if [*built] == ["anyOf"] else [built]:
                if part not in branches and not _add_values(branches, part):
                    branches.append(part)
        return _with_meta(branches[0] if len(branches) == 1 else {"anyOf": branches}, flat)

    def _join_choices(self, flat: Tree, choices: list[Tree]) -> None:
        """Add the properties of *choices* to the object *flat*, required if all require them."""
        joined: dict[str, Tree] = {}
        for branch in choices:
            if inner := self._choices(branch, _Place(level=_MAX_LEVELS // 2)):
                self._join_choices(branch, [part for part, _ in inner])
            for name, schema in branch.get("properties", {}).items():
                if name not in flat.get("properties", {}):
                    joined.setdefault(name, {"anyOf": []})["anyOf"].append(schema)
        needs = [as_texts(branch.get("required")) for branch in choices]
        shared = [name for name in needs[0] if all(name in names for names in needs)]
        _join(flat, {"properties": joined, "required": shared})
        more = [[name for name in names if name not in flat["required"]] for names in needs]
        if any(more):
            _hint(flat, f"needs {' or '.join(' + '.join(names) or 'no more' for names in more)}")

    def _types(self, flat: Tree, values: list[Any]) -> list[str]:
        """Return the JSON Schema types of a schema; empty for any value."""
        named, types = flat.get("type", []), list[str]()
        for name in [named] if isinstance(named, str) else named:
            types.append(words.TYPES.get(str(name).lower(), ""))
            if str(name).lower() not in words.TYPES:
                self.lost[f"type {name}"] = None
                _hint(flat, f"type {name}")
        types = [kind for kind in types if kind]
        if not types and not values:
            types = [kind for kind, keys in words.IMPLIED.items() if not keys.isdisjoint(flat)][:1]
        if types and flat.get("nullable"):
            types.append("null")
        fitting = [kind for kind in types if any(words.fits(value, kind) for value in values)]
        types = fitting or types or [*map(words.type_of, values)]
        kinds = (kind for kind in types if kind != "integer" or "number" not in types)
        return [*dict.fromkeys(kinds)]

    def _scalar(self, kind: str, flat: Tree, values: list[Any]) -> Tree:
        """Return the keywords for values of the type *kind*; *values* are the only ones, if any."""
        own = [value for value in values if words.fits(value, kind)] or values
        kept = [value for value in own if words.fits(value, kind) and value != ""]
        kept = [] if kind == "boolean" else kept
        told = [value for value in own if not any(value is other for other in kept)]
        if told and len({*map(str, told)} & {"True", "False"}) < 2:
            _hint(flat, f"{'also' if kept else 'only'} {words.list_values(told)}")
        node: Tree = {"enum": [*dict.fromkeys(kept)]} if kept else {}
        if kind == "string":
            return {**node, **self._text(flat)}
        return {**node, **words.bounds(flat)} if kind in {"integer", "number"} else node

    def _text(self, flat: Tree) -> Tree:
        node, pattern, form = (
            words.counts(flat, words.LENGTHS),
            flat.get("pattern"),
            flat.get("format"),
        )
        if pattern and words.is_portable(pattern):
            node["pattern"] = pattern
        elif pattern:
            self.lost["pattern"] = None
            _hint(flat, f"pattern {pattern}")
        if form in words.FORMATS:
            node["format"] = form
        elif form:
            _hint(flat, f"format {form}")
        return node

    def _array(self, flat: Tree, place: _Place) -> Tree:
        first, rest = flat.get("prefixItems", []), flat.get("items", True)
        if isinstance(rest, list):
            first, rest = rest, flat.get("additionalItems", True)
        node, place = words.counts(flat, words.SIZES), place.inner()
        if flat.get("uniqueItems"):
            node["uniqueItems"] = True
        if not first:
            return {"items": self.convert(rest, place), **node}
        if rest is False:
            node.setdefault("maxItems", len(first))
        kinds = [self.convert(schema, place).get("type", "any value") for schema in first]
        if any(kind != kinds[0] for kind in kinds):
            self.lost["positions"] = None
            _hint(flat, f"positions: {words.list_values(kinds)}")
        choices = [*first, rest] if isinstance(rest, dict) else first
        return {"items": self.convert({"anyOf": choices}, place), **node}

    def _object(self, flat: Tree, place: _Place) -> Tree:
        required, schemas = as_texts(flat.get("required")), {**flat.get("properties", {})}
        if flat.get("additionalProperties") is not False:
            schemas |= {name: True for name in required if name not in schemas}
        names: dict[str, str] = {}
        properties: Tree = {}
        for name, schema in schemas.items():
            if schema is False:
                continue
            shown = words.shown_name(name, {*schemas, *properties})
            names[shown] = name
            child = self.convert(
                {"type": schema} if isinstance(schema, str) else schema, place.inner()
            )
            properties[shown] = _with_meta(
                child, {} if shown == name else {_HINTS: [f"named {name}"]}
            )
            if as_object(schema).get("required") is True:
                required.append(name)
        node: Tree = {"properties": properties} if properties or not place.level else {}
        if changed := {shown: name for shown, name in names.items() if shown != name}:
            node[NAMES] = changed
        if needed := [shown for shown, name in names.items() if name in required]:
            node["required"] = needed
        return {**node, **self._extra(flat, place.inner()), **words.counts(flat, words.COUNTS)}

    def _extra(self, flat: Tree, place: _Place) -> Tree:
        extra, patterns = flat.get("additionalProperties"), flat.get("patternProperties", {})
        if patterns and extra is not None and extra is not True:
            extra = {"anyOf": [*patterns.values(), extra]}
        if isinstance(extra, dict):
            extra = self.convert(extra, place) or True
        return {} if extra is None else {"additionalProperties": extra}


def _add_values(branches: list[Tree], part: Tree) -> bool:
    """Add the values of *part* to the last of *branches*, if both only enumerate one type."""
    last = branches[-1] if branches else {}
    if not {*last} == {*part} == {"type", "enum"} or last["type"] != part["type"]:
        return False
    branches[-1] = {**last, "enum": [*dict.fromkeys([*last["enum"], *part["enum"]])]}
    return True


def _join(flat: Tree, other: Tree) -> None:
    """Add the rules of *other* to *flat*, whose own rules take precedence."""
    for key, value in other.items():
        own = flat.get(key)
        if key == "properties" and own:
            both = {name: {"allOf": [own[name], value[name]]} for name in own if name in value}
            flat[key] = {**own, **value, **both}
        elif key in {"anyOf", "oneOf", "required", _HINTS} and own:
            flat[key] = [*own, *value]
        else:
            flat.setdefault(key, value)


def _hint(flat: Tree, text: str) -> None:
    flat[_HINTS] = [*flat.get(_HINTS, ()), text[:_MAX_HINT_CHARS]]


def _with_meta(node: Tree, flat: Tree) -> Tree:
    """Return *node* with the title, description, hints and default of *flat*."""
    merged = {**node, **{key: flat[key] for key in _META[:3] if key in flat}}
    if hints := "; ".join(dict.fromkeys(flat.get(_HINTS, ()))):
        description = merged.get("description")
        merged["description"] = f"{description} ({hints})" if description else hints
    return merged
