"""Drop-in clients: the OpenAI client's own calls, with the catalog behind them.

* Same parameters, same return types, streaming or not, raw or not: the SDK's own code runs on top,
  and meets discovery where it sends its requests (`interceptor`).
* What is not a request to a model goes to the bare client, untouched.
* No state is held between two calls but for conversations that the service keeps
  (`conversation`): one client serves any number of threads, tasks and conversations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Generic, NoReturn, Self, TypeVar

from openai import AsyncOpenAI, OpenAI

from gateway.chat.events import Observer
from gateway.chat.interceptor import intercepted_post
from gateway.chat.loop import ClientContext
from gateway.chat.prepared import AsyncPrepared, Prepared, prepare
from gateway.discovery.approval import Approve
from gateway.errors import ConfigError, InvalidRequestError
from gateway.gateway import Gateway

C = TypeVar("C", OpenAI, AsyncOpenAI)
W = TypeVar("W")
_OWN_ATTRIBUTES = frozenset(
    {
        "__dict__",
        "__reduce_ex__",
        "_context",
        "_kind",
        "_other",
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


class _Wrapper(Generic[C]):
    """What both wrappers have in common: they look like the bare client."""

    openai: C
    """The bare client."""
    gateway: Gateway
    _context: ClientContext
    _kind: ClassVar[type]
    _other: ClassVar[str]
    """The wrapper of the other kind of client."""

    def __init__(
        self,
        openai: C,
        gateway: Gateway,
        *,
        observer: Observer | None = None,
        approve: Approve | None = None,
    ) -> None:
        if not isinstance(openai, self._kind):
            hint = f": wrap it by {self._other}" if isinstance(openai, OpenAI | AsyncOpenAI) else ""
            actual = f"{type(openai).__name__}{hint}"
            raise ConfigError(
                f"openai must be an openai.{self._kind.__name__} client, got {actual}"
            )
        context = ClientContext(gateway, observer=observer, approve=approve)
        _fill(self, openai, context)

    def with_options(self, **options: Any) -> Self:
        """Return a wrapper of the bare client with other options, over the same gateway."""
        bare = self.openai.with_options(**options)
        return _fill(object.__new__(type(self)), bare, self._context)

    copy = with_options

    def __copy__(self) -> Self:
        """Return another wrapper of the same client."""
        return _fill(object.__new__(type(self)), self.openai, self._context)

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

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        """Refuse to be pickled, as the bare client does."""
        raise TypeError(
            f"{type(self).__name__} holds connections and a catalog, and can be neither pickled "
            "nor copied in depth: make one where it is needed, or use with_options()"
        )


class AutoDiscoveryClient(_Wrapper[OpenAI], OpenAI):
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

    _kind = OpenAI
    _other = "AsyncAutoDiscoveryClient"

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
        bridge = self.gateway.bridge
        work = partial(prepare, self._context, messages, tools, model)
        return Prepared(bridge, bridge.call(work))


class AsyncAutoDiscoveryClient(_Wrapper[AsyncOpenAI], AsyncOpenAI):
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

    _kind = AsyncOpenAI
    _other = "AutoDiscoveryClient"

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
        return await prepare(self._context, messages, tools, model)


def _class_of(wrapper: object, bare: object) -> type:
    """Return the bare client's class, where that is another (Azure's): `isinstance` then holds for
    both.
    """
    own = type(wrapper)
    return own if issubclass(own, type(bare)) else type(bare)


def _fill(wrapper: W, openai: OpenAI | AsyncOpenAI, context: ClientContext) -> W:
    """Fill in *wrapper* without its base's constructor: it has no connection of its own."""
    post = intercepted_post(openai, context)
    own = {"openai": openai, "gateway": context.gateway, "_context": context, "post": post}
    for name, value in own.items():
        object.__setattr__(wrapper, name, value)
    return wrapper


def _refuse_socket(**_options: object) -> NoReturn:
    raise InvalidRequestError(
        "responses.connect is not wrapped, so the model would see no catalog: use "
        "responses.create, or the bare client as .openai"
    )
