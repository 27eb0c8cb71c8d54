"""Drop-in clients: the OpenAI client's own calls, with the catalog behind them.

* Same parameters, same return types, streaming or not, raw or not: the SDK's own code runs on top,
  and meets discovery where it sends its requests (`interceptor`).
* What is not a request to a model goes to the bare client, untouched.
* No state is held between two calls but for conversations that the service keeps
  (`conversation`): one client serves any number of threads, tasks and conversations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from openai import AsyncOpenAI, OpenAI

from gateway.chat.events import Observer
from gateway.chat.interceptor import PostInterceptor
from gateway.chat.loop import ClientContext
from gateway.chat.prepared import AsyncPrepared, Prepared, prepare, to_body
from gateway.chat.transports import AsyncTransport, BlockingTransport, run_blocking
from gateway.discovery.approval import Approve
from gateway.errors import ConfigError, InvalidRequestError
from gateway.gateway import Gateway

W = TypeVar("W")
_OWN_ATTRIBUTES = frozenset(
    {
        "__dict__",
        "__reduce_ex__",
        "_context",
        "beta",
        "chat",
        "copy",
        "gateway",
        "openai",
        "post",
        "prepare",
        "responses",
        "with_options",
        "with_raw_response",
        "with_streaming_response",
    }
)
"""Attributes of the wrapper; all others are the bare client's. The SDK builds ``chat`` and its like
for the client on which they are looked up, and sends with that client's ``post``."""


class _Wrapper:
    """What both wrappers have in common: they look like the bare client."""

    _context: ClientContext

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute: a few are the wrapper's own, all others the bare client's."""
        if name not in _OWN_ATTRIBUTES:
            bare = object.__getattribute__(self, "openai")
            return _class_of(self, bare) if name == "__class__" else getattr(bare, name)
        value = object.__getattribute__(self, name)
        if name == "responses":
            # Discovery would not see what a socket asks for.
            vars(value)["connect"] = _refuse_socket
        return value

    def __setattr__(self, name: str, value: object) -> None:
        """Set it on the bare client, which reads it."""
        setattr(object.__getattribute__(self, "openai"), name, value)

    def __copy__(self) -> Self:
        """Return another wrapper of the same client."""
        return _wrapped(type(self), object.__getattribute__(self, "openai"), self._context)

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        """Refuse to be pickled, as the bare client does."""
        raise TypeError(
            f"{type(self).__name__} holds connections and a catalog, and can be neither pickled "
            "nor copied in depth: make one where it is needed, or use with_options()"
        )


class AutoDiscoveryClient(_Wrapper, OpenAI):
    """An `openai.OpenAI` whose models search and call the gateway's tools.

    Args:
        openai: The client that asks the model, of any subclass and for any server that speaks
            the wire format. It is used, not copied.
        gateway: The catalog; it may be shared.
        observer: Called with what happens in each conversation.
        approve: Asked before a tool runs that may destroy something (`ChatOptions.confirm`);
            only ``True`` is a yes.

    Raises:
        ConfigError: If one of the two is something else.
    """

    openai: OpenAI
    """The bare client."""
    gateway: Gateway

    def __init__(
        self,
        openai: OpenAI,
        gateway: Gateway,
        *,
        observer: Observer | None = None,
        approve: Approve | None = None,
    ) -> None:
        _check(openai, OpenAI, "AsyncAutoDiscoveryClient")
        _wrap(self, openai, ClientContext.create(gateway, observer=observer, approve=approve))

    def __enter__(self) -> Self:
        """Open the bare client."""
        self.openai.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the bare client; the gateway stays open."""
        self.openai.__exit__(kind, error, trace)

    def prepare(
        self,
        messages: Iterable[Any] | Mapping[str, Any],
        tools: Iterable[Any] | None = None,
        *,
        model: str = "",
    ) -> Prepared:
        """Prepare one turn of a loop of the host's own; see `Prepared`.

        Args:
            messages: The conversation; or a whole request as JSON, in either format.
            tools: The host's own tools.
            model: The model that will be asked; "" if that is open.
        """
        body = to_body(messages, tools, model)
        return Prepared(self.gateway.bridge, partial(prepare, self._context, body))

    def with_options(self, **options: Any) -> Self:
        """Return a wrapper around `openai.OpenAI.with_options`, over the same gateway."""
        return _wrapped(type(self), self.openai.with_options(**options), self._context)

    copy = with_options


class AsyncAutoDiscoveryClient(_Wrapper, AsyncOpenAI):
    """An `openai.AsyncOpenAI` whose models search and call the gateway's tools.

    Args:
        openai: The client that asks the model, on the loop that the caller runs.
        gateway: The catalog; it may be shared, also with blocking callers.
        observer: Called with what happens in each conversation.
        approve: Asked before a tool runs that may destroy something (`ChatOptions.confirm`);
            only ``True`` is a yes.

    Raises:
        ConfigError: If one of the two is something else.
    """

    openai: AsyncOpenAI
    """The bare client."""
    gateway: Gateway

    def __init__(
        self,
        openai: AsyncOpenAI,
        gateway: Gateway,
        *,
        observer: Observer | None = None,
        approve: Approve | None = None,
    ) -> None:
        _check(openai, AsyncOpenAI, "AutoDiscoveryClient")
        _wrap(self, openai, ClientContext.create(gateway, observer=observer, approve=approve))

    async def __aenter__(self) -> Self:
        """Open the bare client."""
        await self.openai.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the bare client; the gateway stays open."""
        await self.openai.__aexit__(kind, error, trace)

    async def prepare(
        self,
        messages: Iterable[Any] | Mapping[str, Any],
        tools: Iterable[Any] | None = None,
        *,
        model: str = "",
    ) -> AsyncPrepared:
        """Prepare one turn of a loop of the host's own; see `AsyncPrepared`.

        Args:
            messages: The conversation; or a whole request as JSON, in either format.
            tools: The host's own tools.
            model: The model that will be asked; "" if that is open.
        """
        return await prepare(self._context, to_body(messages, tools, model))

    def with_options(self, **options: Any) -> Self:
        """Return a wrapper around `openai.AsyncOpenAI.with_options`, over the same gateway."""
        return _wrapped(type(self), self.openai.with_options(**options), self._context)

    copy = with_options


def _class_of(wrapper: object, bare: object) -> type:
    """Return the bare client's class, where that is another (Azure's): `isinstance` then holds for
    both.
    """
    own = type(wrapper)
    return own if issubclass(own, type(bare)) else type(bare)


def _check(openai: object, expected: type, other: str) -> None:
    if not isinstance(openai, expected):
        hint = f": wrap it by {other}" if isinstance(openai, OpenAI | AsyncOpenAI) else ""
        actual = f"{type(openai).__name__}{hint}"
        raise ConfigError(f"openai must be an openai.{expected.__name__} client, got {actual}")


def _wrapped(kind: type[W], openai: OpenAI | AsyncOpenAI, context: ClientContext) -> W:
    wrapper = kind.__new__(kind)
    _wrap(wrapper, openai, context)
    return wrapper


def _wrap(wrapper: object, openai: OpenAI | AsyncOpenAI, context: ClientContext) -> None:
    """Fill in *wrapper* without its base's constructor: it has no connection of its own."""
    own = {"openai": openai, "gateway": context.gateway, "_context": context}
    for name, value in {**own, "post": _intercepted_post(openai, context)}.items():
        object.__setattr__(wrapper, name, value)


def _intercepted_post(openai: OpenAI | AsyncOpenAI, context: ClientContext) -> Callable[..., Any]:
    if isinstance(openai, AsyncOpenAI):
        return PostInterceptor(AsyncTransport(openai), context).post
    interceptor = PostInterceptor(BlockingTransport(openai, context.gateway.bridge), context)
    return lambda path, **arguments: run_blocking(interceptor.post(path, **arguments))


def _refuse_socket(**_options: object) -> NoReturn:
    raise InvalidRequestError(
        "responses.connect is not wrapped, so the model would see no catalog: use "
        "responses.create, or the bare client as .openai"
    )
