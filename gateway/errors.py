"""All errors that the gateway raises, and functions that return errors as values.

    GatewayError
    + ConfigError             an option, a file or their combination is invalid
      + MissingExtraError     a feature needs a package that is not installed
      + ModelFileError        a file of the embedded model differs from the reviewed one
    + InvalidRequestError     an argument of a caller is not allowed
      + UnknownToolError      the tool does not exist; has similar names
      + InvalidArgumentsError the arguments do not match the tool's schema; has the schema
      + NotApprovedError      the host did not approve the call; nothing was sent
    + LimitExceededError      a policy allows no more calls for now; nothing was sent
    + UpstreamError           a server or a function could not be listed or called
      + UpstreamTimeoutError  the server or function did not answer in time
      + UpstreamFloodError    the server sent more than its limits allow and was disconnected
      + UpstreamUnavailableError  the circuit breaker of the server is open
      + CallerError           the server needs client capabilities that the caller lacks
      + SignInRequiredError   the user has to sign in to the server; has the address
    + StoreError              a store could not be read or written
    + EmbeddingError          an embedder failed or returned unusable vectors
    + LoopError               a conversation reached a limit
    + ClosedError             the gateway is closed

An error has its own class only if callers handle it differently. Messages name the problem and the
remedy, and never contain secrets, queries or argument values.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Literal, TypeVar

T = TypeVar("T")
UpstreamFault = Literal[
    "config", "connect", "authorization", "lost", "flood", "late", "refused", "unavailable"
]
"""Reason why a source failed. ``config``: its configuration is invalid. ``connect``: it could not
be reached. ``authorization``: it requires other credentials. ``lost``: the connection ended during
a request. ``flood``: it sent too much. ``late``: it did not answer in time. ``refused``: it
answered with an error or an invalid message. ``unavailable``: its circuit breaker is open."""


class GatewayError(Exception):
    """Base class of all errors that this package raises deliberately."""


class ConfigError(GatewayError):
    """An option, a file or their combination is invalid."""


class MissingExtraError(ConfigError):
    """A feature needs an optional package that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        self.extra = extra
        super().__init__(
            f'{feature} needs packages that are not installed: pip install "tool-gateway[{extra}]"'
        )


class InvalidRequestError(GatewayError, ValueError):
    """An argument of a caller is not allowed."""


class UnknownToolError(InvalidRequestError, LookupError):
    """The tool does not exist, or the caller may not see it."""

    def __init__(self, name: str, near: tuple[str, ...], *, unlisted: int = 0) -> None:
        self.name = name
        self.near = near
        self.unlisted = unlisted
        hint = f"; near names: {', '.join(near)}" if near else ""
        unlisted_note = (
            f" Sources that could not be listed, or not yet: {unlisted}." if unlisted else ""
        )
        super().__init__(
            f"unknown tool {name!r}{hint}. Search the catalog for the right one.{unlisted_note}"
        )


class InvalidArgumentsError(InvalidRequestError):
    """The arguments of a call do not match the tool's JSON Schema."""

    def __init__(self, tool: str, faults: tuple[str, ...], schema: Mapping[str, object]) -> None:
        self.tool = tool
        self.faults = faults
        self.schema = schema
        super().__init__(f"invalid arguments for {tool!r}: {'; '.join(faults)}")


class NotApprovedError(InvalidRequestError):
    """The host did not approve a call."""


class LimitExceededError(GatewayError):
    """A policy allows no more calls for now. The call was not sent."""

    def __init__(self, rule: str, *, retry_after_s: float) -> None:
        self.rule = rule
        self.retry_after_s = retry_after_s
        """Minimum number of seconds to wait before the next call."""
        super().__init__(
            f"the limit {rule!r} is reached: nothing was sent; try again in {ceil(retry_after_s)} s"
        )


class UpstreamError(GatewayError):
    """A source of tools failed.

    Attributes:
        server: Name of the source.
    """

    def __init__(
        self, server: str, detail: str, *, kind: UpstreamFault = "refused", sent: bool = True
    ) -> None:
        self.server = server
        self.detail = detail
        """Message of the error without the server's name."""
        self.kind: UpstreamFault = kind
        self.status = 0
        """HTTP status of the refusal; 0 if the source failed in another way."""
        self.sent = sent
        """False if the request was certainly not sent, so the tool did not run."""
        self.stderr: tuple[str, ...] = ()
        """Last lines that the server's program wrote to standard error: at most five, shortened,
        without control characters and secrets. They are for people, never for a model, because the
        server's author is not trusted."""
        super().__init__(f"{server!r}: {detail}")

    @property
    def with_stderr(self) -> str:
        """Message, followed by the last lines of standard error."""
        return "; it wrote: ".join((str(self), *filter(None, [" | ".join(self.stderr)])))


class UpstreamTimeoutError(UpstreamError):
    """A source of tools did not answer in time."""

    def __init__(self, server: str, detail: str, *, sent: bool = True) -> None:
        super().__init__(server, detail, kind="late", sent=sent)


class UpstreamFloodError(UpstreamError):
    """A server sent more than its limits allow and was disconnected."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(server, f"was disconnected: it {why}", kind="flood")


class UpstreamUnavailableError(UpstreamError):
    """A server failed too often in a row, so its circuit breaker is open. Nothing was sent."""

    def __init__(self, server: str, detail: str, *, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        """Number of seconds until the server can be used again."""
        super().__init__(server, detail, kind="unavailable", sent=False)


class CallerError(UpstreamError):
    """A server asked its caller for something that the caller cannot provide, so the call
    ended.
    """

    def __init__(self, server: str, detail: str, *, needed: Mapping[str, object]) -> None:
        self.needed = needed
        """Client capabilities that the caller lacks; empty if the call ended for another reason."""
        super().__init__(server, detail)


class SignInRequiredError(UpstreamError):
    """A server needs credentials of each user, and this user has not signed in."""

    def __init__(self, server: str, address: str, *, previous: str = "", fault: str = "") -> None:
        self.address = address
        """URL at which the user signs in, with the token that the user has for the gateway. Empty
        if the host has not configured a public URL."""
        self.previous = previous
        """Id of the sign-in that the server refused; empty for a first sign-in."""
        remedy = (
            f"sign in at {address} and call again"
            if address
            else "no sign-in is offered until the host sets public_url (GATEWAY_PUBLIC_URL)"
        )
        detail = f"needs a sign-in of your own{fault and f' ({fault})'}: {remedy}"
        super().__init__(server, detail, kind="authorization", sent=False)


class StoreError(GatewayError):
    """A store could not be read or written."""

    def __init__(self, detail: str, *, rebuilt: bool = False) -> None:
        self.rebuilt = rebuilt
        """True if the unreadable store was replaced by an empty one, so the next access works."""
        super().__init__(detail)


class EmbeddingError(GatewayError):
    """An embedder failed or returned unusable vectors."""


class ModelFileError(ConfigError):
    """A file of the embedded model differs from the reviewed one."""


class LoopError(GatewayError):
    """A conversation reached a limit of `ChatOptions` before the model finished."""

    def __init__(
        self,
        turns: int,
        *,
        limit: str = "max_turns",
        messages: tuple[Mapping[str, object], ...] = (),
        accounting: object = None,
    ) -> None:
        self.turns = turns
        self.limit = limit
        """Name of the option of `ChatOptions` that limits the conversation."""
        self.messages = messages
        """Messages added to the conversation: the model's calls of meta-tools, each with its
        result. Append them to the host's messages to continue the conversation."""
        self.accounting = accounting
        """Turns, calls and tokens of the conversation; `gateway.accounting_of` returns them with
        types."""
        super().__init__(
            f"the model was still calling tools after {turns} turns; "
            f"raise ChatOptions.{limit} or give the model a clearer task"
        )


class ClosedError(GatewayError):
    """The gateway is closed and can no longer be used."""


def missing_plugin(user: str, name: str, otherwise: str = "") -> ConfigError:
    """Return an error for a missing plugin.

    Args:
        user: Feature that needs the plugin, for the message.
        name: Name of the plugin.
        otherwise: Another remedy than loading the plugin, for the end of the message; empty if
            there is only one remedy.
    """
    return ConfigError(
        f"{user} needs the plugin {name!r}, which is not loaded: add it to Options.plugins, "
        f"GATEWAY_PLUGINS or 'plugins' of mcp.json{otherwise and f', or {otherwise}'}"
    )


def uninstalled_plugin(user: str, error: ModuleNotFoundError) -> str:
    """Return a message that the plugin in *error* is not installed; empty if *error* is about
    another module.

    Args:
        user: Feature that needs the plugin, for the message.
        error: Error of a failed import.
    """
    _, _, module = (error.name or "").partition("gateway.plugins.")
    name = module.partition(".")[0]
    advice = "which is not installed: install tool-gateway again"
    return f"{user} needs the plugin {name!r}, {advice}" if name else ""


@dataclass(frozen=True, slots=True)
class Failed:
    """An exception that the host's code raised, returned as a value."""

    error: BaseException

    @property
    def reason(self) -> str:
        """Message of a `GatewayError`; of other exceptions only the type, because their messages
        may contain a query or a secret.
        """
        is_ours = isinstance(self.error, GatewayError)
        return str(self.error) if is_ours else type(self.error).__name__


async def attempt(work: Awaitable[T]) -> T | Failed:
    """Await code of the host and return its exception as a value.

    Embedders, normalizers and tools may raise anything, but a search or a conversation has to go
    on. Only `attempt` and `attempt_call` catch all exceptions. ``SystemExit`` (raised by
    ``argparse``) and other ``BaseException`` classes (a panic in a Rust library) are returned too.
    ``CancelledError`` is returned if the host's code cancelled a task, and raised if the caller was
    cancelled. ``KeyboardInterrupt`` and ``GeneratorExit`` are always raised.
    """
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return Failed(error)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  (see above)
        return Failed(error)


def attempt_call(work: Callable[[], T]) -> T | Failed:
    """Call code of the host and return its exception as a value, as `attempt` does.

    ``CancelledError`` is returned too, because nothing is awaited.
    """
    try:
        return work()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  (see `attempt`)
        return Failed(error)


async def attempt_within(work: Awaitable[T], seconds: float, error: GatewayError) -> T | Failed:
    """Await *work* as `attempt` does, with a timeout. Return `Failed(error)` on timeout.

    Args:
        work: Cancelled on timeout. Work that it shares with other callers continues.
        seconds: Timeout, >= 0. Results that are available at once are returned even with 0.
        error: Error that names the operation and the timeout.
    """
    try:
        async with asyncio.timeout(seconds):
            return await attempt(work)
    except TimeoutError:
        # This TimeoutError is from `asyncio.timeout`, because `attempt` returns those of *work*.
        return Failed(error)
