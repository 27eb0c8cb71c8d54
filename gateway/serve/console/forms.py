"""A form for the arguments of a call, made of a JSON Schema, and its fields read again. Pure.

Schemas are a stranger's: what is not understood is typed as JSON, and nothing here judges whether
arguments fit the schema; the call does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gateway.runtime.json_schema import as_object, as_objects, as_text, as_texts, resolve_pointer
from gateway.types import JsonObject

Control = Literal["text", "number", "integer", "choice", "lines", "json"]
"""*text* may have several lines; *lines* is a list with an item in each line."""
MAX_FIELDS = 60
"""Further properties are typed as JSON."""
MAX_CHOICES = 200
REST = "rest"
"""The key of the last field: further arguments as one JSON object."""
_MAX_STEPS = 8
"""How many references and choices of one lead to the schema that says the type."""
_TYPES: Mapping[str, Control] = {"string": "text", "number": "number", "integer": "integer"}
_BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One argument."""

    key: str
    """The name of the field in the form."""
    name: str
    """The name of the argument; empty for `REST`."""
    control: Control
    items: Control = "text"
    """Of *lines*: what each line holds."""
    required: bool = False
    description: str = ""
    hints: tuple[str, ...] = ()
    """Default, examples and bounds, in words."""
    choices: tuple[tuple[str, str], ...] = ()
    """The values that it may have, as JSON, and what is shown for each."""
    value: str = ""
    """What was typed, or is there at first."""
    error: str = ""
    """What is wrong with it; empty if nothing is known to be."""


def form_fields(schema: JsonObject) -> tuple[FormField, ...]:
    """Return a field for each property of *schema*, required ones first, and `REST`."""
    properties, required = as_object(schema.get("properties")), {*as_texts(schema.get("required"))}
    names = sorted((str(name) for name in properties), key=lambda name: name not in required)
    fields = [
        _field(name, properties[name], schema, required=name in required)
        for name in names[:MAX_FIELDS]
    ]
    about = "What the fields above cannot say, as one JSON object; it comes before them."
    return (*fields, FormField(key=REST, name="", control="json", description=about))


def _field(name: str, source: object, root: JsonObject, *, required: bool) -> FormField:
    schema = _plain(source, root)
    control, items, choices = _control(schema, root)
    return FormField(
        key=f"arg.{name}",
        name=name,
        control=control,
        items=items,
        required=required,
        description=as_text(schema.get("description")),
        hints=_hints(schema),
        choices=choices,
        value=choices[0][0] if required and len(choices) == 1 else "",
    )


def _plain(source: object, root: JsonObject) -> JsonObject:
    """Return the schema that says the type: behind references, and without null beside it."""
    schema = dict(as_object(source))
    for _ in range(_MAX_STEPS):
        inner: object = None
        if "$ref" in schema:
            inner = resolve_pointer(schema.pop("$ref"), root)
        for key in ("anyOf", "oneOf", "allOf"):
            branches = schema.get(key) if inner is None else None
            usable = [each for each in as_objects(branches) if each.get("type") != "null"]
            if len(usable) == 1:
                inner = usable[0]
                del schema[key]
        if inner is None:
            break
        schema = {**as_object(inner), **schema}
    return schema


def _control(
    schema: JsonObject, root: JsonObject
) -> tuple[Control, Control, tuple[tuple[str, str], ...]]:
    """Return the control, that of items, and the choices."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [each for each in kind if each != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if kind == "boolean" and not isinstance(values, list):
        values = [True, False]
    if isinstance(values, list) and 0 < len(values) <= MAX_CHOICES:
        named = ((_dump(each), each if isinstance(each, str) else _dump(each)) for each in values)
        return "choice", "text", tuple(named)
    if kind == "array":
        items = _TYPES.get(str(_plain(schema.get("items"), root).get("type")))
        return ("lines", items, ()) if items else ("json", "text", ())
    return _TYPES.get(str(kind), "json"), "text", ()


def _hints(schema: JsonObject) -> tuple[str, ...]:
    examples = schema.get("examples")
    listed = examples[:3] if isinstance(examples, list) else []
    bounds = (f"{key} {_dump(schema[key])}" for key in ("default", *_BOUNDS) if key in schema)
    return (*bounds, *(f"for example {_dump(each)}" for each in listed))


def read_value(field: FormField, text: str) -> object:
    """Return the value that *text* is for *field*.

    Raises:
        ValueError: It is none; the message says what belongs there.
    """
    if field.control == "choice":
        if text not in dict(field.choices):
            raise ValueError("choose one of the values")
        return json.loads(text)
    if field.control != "lines":
        return _read_plain(field.control, text)
    values = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            values += [_read_plain(field.items, line)] if line.strip() else []
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return values


def _read_plain(control: Control, text: str) -> object:
    if control == "text":
        return text
    try:
        value = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        wanted = "this is no number" if control != "json" else f"this is no JSON: {error}"
        raise ValueError(wanted) from None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if control in ("number", "integer") and not is_number:
        raise ValueError("this is no number")
    if control == "integer" and value != int(value):
        raise ValueError("this is no whole number")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no JSON number")
    return value


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def read_form(
    fields: Iterable[FormField], form: Mapping[str, str]
) -> tuple[dict[str, object], tuple[FormField, ...]]:
    """Read the arguments that were typed. A field that is left blank is not sent.

    Args:
        fields: As `form_fields` made them.
        form: The texts by key.

    Returns:
        The arguments, and the fields with what was typed and what is wrong with it.
    """
    arguments: dict[str, object] = {}
    rest: object = {}
    filled = []
    for field in fields:
        text = form.get(field.key, "").replace("\r\n", "\n")
        error = ""
        try:
            if not text.strip():
                is_list = field.required and field.control == "lines"
                arguments |= {field.name: []} if is_list else {}
            elif field.key == REST:
                rest = read_value(field, text)
                error = "" if isinstance(rest, dict) else "this is no JSON object"
            else:
                arguments[field.name] = read_value(field, text)
        except ValueError as fault:
            error = str(fault)
        filled.append(replace(field, value=text, error=error))
    arguments |= rest if isinstance(rest, dict) else {}
    return arguments, tuple(
        replace(field, error="it is required")
        if field.required and not field.error and field.name not in arguments
        else field
        for field in filled
    )


def with_faults(
    fields: Sequence[FormField], faults: Iterable[str]
) -> tuple[tuple[FormField, ...], tuple[str, ...]]:
    """Put *faults* as `gateway.catalog.arguments` tells them beside the fields that they are about.

    Returns:
        The fields, and the faults that are about none of them.
    """
    names, others = {field.name for field in fields if field.name}, []
    by_name: dict[str, list[str]] = {}
    for fault in faults:
        place, _, detail = fault.partition(": ")
        name = place if place in names else place.partition(".")[0]
        if detail and name in names:
            by_name.setdefault(name, []).append(detail)
        else:
            others.append(fault)
    placed = (replace(each, error="; ".join(by_name.get(each.name, ()))) for each in fields)
    return tuple(placed), tuple(others)
