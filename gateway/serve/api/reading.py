"""A request -> checked values, with a cap on everything that a client may send."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request

from gateway.checks import at_least, check
from gateway.serve.api.problems import Fault, RefusedError

Adapter: TypeAlias = TypeAdapter[Any]


@cache
def adapter(type_: Any) -> Adapter:
    """Give what reads and writes a type: dear to make, so once a process."""
    return TypeAdapter(type_)


_TOLD = 20
"""Faults that one answer names."""
_NOT_JSON = "json_invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOptions:
    """What one request may cost."""

    max_body_bytes: int = 1024 * 1024
    max_depth: int = 32
    """Objects and lists within each other."""
    time_limit_s: float = 30.0
    """An answer that takes longer is given up."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        check(
            self,
            at_least("max_body_bytes", self.max_body_bytes, 1024),
            at_least("max_depth", self.max_depth, 4),
            at_least("time_limit_s", self.time_limit_s, 0.001),
        )


async def body(request: Request, takes: Adapter, options: ApiOptions) -> object:
    """Read the body as what *takes* takes.

    Raises:
        RefusedError: 415, 413, 400 for what is no JSON, 422 for JSON that does not fit.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if media != "application/json":
        raise RefusedError(415, "not_json", "send the body as application/json")
    raw = await _bytes(request, options.max_body_bytes)
    try:
        value: object = takes.validate_json(raw)
    except ValidationError as error:
        raise _misfit(error, "#/") from error
    _shallow(raw, options.max_depth)
    return value


async def _bytes(request: Request, most: int) -> bytes:
    declared = request.headers.get("content-length", "")
    parts, size = [], int(declared) if declared.isdecimal() else 0
    if size <= most:
        size = 0
        try:
            async for part in request.stream():
                size += len(part)
                if size > most:
                    break
                parts.append(part)
        except ClientDisconnect as error:
            raise RefusedError(400, "hung_up", "the client hung up") from error
    if size > most:
        raise RefusedError(413, "too_large", f"the body may take {most} bytes")
    return b"".join(parts)


def _shallow(raw: bytes, most: int) -> None:
    """Refuse what is nested too deep, and numbers that no JSON has."""
    if raw.count(b"{") + raw.count(b"[") <= most and b"N" not in raw and b"I" not in raw:
        return
    level: list[object] = [json.loads(raw)]
    for _ in range(most + 1):
        level = [inner for value in level for inner in _inside(value)]
        if any(isinstance(value, float) and not math.isfinite(value) for value in level):
            raise RefusedError(
                400, "not_json", "the body is not JSON: it holds a number without end"
            )
        if not level:
            return
    raise RefusedError(422, "too_deep", f"the body is nested deeper than {most}")


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def parameters(given: QueryParams, takes: Adapter, lists: frozenset[str]) -> object:
    """Read the parameters as what *takes* takes; those in *lists* may be repeated.

    Raises:
        RefusedError: 422.
    """
    told: dict[str, object] = {}
    for name in given:
        values = given.getlist(name)
        if name in lists:
            told[name] = values
        elif len(values) > 1:
            fault = Fault(where=f"?{name}", detail="it is given twice")
            raise RefusedError(422, "invalid_request", "the parameters do not fit", errors=[fault])
        else:
            told[name] = values[0]
    try:
        value: object = takes.validate_python(told)
    except ValidationError as error:
        raise _misfit(error, "?") from error
    return value


def _misfit(error: ValidationError, root: str) -> RefusedError:
    # Never what was given: it may hold what nobody should read in a log.
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    if faults[0]["type"] == _NOT_JSON:
        return RefusedError(400, "not_json", "the body is not JSON")
    told = [
        Fault(where=root + "/".join(map(_escaped, each["loc"])), detail=each["msg"])
        for each in faults[:_TOLD]
    ]
    what = "body does" if root == "#/" else "parameters do"
    return RefusedError(422, "invalid_request", f"the {what} not fit: see errors", errors=told)


def _escaped(step: int | str) -> str:
    """One step of a JSON pointer (RFC 6901), clipped."""
    return str(step)[:64].replace("~", "~0").replace("/", "~1")


@cache
def repeatable(type_: Any) -> frozenset[str]:
    """Give the names of the fields of *type_* that are lists."""
    fields: Mapping[str, Any] = adapter(type_).json_schema()["properties"]
    return frozenset(name for name, each in fields.items() if each.get("type") == "array")
