"""HTML forms for tool arguments: fields from a JSON Schema, and arguments from submitted fields.

Unsupported schemas become JSON fields. The call, not the form, checks arguments.
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
"""Kind of form field. *lines* is a list with one item per line."""
MAX_FIELDS = 60
"""Maximum number of form fields. Further arguments are entered as JSON."""
MAX_CHOICES = 200
REST = "rest"
"""Key of the last form field, for further arguments as one JSON object."""
_MAX_STEPS = 8
"""Maximum number of references and single alternatives followed to find a type."""
_TYPES: Mapping[str, Control] = {"string": "text", "number": "number", "integer": "integer"}
_BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """A field of the form, for one argument."""

    key: str
    name: str
    """Name of the argument. Empty for the field `REST`."""
    control: Control
    items: Control = "text"
    """Kind of each list item, if `control` is *lines*."""
    required: bool = False
    description: str = ""
    hints: tuple[str, ...] = ()
    choices: tuple[tuple[str, str], ...] = ()
    """Allowed values, each as (JSON, label)."""
    value: str = ""
    error: str = ""


def form_fields(schema: JsonObject) -> tuple[FormField, ...]:
    """Return a field for each property, required ones first, then `REST`."""
    properties, required = as_object(schema.get("properties")), {*as_texts(schema.get("required"))}
    names = sorted((str(name) for name in properties), key=lambda name: name not in required)
    fields = [
        _field(name, properties[name], schema, required=name in required)
        for name in names[:MAX_FIELDS]
    ]
    about = "Additional arguments as one JSON object. They take precedence over the fields above."
    return (*fields, FormField(key=REST, name="", control="json", description=about))


def _field(name: str, source: object, root: JsonObject, *, required: bool) -> FormField:
    schema = _resolve_schema(source, root)
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


def _resolve_schema(source: object, root: JsonObject) -> JsonObject:
    """Return the schema that declares the type, without references and null."""
    schema = dict(as_object(source))
    for _ in range(_MAX_STEPS):
        inner: object = None
        if "$ref" in schema:
            inner = resolve_pointer(schema.pop("$ref"), root)
        for key in ("anyOf", "oneOf", "allOf"):
            branches = schema.get(key) if inner is None else None
            usable = [branch for branch in as_objects(branches) if branch.get("type") != "null"]
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
    """Return the kind of field, the kind of its list items, and its choices."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [value for value in kind if value != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if kind == "boolean" and not isinstance(values, list):
        values = [True, False]
    if isinstance(values, list) and 0 < len(values) <= MAX_CHOICES:
        named = (
            (_dump(value), value if isinstance(value, str) else _dump(value)) for value in values
        )
        return "choice", "text", tuple(named)
    if kind == "array":
        items = _TYPES.get(str(_resolve_schema(schema.get("items"), root).get("type")))
        return ("lines", items, ()) if items else ("json", "text", ())
    return _TYPES.get(str(kind), "json"), "text", ()


def _hints(schema: JsonObject) -> tuple[str, ...]:
    examples = schema.get("examples")
    listed = examples[:3] if isinstance(examples, list) else []
    bounds = (f"{key} {_dump(schema[key])}" for key in ("default", *_BOUNDS) if key in schema)
    return (*bounds, *(f"for example {_dump(example)}" for example in listed))


def read_value(field: FormField, text: str) -> object:
    """Parse *text*, the submitted value of *field*.

    Raises:
        ValueError: If the text is invalid. The message names the requirement.
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
        message = "not a number" if control != "json" else f"invalid JSON: {error}"
        raise ValueError(message) from None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if control in ("number", "integer") and not is_number:
        raise ValueError("not a number")
    if control == "integer" and value != int(value):
        raise ValueError("not a whole number")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a JSON number")
    return value


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def read_form(
    fields: Iterable[FormField], form: Mapping[str, str]
) -> tuple[dict[str, object], tuple[FormField, ...]]:
    """Return the submitted arguments, without blank ones, and the fields with texts and faults.

    *form* is keyed by form field.
    """
    arguments: dict[str, object] = {}
    additional: object = {}
    filled = []
    for field in fields:
        text = form.get(field.key, "").replace("\r\n", "\n")
        error = ""
        try:
            if not text.strip():
                is_list = field.required and field.control == "lines"
                arguments |= {field.name: []} if is_list else {}
            elif field.key == REST:
                additional = read_value(field, text)
                error = "" if isinstance(additional, dict) else "not a JSON object"
            else:
                arguments[field.name] = read_value(field, text)
        except ValueError as fault:
            error = str(fault)
        filled.append(replace(field, value=text, error=error))
    arguments |= additional if isinstance(additional, dict) else {}
    return arguments, tuple(
        replace(field, error="required")
        if field.required and not field.error and field.name not in arguments
        else field
        for field in filled
    )


def with_faults(
    fields: Sequence[FormField], faults: Iterable[str]
) -> tuple[tuple[FormField, ...], tuple[str, ...]]:
    """Return the fields with their *faults*, and the faults that name no field."""
    names, others = {field.name for field in fields if field.name}, []
    by_name: dict[str, list[str]] = {}
    for fault in faults:
        place, _, detail = fault.partition(": ")
        name = place if place in names else place.partition(".")[0]
        if detail and name in names:
            by_name.setdefault(name, []).append(detail)
        else:
            others.append(fault)
    with_errors = (replace(field, error="; ".join(by_name.get(field.name, ()))) for field in fields)
    return tuple(with_errors), tuple(others)
