"""From a Python function to a tool definition and a model that checks its arguments.

The names come from the signature, the types from the annotations, the texts from the docstring
(Google, numpy or ReST). ``Annotated[..., Field(...)]`` wins over the docstring.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import partial
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
from gateway.runtime.json_schema import map_schemas
from gateway.sources.protocol import Function, InvalidCallError, ToolFunction
from gateway.types import Hints, JsonObject, ToolDefinition

_ANY: TypeAdapter[Any] = TypeAdapter(Any)
_REFUSED: Mapping[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "takes *{0}: declare each argument, or one list",
    inspect.Parameter.VAR_KEYWORD: "takes **{0}: declare each argument, or one dict",
    inspect.Parameter.POSITIONAL_ONLY: "takes {0!r} by position only: remove the '/'",
}


def to_json(answer: object) -> Any:
    """Return what a function answered as JSON can carry it."""
    return _ANY.dump_python(answer, mode="json", fallback=str, warnings=False)


def _bind(model: type[BaseModel], names: Sequence[str], arguments: JsonObject) -> dict[str, object]:
    """Return *arguments* coerced; *names* are the parameters, in the order of the model's fields.

    Raises:
        InvalidCallError: They do not fit.
    """
    try:
        checked = model.model_validate(dict(arguments))
    except ValidationError as error:
        raise InvalidCallError(_describe_errors(error)) from error
    return {
        name: getattr(checked, _field(index))
        for index, name in enumerate(names)
        if _field(index) in checked.model_fields_set
    }


def _describe_errors(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(str(part) for part in entry['loc'])}: {entry['msg']}"
        for entry in error.errors(include_input=False, include_url=False)
    )


class _Schema(GenerateJsonSchema):
    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Ignore it: a default that JSON cannot write is simply not shown."""


def describe_function(
    function: Function, *, name: str | None, description: str | None, hints: Hints
) -> ToolFunction:
    """Read *function*.

    Args:
        function: What to call.
        name: The tool's name; None is the function's own.
        description: None is the docstring's text.
        hints: Go into the definition.

    Raises:
        ConfigError: It cannot be called with a JSON object, has no name, or its description or
            hints are of another type.
    """
    if not callable(function):
        raise ConfigError(f"a tool is a function, got {type(function).__name__}")
    tool_name = name or getattr(function, "__name__", "")
    if not tool_name or tool_name == "<lambda>":
        raise ConfigError(f"{function!r} has no name of its own: pass name=…")
    if not isinstance(tool_name, str) or tool_name.isspace():
        raise ConfigError(f"name must be a text that is not blank, got {tool_name!r}")
    if not isinstance(description, str | None):
        raise ConfigError(f"description of {tool_name!r} must be a text, got {description!r}")
    check_hints(tool_name, hints)
    signature = _signature(function, tool_name)
    doc = docstring_parser.parse(inspect.getdoc(function) or "")
    texts = {param.arg_name.lstrip("*"): param.description or "" for param in doc.params}
    model, schema = _model(tool_name, signature, texts)
    prose = "\n\n".join(part for part in (doc.short_description, doc.long_description) if part)
    return ToolFunction(
        definition=ToolDefinition(
            name=tool_name,
            description=prose if description is None else description,
            input_schema=schema,
            output_schema=_output_schema(signature.return_annotation),
            hints=hints,
        ),
        function=function,
        bind=partial(_bind, model, tuple(signature.parameters)),
    )


def _signature(function: Function, tool_name: str) -> inspect.Signature:
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, TypeError, ValueError) as error:
        raise ConfigError(
            f"the signature of {tool_name!r} cannot be read ({error}): "
            "annotate with types that its module can name"
        ) from error
    for parameter in signature.parameters.values():
        refusal = _REFUSED.get(parameter.kind)
        if refusal:
            raise ConfigError(f"function {tool_name!r} {refusal.format(parameter.name)}")
    return signature


def _model(
    tool_name: str, signature: inspect.Signature, texts: dict[str, str]
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
            f"a parameter of {tool_name!r} has a type that JSON cannot carry: {error.message}"
        ) from error
    schema = dict(map_schemas(raw, _drop_title))
    schema["properties"] = {
        name: _add_description(value, texts.get(name, ""))
        for name, value in raw.get("properties", {}).items()
    }
    return model, map_schemas(schema, _drop_title)


def _field(index: int) -> str:
    return f"p{index}"


def _annotation(parameter: inspect.Parameter) -> object:
    return Any if parameter.annotation is parameter.empty else parameter.annotation


def _default(parameter: inspect.Parameter) -> object:
    return ... if parameter.default is parameter.empty else parameter.default


def _add_description(schema: JsonObject, text: str) -> JsonObject:
    return {**schema, "description": text} if text and not schema.get("description") else schema


def _drop_title(node: JsonObject) -> JsonObject:
    return {
        key: value for key, value in node.items() if not (key == "title" and isinstance(value, str))
    }


def _output_schema(annotation: Any) -> JsonObject | None:
    if annotation is inspect.Signature.empty:
        return None
    try:
        schema = TypeAdapter(annotation).json_schema(mode="serialization", schema_generator=_Schema)
    except PydanticUserError:
        return None
    return map_schemas(schema, _drop_title) if schema.get("type") == "object" else None
