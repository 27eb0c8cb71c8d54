"""Functions as tools: definitions from signatures, calls and results."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import sys
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from gateway.errors import ConfigError, UpstreamTimeoutError
from gateway.options import UpstreamOptions
from gateway.sources import FunctionSource
from gateway.types import Hints


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: int = 0


@dataclass
class Size:
    width: int


class Unserializable:
    """A type that JSON cannot express."""


@pytest.fixture
def source() -> FunctionSource:
    return FunctionSource()


def google(city: str, days: int = 3) -> str:
    """Tell the weather.

    For any city.

    Args:
        city: Where.
        days: How far ahead.
    """
    return city * days


def test_definition_of_a_function_has_the_texts_of_its_docstring(source: FunctionSource) -> None:
    definition = source.add(google)

    assert "Tell the weather.\n\nFor any city." == definition.description
    assert {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "days": {"type": "integer", "default": 3, "description": "How far ahead."},
        },
        "required": ["city"],
        "additionalProperties": False,
    } == definition.input_schema


def test_schemas_of_functions_omit_the_titles_that_pydantic_adds(source: FunctionSource) -> None:
    """Titles that repeat the name would cost tokens in each request."""

    def draw(
        mode: Literal["fill", "line"],
        at: Point,
        colour: Colour = Colour.RED,
        label: str | None = None,
        width: Annotated[int, Field(ge=1, description="In pixels.", title="Own title")] = 1,
        rest: Any = None,
    ) -> Point:
        """Draw."""
        return at

    schema = source.add(draw).input_schema

    assert {
        "mode": {"enum": ["fill", "line"], "type": "string"},
        "at": {"$ref": "#/$defs/Point"},
        "colour": {"$ref": "#/$defs/Colour", "default": "red"},
        "label": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "width": {"default": 1, "description": "In pixels.", "minimum": 1, "type": "integer"},
        "rest": {"default": None},
    } == schema["properties"]
    assert ["mode", "at"] == schema["required"]
    assert {
        "Colour": {"enum": ["red", "blue"], "type": "string"},
        "Point": {
            "properties": {"x": {"type": "integer"}, "y": {"default": 0, "type": "integer"}},
            "required": ["x"],
            "type": "object",
        },
    } == schema["$defs"]


def test_schema_omits_a_default_that_json_cannot_express(source: FunctionSource) -> None:

    def take(at: int = Unserializable()) -> None:  # type: ignore[assignment]
        ...

    assert {"at": {"type": "integer"}} == source.add(take).input_schema["properties"]


@pytest.mark.parametrize(
    ("annotation", "has_schema"),
    [
        (Point, True),
        (Size, True),
        (dict[str, int], True),
        (str, False),
        (list[int], False),
        (None, False),
        (Unserializable, False),
    ],
)
def test_only_object_results_have_an_output_schema(
    source: FunctionSource, annotation: Any, *, has_schema: bool
) -> None:
    """MCP requires an object at the root."""

    def give() -> None:
        """Give."""

    give.__annotations__["return"] = annotation
    schema = source.add(give).output_schema

    assert has_schema == (schema is not None)
    assert schema is None or "object" == schema["type"]


def refused_star(*items: int) -> None: ...


def refused_stars(**items: int) -> None: ...


def refused_position(item: int, /) -> None: ...


def refused_type(item: Unserializable) -> None: ...


def refused_name(item: NotThere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "mend"),
    [
        (refused_star, r"'refused_star' takes \*items: declare each argument"),
        (refused_stars, r"'refused_stars' takes \*\*items: declare each argument"),
        (refused_position, "'refused_position' takes 'item' by position only: remove the '/'"),
        (refused_type, "a parameter of 'refused_type' has a type that JSON cannot carry"),
        (refused_name, "the signature of 'refused_name' cannot be read"),
        (lambda: None, "has no name of its own: pass name="),
    ],
)
def test_unsupported_function_is_refused_with_a_remedy(
    source: FunctionSource, function: Any, mend: str
) -> None:
    with pytest.raises(ConfigError, match=mend):
        source.add(function)


async def test_parameters_of_a_function_may_have_any_name(source: FunctionSource) -> None:
    """Names reserved by Pydantic are allowed."""

    def odd(schema: int, copy: int, model_config: int, _x: int, p0: int = 5) -> list[int]:
        return [schema, copy, model_config, _x, p0]

    source.add(odd)
    arguments = {"schema": 1, "copy": 2, "model_config": 3, "_x": 4}

    assert [1, 2, 3, 4, 5] == (await source.call("odd", arguments, tool_id="t")).structured
    assert [1, 2, 3, 4, 6] == (
        await source.call("odd", {**arguments, "p0": 6}, tool_id="t")
    ).structured


async def test_arguments_are_coerced_to_the_declared_types(source: FunctionSource) -> None:
    got: list[object] = []

    def take(day: date, at: Point, colour: Colour = Colour.BLUE) -> None:
        got.extend((day, at, colour))

    source.add(take)
    answer = await source.call("take", {"day": "2026-11-21", "at": {"x": "3"}}, tool_id="t")

    assert [date(2026, 11, 21), Point(x=3), Colour.BLUE] == got
    assert ("null", None) == (answer.text, answer.structured)


async def test_invalid_arguments_are_described_without_their_values(source: FunctionSource) -> None:
    """The value of an argument may be a secret."""

    def take(at: Point) -> None: ...

    source.add(take)
    answer = await source.call("take", {"at": {"x": "s3cret"}, "more": 1}, tool_id="t")

    assert answer.is_error
    assert "at.x: Input should be a valid integer" in answer.text
    assert "more: Unexpected keyword argument" in answer.text
    assert "s3cret" not in answer.text


@pytest.mark.parametrize(
    ("given", "text", "structured"),
    [
        (Point(x=1), '{"x": 1, "y": 0}', {"x": 1, "y": 0}),
        (Size(width=2), '{"width": 2}', {"width": 2}),
        ([1, "é"], '[1, "é"]', [1, "é"]),
        (True, "true", True),
        (1.5, "1.5", 1.5),
        (date(2026, 1, 2), '"2026-01-02"', "2026-01-02"),
        ("plain", "plain", None),
    ],
)
async def test_result_of_a_function_becomes_text_and_structured_content(
    source: FunctionSource, given: object, text: str, structured: object
) -> None:
    source.add(lambda: given, name="give", description="Give.")

    answer = await source.call("give", {}, tool_id="t")

    assert (text, structured, False) == (answer.text, answer.structured, answer.is_error)


class AsyncCallable:
    """An object with an async ``__call__``."""

    async def __call__(self, name: str) -> str:
        return name


async def _named(name: str) -> str:
    return name


@pytest.mark.parametrize(
    "function",
    [AsyncCallable(), _named, functools.partial(_named), lambda name: _named(name)],  # noqa: PLW0108
)
async def test_async_callables_of_every_kind_are_awaited(
    source: FunctionSource, function: Any
) -> None:
    source.add(function, name="ask")

    assert "Bo" == (await source.call("ask", {"name": "Bo"}, tool_id="t")).text


BINARY = b"\x89PNG\xff"
BASE64 = b64encode(BINARY).decode()


class Picture(BaseModel):
    content: bytes


@dataclass
class File:
    content: bytes


def items() -> Iterator[object]:
    yield {"n": 1}
    yield BINARY


async def later_items() -> AsyncIterator[object]:
    for item in items():
        yield item


async def items_of_an_async_function() -> object:
    return items()


async def later_items_of_an_async_function() -> object:
    return later_items()


@pytest.mark.parametrize(
    "function",
    [
        items,
        later_items,
        items_of_an_async_function,
        later_items_of_an_async_function,
        functools.partial(later_items),
        lambda: (item for item in items()),
    ],
)
async def test_call_of_a_generator_returns_a_list_of_its_items(
    source: FunctionSource, function: Any
) -> None:
    source.add(function, name="give")

    answer = await source.call("give", {}, tool_id="t")

    assert ([{"n": 1}, BASE64], False) == (answer.structured, answer.is_error)


async def fails_later() -> AsyncIterator[int]:
    yield 1
    raise ValueError("no paper")


async def never_ends() -> AsyncIterator[int]:
    yield 1
    await asyncio.Event().wait()


async def test_endless_async_generator_times_out() -> None:
    source = FunctionSource(options=UpstreamOptions(call_timeout_s=0.05))
    source.add(never_ends)

    with pytest.raises(UpstreamTimeoutError, match="'never_ends' did not answer within"):
        await source.call("never_ends", {}, tool_id="t")


async def test_plain_generators_run_in_a_worker_thread(source: FunctionSource) -> None:

    def threads() -> Iterator[str]:
        yield threading.current_thread().name

    source.add(threads)
    answer = await source.call("threads", {}, tool_id="t")

    assert [threading.current_thread().name] != answer.structured


@pytest.mark.parametrize("given", [BINARY, bytearray(BINARY), memoryview(BINARY), b"\0\1"])
async def test_binary_bytes_become_an_embedded_resource(
    source: FunctionSource, given: bytes
) -> None:
    source.add(lambda: given, name="give")

    answer = await source.call("give", {}, tool_id="local/give")

    (block,) = answer.content
    resource = {
        "uri": "result:/local/give",
        "mimeType": "application/octet-stream",
        "blob": b64encode(given).decode(),
    }
    assert {"type": "resource", "resource": resource} == block.data
    assert not answer.is_error


async def test_bytes_that_are_utf_8_become_text(source: FunctionSource) -> None:
    source.add("é\n".encode, name="give", description="Give.")

    assert "é\n" == (await source.call("give", {}, tool_id="t")).text


@pytest.mark.parametrize(
    ("given", "structured"),
    [
        ({"a": [BINARY, (bytearray(BINARY),)]}, {"a": [BASE64, [BASE64]]}),
        ({"a": memoryview(BINARY), "b": b"text"}, {"a": BASE64, "b": "text"}),
        ({"a": items()}, {"a": [{"n": 1}, BASE64]}),
        ({BINARY}, [BASE64]),
        (Picture.model_construct(content=BINARY), {"content": BASE64}),
        ([File(content=BINARY), items()], [{"content": BASE64}, [{"n": 1}, BASE64]]),
    ],
)
async def test_binary_bytes_inside_a_result_become_base64(
    source: FunctionSource, given: object, structured: object
) -> None:
    source.add(lambda: given, name="give")

    answer = await source.call("give", {}, tool_id="t")

    assert (structured, False) == (answer.structured, answer.is_error)


def circle() -> list[object]:
    loop: list[object] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (circle, "RecursionError"),
        (lambda: {"rows": later_items()}, "an asynchronous value: await it before returning"),
    ],
)
async def test_result_that_json_cannot_express_is_an_error_result(
    source: FunctionSource, function: Any, text: str
) -> None:
    source.add(function, name="give")

    answer = await source.call("give", {}, tool_id="t")

    assert answer.is_error
    assert text in answer.text


async def test_plain_functions_run_in_a_worker_thread_with_the_callers_context(
    source: FunctionSource,
) -> None:
    """The context contains the current trace."""
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user")
    user.set("Ann")
    source.add(lambda: [user.get(), threading.current_thread().name], name="who")

    answer = await source.call("who", {}, tool_id="t")

    values: Any = answer.structured
    assert "Ann" == values[0]
    assert threading.current_thread().name != values[1]


async def test_slow_plain_function_times_out() -> None:
    """Only the waiting ends. The thread of the function continues."""
    free = threading.Event()
    source = FunctionSource(options=UpstreamOptions(call_timeout_s=0.05))
    source.add(free.wait, name="hang", description="Hang.")

    with pytest.raises(UpstreamTimeoutError, match="'hang' did not answer within"):
        await source.call("hang", {}, tool_id="t")
    free.set()


async def test_timeout_error_of_a_function_is_an_error_result(source: FunctionSource) -> None:

    async def late() -> None:
        raise TimeoutError("the printer")

    source.add(late)

    assert "TimeoutError: the printer" == (await source.call("late", {}, tool_id="t")).text


def exits() -> None:
    sys.exit(3)


async def exits_later() -> None:
    sys.exit(3)


async def waits_for_a_cancelled_job() -> None:
    job = asyncio.ensure_future(asyncio.Event().wait())
    job.cancel()
    await job


def takes_the_first_of_nothing() -> object:
    return next(iter(()))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (exits, "SystemExit: 3"),
        (exits_later, "SystemExit: 3"),
        (waits_for_a_cancelled_job, "CancelledError: "),
        (takes_the_first_of_nothing, "RuntimeError: the function raised StopIteration"),
        (fails_later, "ValueError: no paper"),
    ],
)
async def test_function_that_exits_or_raises_returns_an_error_result(
    source: FunctionSource, function: Any, text: str
) -> None:
    source.add(function)

    answer = await source.call(function.__name__, {}, tool_id="t")

    assert (text, True) == (answer.text, answer.is_error)


async def test_removed_tool_frees_its_name(source: FunctionSource) -> None:
    source.add(lambda: 1, name="n", hints=Hints(tags=("a",)))
    with pytest.raises(ConfigError, match="has a tool 'n' already"):
        source.add(lambda: 2, name="n")

    assert source.remove("n")
    assert not source.remove("n")
    source.add(lambda: 2, name="n")

    assert "2" == (await source.call("n", {}, tool_id="t")).text
