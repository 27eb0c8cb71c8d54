"""Methods of an object that delegate to one of its parts, with the signature and docstring of the
part's method.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def call_of(
    part: str, method: Callable[Concatenate[Any, P], R]
) -> Callable[Concatenate[Any, P], R]:
    """Return a method for a class whose attribute *part* has *method*. It calls *method* of that
    attribute.
    """

    @wraps(method)
    def call(whole: Any, /, *args: P.args, **named: P.kwargs) -> R:
        return method(getattr(whole, part), *args, **named)

    return call


def async_call_of(
    part: str, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Return a coroutine method for a class whose attribute *part* has *method*. It awaits *method*
    of that attribute.
    """

    @wraps(method)
    async def call(whole: Any, /, *args: P.args, **named: P.kwargs) -> R:
        return await method(getattr(whole, part), *args, **named)

    return call
