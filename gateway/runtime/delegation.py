from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def call_of(
    part: str, method: Callable[Concatenate[Any, P], R]
) -> Callable[Concatenate[Any, P], R]:
    """Return a method that calls *method* of the attribute *part*."""

    @wraps(method)
    def call(whole: Any, /, *args: P.args, **named: P.kwargs) -> R:
        return method(getattr(whole, part), *args, **named)

    return call


def async_call_of(
    part: str, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Return a coroutine method that awaits *method* of the attribute *part*."""

    @wraps(method)
    async def call(whole: Any, /, *args: P.args, **named: P.kwargs) -> R:
        return await method(getattr(whole, part), *args, **named)

    return call
