"""Operations of the API: routes, checks and the OpenAPI document are made from them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic import BaseModel

from gateway.serve.api.auth import ApiCaller


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """One request, after all checks."""

    caller: ApiCaller
    key: str = ""
    """The id in the path."""
    request: Any = None
    """The body or the parameters, as the operation's own model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A response with a status or headers of its own."""

    value: BaseModel | None = None
    status: int = 0
    """0 is the operation's own."""
    headers: Mapping[str, str] = field(default_factory=dict)


Handler: TypeAlias = Callable[[Any, ApiCall], Awaitable[BaseModel | Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of the API, and the method that answers it."""

    method: str
    path: str
    handler: Handler
    name: str
    summary: str
    response: type[BaseModel] | None
    """None has no body."""
    status: int = 200
    other_statuses: tuple[int, ...] = ()
    """Other statuses of success, with the same body."""
    right: str = ""
    """The scope that it needs; see `gateway.serve.api.auth`."""
    is_public: bool = False
    """Whether it needs no token."""
    parameters: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    refusals: tuple[int, ...] = ()
    """Statuses of its own problems, besides those that every operation may answer."""


def operation(
    method: str, path: str, *, response: type[BaseModel] | None, **details: Any
) -> Callable[[Handler], Operation]:
    """Make an operation of a method.

    Its name in the OpenAPI document is that of the method, its summary the first line of the
    docstring.

    Args:
        method: The HTTP method.
        path: With ``{id}`` for an entity's id.
        response: The model of the response; None has no body.
        details: More fields of `Operation`.
    """

    def decorate(handler: Handler) -> Operation:
        first, *others = handler.__name__.split("_")
        name = first + "".join(word.capitalize() for word in others)
        summary = (inspect.getdoc(handler) or "").partition("\n")[0]
        return Operation(
            method=method,
            path=path,
            handler=handler,
            name=name,
            summary=summary,
            response=response,
            **details,
        )

    return decorate


def operations_of(routes: object) -> Iterator[Operation]:
    """Yield the operations of the class of *routes*, in their order."""
    for value in vars(type(routes)).values():
        if isinstance(value, Operation):
            yield value
