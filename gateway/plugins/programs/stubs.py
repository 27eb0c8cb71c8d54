"""Python declarations of tools, generated from JSON Schemas for the type checker and the model.

    SendInvoiceResult = TypedDict("SendInvoiceResult", {"id": str, "total": NotRequired[float]})
    async def send_invoice(*, customer: str, amount: float = ...) -> SendInvoiceResult: ...

* Types that Python cannot express are ``Any``. Objects and lists in arguments have loose types,
  because a program builds them from untyped parts. Each call checks its arguments.
* Arguments outside the schema are a type error, unless the schema allows them.
* Invalid Python names are changed. If names of arguments are invalid, one object contains them all.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.runtime.json_schema import as_object, as_texts, resolve_pointer
from gateway.runtime.text import one_line
from gateway.types import JsonObject

MAX_DEPTH = 8
MAX_CLASSES = 60
"""Maximum number of classes in one declaration. Further objects are a plain ``dict``."""
_MAX_LITERALS = 40
_DOC_CHARS = 160
HEADER = """\
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict
"""
_SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_DICT = "dict[str, Any]"
_RESERVED = frozenset(
    {"Any", "Literal", "Mapping", "NotRequired", "Sequence", "TypedDict", *keyword.kwlist}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Declaration of a tool as a Python function."""

    name: str
    parameters: tuple[str, ...]
    is_object: bool
    """True if the arguments are one object, because their names are invalid in Python."""
    text: str
    """Python code of the function and its classes."""


def identifiers(names: Iterable[str], reserved: Iterable[str] = ()) -> dict[str, str]:
    """Return a unique Python identifier for each name, none of them *reserved*."""
    used, identifier_of = {*_RESERVED, *reserved}, dict[str, str]()
    for name in names:
        base = re.sub(r"\W", "_", name)
        base = base if base.isidentifier() and base not in _RESERVED else f"tool_{base}"
        chosen, number = base, 1
        while chosen in used:
            number += 1
            chosen = f"{base}_{number}"
        used.add(chosen)
        identifier_of[name] = chosen
    return identifier_of


def declare(
    name: str, input_schema: JsonObject, result: JsonObject | None, *, doc: str = ""
) -> Signature:
    """Return the declaration of one tool.

    Args:
        name: Name of the function.
        input_schema: Schema of the arguments.
        result: Schema of the result; None if unknown.
        doc: Description of the tool.
    """
    prefix = "".join(part.capitalize() for part in name.split("_"))
    properties = as_object(input_schema.get("properties"))
    is_object = not all(map(_is_argument, properties))
    arguments = "arguments: Mapping[str, Any], /"
    if not is_object:
        arguments = _arguments(input_schema, properties)
    results = _Writer(root=result or {}, is_input=False)
    returned = results.type_of(result, f"{prefix}Result")
    body = f'\n    """{_doc_text(doc)}"""\n' if doc else " ...\n"
    head = f"async def {name}({arguments}) -> {returned}:"
    return Signature(
        name=name,
        parameters=(*properties,),
        is_object=is_object,
        text=f"{''.join(results.classes.values())}{head}{body}",
    )


def _arguments(schema: JsonObject, properties: Mapping[str, object]) -> str:
    writer, required = _Writer(root=schema, is_input=True), {*as_texts(schema.get("required"))}
    parts = [
        f"{key}: {writer.type_of(value, key)}{'' if key in required else ' = ...'}"
        for key, value in properties.items()
    ]
    is_open = _is_open(schema) or not {"$ref", "patternProperties"}.isdisjoint(schema)
    return ", ".join([*(["*"] if parts else []), *parts, *(["**others: Any"] if is_open else [])])


def _is_open(schema: Mapping[str, object]) -> bool:
    extra = schema.get("additionalProperties")
    return extra is True or isinstance(extra, Mapping)


def _doc_text(doc: str) -> str:
    line = "".join(char if char.isprintable() else " " for char in one_line(doc, limit=_DOC_CHARS))
    return line.replace("\\", "\\\\").replace('"', "'")


def _is_argument(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and name != "others"


@dataclass(slots=True)
class _Writer:
    """Writer for the types in one schema, which collects the classes of its objects."""

    root: JsonObject
    is_input: bool
    classes: dict[str, str] = field(default_factory=dict)
    _open: set[str] = field(default_factory=set)
    """Schema references that are being resolved, so that recursive types end."""

    def type_of(self, schema: object, name: str, depth: int = MAX_DEPTH) -> str:
        """Return the Python type for *schema*. An object is a class called *name* or similar."""
        if not isinstance(schema, Mapping) or depth <= 0:
            return "Any"
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]), name, depth)
        if "const" in schema or "enum" in schema:
            return _literal([schema["const"]] if "const" in schema else schema["enum"])
        kinds, branches = schema.get("type"), schema.get("anyOf") or schema.get("oneOf")
        if isinstance(kinds, list):
            branches = [{**schema, "type": kind} for kind in kinds]
        if isinstance(branches, list):
            return self._union(branches, name, depth)
        writers = {"array": self._array, "object": self._object}
        if kinds in writers:
            return writers[kinds](schema, name, depth)
        return "Any" if "allOf" in schema else _SIMPLE.get(str(kinds), "Any")

    def _union(self, branches: Sequence[object], name: str, depth: int) -> str:
        types = [
            self.type_of(branch, f"{name}{number or ''}", depth - 1)
            for number, branch in enumerate(branches)
        ]
        return "Any" if "Any" in types or not types else " | ".join(dict.fromkeys(types))

    def _reference(self, pointer: str, name: str, depth: int) -> str:
        if pointer in self._open:
            return "Any"
        self._open.add(pointer)
        kind = self.type_of(resolve_pointer(pointer, self.root), name, depth - 1)
        self._open.discard(pointer)
        return kind

    def _array(self, schema: Mapping[str, object], name: str, depth: int) -> str:
        item = self.type_of(schema.get("items"), f"{name}Item", depth - 1)
        if not self.is_input:
            return f"list[{item}]"
        # Sequence accepts lists with other element types. But a text is also a sequence of texts.
        return "list[str]" if item == "str" or "Literal" in item else f"Sequence[{item}]"

    def _object(self, schema: Mapping[str, object], name: str, depth: int) -> str:
        properties = as_object(schema.get("properties"))
        if self.is_input:
            return "Mapping[str, Any]"
        if not properties and isinstance(extra := schema.get("additionalProperties"), Mapping):
            return f"dict[str, {self.type_of(extra, name, depth - 1)}]"
        if not properties or _is_open(schema) or len(self.classes) >= MAX_CLASSES:
            return _DICT
        class_name, number = name, 1
        while class_name in self.classes:
            number += 1
            class_name = f"{name}_{number}"
        self.classes[class_name] = ""
        required, rows = {*as_texts(schema.get("required"))}, []
        for key, value in properties.items():
            part = re.sub(r"\W", "", key.title())
            kind = self.type_of(value, f"{class_name}{part}", depth - 1)
            rows.append(f"{json.dumps(key)}: {kind if key in required else f'NotRequired[{kind}]'}")
        # The class moves after the classes that it needs. TypedDict is called, because keys may be
        # any
        # text.
        del self.classes[class_name]
        self.classes[class_name] = (
            f'{class_name} = TypedDict("{class_name}", {{{", ".join(rows)}}})\n'
        )
        return class_name


def _literal(values: object) -> str:
    choices = values if isinstance(values, list) else []
    simple = [value for value in choices if value is None or type(value) in {str, int, bool}]
    if not simple or len(simple) < len(choices) or len(simple) > _MAX_LITERALS:
        kinds = {type(value) for value in choices}
        return "str" if kinds == {str} else "int" if kinds == {int} else "Any"
    return f"Literal[{', '.join(map(repr, simple))}]"
