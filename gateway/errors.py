"""Errors of the gateway, and functions that return errors as values.

    GatewayError
    + ConfigError
      + MissingExtraError
      + ModelFileError
    + InvalidRequestError
      + UnknownToolError
      + InvalidArgumentsError
      + NotApprovedError
    + LimitExceededError
    + UpstreamError
      + UpstreamTimeoutError
      + UpstreamFloodError
      + UpstreamUnavailableError
      + CallerError
      + SignInRequiredError
    + StoreError
    + EmbeddingError
    + LoopError
    + ClosedError

Messages name the problem and the remedy, and never contain secrets, queries or argument values.
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
    """Base class of this package's errors."""


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
    """The host did not approve a call, so the call was not sent."""


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
    """A source of tools, named `server`, failed."""

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
    """A server failed too often, so its circuit breaker is open. The call was not sent."""

    def __init__(self, server: str, detail: str, *, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        """Number of seconds until the server can be used again."""
        super().__init__(server, detail, kind="unavailable", sent=False)


class CallerError(UpstreamError):
    """A server needs client capabilities or an answer that the caller cannot provide."""

    def __init__(self, server: str, detail: str, *, needed: Mapping[str, object]) -> None:
        self.needed = needed
        """Client capabilities that the caller lacks; empty if the call ended for another reason."""
        super().__init__(server, detail)


class SignInRequiredError(UpstreamError):
    """A server needs credentials of each user, and this user has not signed in."""

    def __init__(self, server: str, address: str, *, previous: str = "", fault: str = "") -> None:
        self.address = address
        """URL at which the user signs in with the gateway's token; empty if the host has no public
        URL."""
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
        """Name of the option of `ChatOptions` that was reached."""
        self.messages = messages
        """Messages added to the conversation: calls of meta-tools and their results. Append them to
        the host's messages to continue."""
        self.accounting = accounting
        """`gateway.accounting.Accounting` of the conversation: turns, calls and tokens."""
        super().__init__(
            f"the model was still calling tools after {turns} turns; "
            f"raise ChatOptions.{limit} or give the model a clearer task"
        )


class ClosedError(GatewayError):
    """The gateway is closed."""


def missing_plugin(user: str, name: str, otherwise: str = "") -> ConfigError:
    """Return an error for a missing plugin.

    Args:
        user: Feature that needs the plugin.
        name: Name of the plugin.
        otherwise: Alternative to loading the plugin; empty if there is none.
    """
    return ConfigError(
        f"{user} needs the plugin {name!r}, which is not loaded: add it to Options.plugins, "
        f"GATEWAY_PLUGINS or 'plugins' of mcp.json{otherwise and f', or {otherwise}'}"
    )


def uninstalled_plugin(user: str, error: ModuleNotFoundError) -> str:
    """Return a message that a plugin is not installed.

    Args:
        user: Feature that needs the plugin.
        error: Error of a failed import. For a module outside the plugins, the message is empty.
    """
    _, _, module = (error.name or "").partition("gateway.plugins.")
    name = module.partition(".")[0]
    advice = "which is not installed: install tool-gateway again"
    return f"{user} needs the plugin {name!r}, {advice}" if name else ""


@dataclass(frozen=True, slots=True)
class Failed:
    """An exception of the host's code, returned as a value."""

    error: BaseException

    @property
    def reason(self) -> str:
        """Message of a `GatewayError`; only the type of other errors, which may quote secrets."""
        is_ours = isinstance(self.error, GatewayError)
        return str(self.error) if is_ours else type(self.error).__name__


async def attempt(work: Awaitable[T]) -> T | Failed:
    """Await code of the host and return its exception as a value.

    Returned are also ``SystemExit`` and other ``BaseException`` classes, such as a panic in a Rust
    library. ``KeyboardInterrupt`` and ``GeneratorExit`` are raised. ``CancelledError`` is raised if
    the caller was cancelled, and returned if the host's code cancelled a task.
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
    """Call code of the host and return its exception as a value, except ``KeyboardInterrupt``."""
    try:
        return work()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  (see `attempt`)
        return Failed(error)


async def attempt_within(work: Awaitable[T], seconds: float, error: GatewayError) -> T | Failed:
    """Await *work* as `attempt` does. On timeout, cancel it and return `Failed(error)`.

    With a timeout of 0 *seconds*, results that are available at once are still returned.
    """
    try:
        async with asyncio.timeout(seconds):
            return await attempt(work)
    except TimeoutError:
        # This TimeoutError is from `asyncio.timeout`, because `attempt` returns those of *work*.
        return Failed(error)
