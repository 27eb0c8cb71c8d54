"""Tool definitions and argument validators from Python functions and their docstrings."""

from __future__ import annotations

import inspect
from base64 import b64encode
from collections.abc import AsyncIterable, Awaitable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import docstring_parser
from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import ArgsKwargs

from gateway.errors import ConfigError, InvalidRequestError
from gateway.options.validation import check_hints
from gateway.runtime.json_schema import map_schemas
from gateway.sources.protocol import Function, ToolFunction
from gateway.types import Hints, JsonObject, ToolDefinition

_ANY_ADAPTER: TypeAdapter[Any] = TypeAdapter(Any)
_UNSUPPORTED_PARAMETERS: Mapping[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "takes *{0}: declare each argument, or one list",
    inspect.Parameter.VAR_KEYWORD: "takes **{0}: declare each argument, or one dict",
    inspect.Parameter.POSITIONAL_ONLY: "takes {0!r} by position only: remove the '/'",
}


def read_bytes(raw: bytes | bytearray | memoryview) -> tuple[str, bool]:
    """Return *raw* as text if it is UTF-8 without NUL, else as base64; and True if it is text."""
    content = bytes(raw)
    with suppress(UnicodeDecodeError):
        if b"\0" not in content:
            return content.decode(), True
    return b64encode(content).decode(), False


def to_json(answer: object) -> Any:
    """Return the result of a function as JSON values."""
    plain, dump = _without_bytes(answer), partial(_ANY_ADAPTER.dump_python, warnings=False)
    try:
        return dump(plain, mode="json", fallback=str)
    except UnicodeDecodeError:
        # The result is a model or dataclass with bytes, which the first attempt rejected.
        return dump(_without_bytes(dump(plain)), mode="json", fallback=str)


def _without_bytes(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return read_bytes(value)[0]
    if isinstance(value, dict):
        return {key: _without_bytes(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | Iterator):
        return [*map(_without_bytes, value)]
    if isinstance(value, AsyncIterable | Awaitable):
        raise TypeError("the result contains an asynchronous value: await it before returning")
    return value


def _bind(arguments_of: TypeAdapter[Any], arguments: JsonObject) -> dict[str, object]:
    """Return *arguments* with the declared types, and with defaults for missing ones.

    Raises:
        InvalidRequestError: If the arguments are invalid.
    """
    try:
        bound: dict[str, object] = arguments_of.validate_python(ArgsKwargs((), dict(arguments)))
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False)
        texts = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
        raise InvalidRequestError("; ".join(texts)) from error
    return bound


class _QuietJsonSchema(GenerateJsonSchema):
    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Ignore defaults that JSON cannot express."""


def describe_function(
    function: Function, *, name: str | None, description: str | None, hints: Hints
) -> ToolFunction:
    """Return *function* with the definition of its tool.

    Args:
        function: Function that the tool calls.
        name: Name of the tool; None uses the function's name.
        description: Description; None uses the docstring's text.
        hints: Hints for the definition.

    Raises:
        ConfigError: If the function cannot be called with a JSON object or has no name, or if the
            description or the hints have the wrong type.
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
    signature = _read_signature(function, tool_name)
    doc = docstring_parser.parse(inspect.getdoc(function) or "")
    texts = {param.arg_name.lstrip("*"): param.description or "" for param in doc.params}
    arguments_of, schema = _read_arguments(tool_name, signature, texts)
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
        bind=partial(_bind, arguments_of),
    )


def _read_signature(function: Function, tool_name: str) -> inspect.Signature:
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, TypeError, ValueError) as error:
        raise ConfigError(
            f"the signature of {tool_name!r} cannot be read ({error}): "
            "annotate with types that its module can name"
        ) from error
    for parameter in signature.parameters.values():
        refusal = _UNSUPPORTED_PARAMETERS.get(parameter.kind)
        if refusal:
            raise ConfigError(f"function {tool_name!r} {refusal.format(parameter.name)}")
    return signature


def _read_arguments(
    tool_name: str, signature: inspect.Signature, texts: Mapping[str, str]
) -> tuple[TypeAdapter[Any], JsonObject]:

    def collect(**arguments: object) -> dict[str, object]:
        return arguments

    # Pydantic calls this function with the validated arguments.
    collector: Any = collect
    collector.__signature__ = signature.replace(return_annotation=signature.empty)
    collector.__annotations__ = {
        parameter.name: parameter.annotation
        for parameter in signature.parameters.values()
        if parameter.annotation is not parameter.empty
    }
    try:
        arguments_of: TypeAdapter[Any] = TypeAdapter(collector)
        schema = map_schemas(
            arguments_of.json_schema(schema_generator=_QuietJsonSchema), _drop_title
        )
    except PydanticUserError as error:
        raise ConfigError(
            f"a parameter of {tool_name!r} has a type that JSON cannot carry: {error.message}"
        ) from error
    properties: Any = schema.get("properties", {})
    described = {
        name: _add_description(value, texts.get(name, "")) for name, value in properties.items()
    }
    return arguments_of, {**schema, "properties": described}


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
        schema = TypeAdapter(annotation).json_schema(
            mode="serialization", schema_generator=_QuietJsonSchema
        )
    except PydanticUserError:
        return None
    return map_schemas(schema, _drop_title) if schema.get("type") == "object" else None
