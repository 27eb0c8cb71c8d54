"""From a Python function to a tool definition and what checks its arguments.

The names come from the signature, the types from the annotations, the texts from the docstring
(Google, numpy or ReST). ``Annotated[..., Field(...)]`` wins over the docstring.
"""

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

_ANY: TypeAdapter[Any] = TypeAdapter(Any)
_REFUSED: Mapping[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "takes *{0}: declare each argument, or one list",
    inspect.Parameter.VAR_KEYWORD: "takes **{0}: declare each argument, or one dict",
    inspect.Parameter.POSITIONAL_ONLY: "takes {0!r} by position only: remove the '/'",
}


def read_bytes(raw: bytes | bytearray | memoryview) -> tuple[str, bool]:
    """Return the text of *raw*, else its base64; and whether it is a text.

    Text is UTF-8 without the character NUL.
    """
    content = bytes(raw)
    with suppress(UnicodeDecodeError):
        if b"\0" not in content:
            return content.decode(), True
    return b64encode(content).decode(), False


def to_json(answer: object) -> Any:
    """Return what a function answered as JSON can carry it."""
    plain, dump = _without_bytes(answer), partial(_ANY.dump_python, warnings=False)
    try:
        return dump(plain, mode="json", fallback=str)
    except UnicodeDecodeError:
        # Bytes in a model or a dataclass.
        return dump(_without_bytes(dump(plain)), mode="json", fallback=str)


def _without_bytes(value: object) -> object:
    """Return *value* with texts in place of bytes; see `read_bytes`."""
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
    """Return *arguments* coerced, with the defaults of what was left out.

    Raises:
        InvalidRequestError: They do not fit.
    """
    try:
        bound: dict[str, object] = arguments_of.validate_python(ArgsKwargs((), dict(arguments)))
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False)
        texts = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
        raise InvalidRequestError("; ".join(texts)) from error
    return bound


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
    arguments_of, schema = _arguments(tool_name, signature, texts)
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


def _arguments(
    tool_name: str, signature: inspect.Signature, texts: Mapping[str, str]
) -> tuple[TypeAdapter[Any], JsonObject]:
    """Return what checks the arguments of a function, and their JSON Schema."""

    def collect(**arguments: object) -> dict[str, object]:
        return arguments

    # Pydantic reads the signature of what it calls: here of what gives the arguments back.
    twin: Any = collect
    twin.__signature__ = signature.replace(return_annotation=signature.empty)
    twin.__annotations__ = {
        parameter.name: parameter.annotation
        for parameter in signature.parameters.values()
        if parameter.annotation is not parameter.empty
    }
    try:
        arguments_of: TypeAdapter[Any] = TypeAdapter(twin)
        schema = map_schemas(arguments_of.json_schema(schema_generator=_Schema), _drop_title)
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
        schema = TypeAdapter(annotation).json_schema(mode="serialization", schema_generator=_Schema)
    except PydanticUserError:
        return None
    return map_schemas(schema, _drop_title) if schema.get("type") == "object" else None
