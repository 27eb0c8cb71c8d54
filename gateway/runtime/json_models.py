"""Validation of JSON by pydantic. Messages never contain the value, which may be a secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError

from gateway.errors import ConfigError

T = TypeVar("T")

Text = Annotated[str, StringConstraints(min_length=1)]
"""A text that is not empty."""

_EXPECTED: Mapping[str, str] = {
    "string_type": "a text",
    "string_too_short": "a text that is not empty",
    "list_type": "a list",
    "tuple_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
    "int_type": "a whole number",
    "path_type": "a path",
    "bool_type": "true or false",
}


class StrictModel(BaseModel):
    """Base class of pydantic models that convert no types and refuse unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def read_value(kind: Any, raw: object, *, where: str) -> Any:
    """Return the JSON *raw* converted to *kind*, a type or its `TypeAdapter`.

    Raises:
        ConfigError: If the JSON does not match; the message begins with *where*.
    """
    adapter = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
    try:
        return adapter.validate_python(raw)
    except ValidationError as error:
        fault = validation_message(error)
        raise ConfigError(f"{where}: {fault}" if where else fault) from None


def validation_message(error: ValidationError) -> str:
    """Return position and problem of the first fault of *error*, without the value."""
    fault = error.errors(include_url=False, include_input=False)[0]
    kind, context = fault["type"], fault.get("ctx", {})
    path = _path(fault["loc"])
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        return f"{_path(fault['loc'][:-1], ': ')}unknown key {str(fault['loc'][-1])!r}"
    if kind == "missing":
        return f"{_path(fault['loc'][:-1], ': ')}{str(fault['loc'][-1])!r} is missing"
    expected = _EXPECTED.get(kind) or context.get("expected")
    if kind == "union_tag_invalid":
        expected = f"of the type {context['expected_tags']}"
    if expected:
        return f"{path or 'it'} must be {expected}"
    message = str(context["error"]) if "error" in context else fault["msg"]
    return f"{path}: {message}" if path else message


def _path(steps: Sequence[str | int], end: str = "") -> str:
    path = ""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    return f"{path}{end}" if path else ""
