"""From a Python function to a tool definition and a model that checks its arguments.

The signature says the names, the annotations the types, the docstring (Google, numpy or ReST) the
texts. ``Annotated[..., Field(...)]`` wins over the docstring.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import docstring_parser
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from gateway.errors import ConfigError
from gateway.options.validation import check_hints
from gateway.runtime.json_schema import mapped
from gateway.sources.protocol import Function, UnfitError
from gateway.types import Hints, JsonObject, ToolDefinition

_ANY: TypeAdapter[Any] = TypeAdapter(Any)
_REFUSED: Mapping[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "takes *{0}: declare each argument, or one list",
    inspect.Parameter.VAR_KEYWORD: "takes **{0}: declare each argument, or one dict",
    inspect.Parameter.POSITIONAL_ONLY: "takes {0!r} by position only: remove the '/'",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Callee:
    """A function that can be offered as a tool."""

    definition: ToolDefinition
    function: Function
    names: tuple[str, ...]
    """The parameters, in the order of the model's fields."""
    model: type[BaseModel]

    def bind(self, arguments: JsonObject) -> dict[str, object]:
        """Check and coerce *arguments*; what was left out keeps the function's default.

        Raises:
            UnfitError: They do not fit.
        """
        try:
            checked = self.model.model_validate(dict(arguments))
        except ValidationError as error:
            raise UnfitError(_faults(error)) from error
        return {
            name: getattr(checked, _field(index))
            for index, name in enumerate(self.names)
            if _field(index) in checked.model_fields_set
        }


def plain(answer: object) -> Any:
    """Give what a function answered as JSON can carry it."""
    return _ANY.dump_python(answer, mode="json", fallback=str, warnings=False)


def _faults(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
        for fault in error.errors(include_input=False, include_url=False)
    )


class _Schema(GenerateJsonSchema):
    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Say nothing: a default that JSON cannot write is simply not shown."""


def callee(
    function: Function, *, name: str | None, description: str | None, hints: Hints
) -> Callee:
    """Read *function*.

    Args:
        function: What to call.
        name: The tool's name; None is the function's own.
        description: None is the docstring's text.
        hints: Go into the definition.

    Raises:
        ConfigError: It cannot be called with a JSON object, has no name, or what is said of it is
            of another type.
    """
    if not callable(function):
        raise ConfigError(f"a tool is a function, got {type(function).__name__}")
    called = name or getattr(function, "__name__", "")
    if not called or called == "<lambda>":
        raise ConfigError(f"{function!r} has no name of its own: pass name=…")
    if not isinstance(called, str) or called.isspace():
        raise ConfigError(f"name must be a text that is not blank, got {called!r}")
    if not isinstance(description, str | None):
        raise ConfigError(f"description of {called!r} must be a text, got {description!r}")
    check_hints(called, hints)
    signature = _signature(function, called)
    told = docstring_parser.parse(inspect.getdoc(function) or "")
    texts = {param.arg_name.lstrip("*"): param.description or "" for param in told.params}
    model, schema = _model(called, signature, texts)
    prose = "\n\n".join(part for part in (told.short_description, told.long_description) if part)
    return Callee(
        definition=ToolDefinition(
            name=called,
            description=prose if description is None else description,
            input_schema=schema,
            output_schema=_output(signature.return_annotation),
            hints=hints,
        ),
        function=function,
        names=tuple(signature.parameters),
        model=model,
    )


def _signature(function: Function, called: str) -> inspect.Signature:
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, TypeError, ValueError) as error:
        raise ConfigError(
            f"the signature of {called!r} cannot be read ({error}): "
            "annotate with types that its module can name"
        ) from error
    for parameter in signature.parameters.values():
        refusal = _REFUSED.get(parameter.kind)
        if refusal:
            raise ConfigError(f"function {called!r} {refusal.format(parameter.name)}")
    return signature


def _model(
    called: str, signature: inspect.Signature, texts: dict[str, str]
) -> tuple[type[BaseModel], JsonObject]:
    # Fields are numbered and aliased: a parameter may be called `schema`, `copy` or `_x`.
    fields: dict[str, Any] = {
        _field(index): (_annotation(parameter), Field(default=_default(parameter), alias=name))
        for index, (name, parameter) in enumerate(signature.parameters.items())
    }
    try:
        model = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
        raw = model.model_json_schema(schema_generator=_Schema)
    except PydanticUserError as error:
        raise ConfigError(
            f"a parameter of {called!r} has a type that JSON cannot carry: {error.message}"
        ) from error
    schema = dict(mapped(raw, _untitled))
    schema["properties"] = {
        name: _described(value, texts.get(name, ""))
        for name, value in raw.get("properties", {}).items()
    }
    return model, mapped(schema, _untitled)


def _field(index: int) -> str:
    return f"p{index}"


def _annotation(parameter: inspect.Parameter) -> object:
    return Any if parameter.annotation is parameter.empty else parameter.annotation


def _default(parameter: inspect.Parameter) -> object:
    return ... if parameter.default is parameter.empty else parameter.default


def _described(schema: JsonObject, text: str) -> JsonObject:
    return {**schema, "description": text} if text and not schema.get("description") else schema


def _untitled(node: JsonObject) -> JsonObject:
    return {
        key: value for key, value in node.items() if not (key == "title" and isinstance(value, str))
    }


def _output(annotation: Any) -> JsonObject | None:
    if annotation is inspect.Signature.empty:
        return None
    try:
        schema = TypeAdapter(annotation).json_schema(mode="serialization", schema_generator=_Schema)
    except PydanticUserError:
        return None
    return mapped(schema, _untitled) if schema.get("type") == "object" else None
