"""Every error the gateway raises, in one tree.

    GatewayError
    + ConfigError             an option, a file or a combination of both cannot work
      + MissingExtraError     a feature needs a package that is not installed
      + ModelFileError        the embedded model's files are not the ones we know
    + InvalidRequestError     a caller's argument is outside what is allowed
      + UnknownToolError      no such tool; carries the nearest names
      + InvalidArgumentsError the arguments do not fit the tool's schema; carries the schema
      + NotApprovedError      the host did not allow the call; nothing was sent
    + LimitExceededError      a policy allows no more calls for a while; nothing was sent
    + UpstreamError           a server or a function could not be listed or called
      + UpstreamTimeoutError  it did not answer within its limit
      + UpstreamFloodError    it sent more than its limits allow and was disconnected
      + UpstreamUnavailableError  it failed too often and is left alone for a while
      + CallerError           it asked its caller for what that cannot give; carries what
      + SignInRequiredError   it wants the user's own sign-in; carries where to sign in
    + StoreError              a store could not be read or written
    + EmbeddingError          an embedder failed or gave unusable vectors
    + LoopError               the conversation used up its turns
    + ClosedError             the gateway was closed

A leaf exists only where a caller would act differently. Messages name the thing and the mend;
they never hold a secret, a query or an argument value.
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
"""Why a source failed: its configuration cannot work; it could not be reached; it wants other
credentials; the connection ended under way; it sent too much; it stayed silent; it answered with
an error or with nonsense; it failed so often that it is left alone."""


class GatewayError(Exception):
    """Anything that this package raises on purpose."""


class ConfigError(GatewayError):
    """An option, a file or their combination cannot work."""


class MissingExtraError(ConfigError):
    """A feature needs an optional package."""

    def __init__(self, feature: str, extra: str) -> None:
        self.extra = extra
        super().__init__(
            f'{feature} needs packages that are not installed: pip install "tool-gateway[{extra}]"'
        )


class InvalidRequestError(GatewayError, ValueError):
    """A caller's argument is outside what is allowed."""


class UnknownToolError(InvalidRequestError, LookupError):
    """No tool of that name may be called."""

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
    """The arguments of a call do not fit the tool's JSON Schema."""

    def __init__(self, tool: str, faults: tuple[str, ...], schema: Mapping[str, object]) -> None:
        self.tool = tool
        self.faults = faults
        self.schema = schema
        super().__init__(f"invalid arguments for {tool!r}: {'; '.join(faults)}")


class NotApprovedError(InvalidRequestError):
    """The host did not approve a call."""


class LimitExceededError(GatewayError):
    """A policy allows no more calls for a while; nothing was sent."""

    def __init__(self, rule: str, *, retry_after_s: float) -> None:
        self.rule = rule
        self.retry_after_s = retry_after_s
        """In how many seconds a call is allowed again, at the earliest."""
        super().__init__(
            f"the limit {rule!r} is reached: nothing was sent; try again in {ceil(retry_after_s)} s"
        )


class UpstreamError(GatewayError):
    """A source of tools failed."""

    def __init__(
        self, server: str, detail: str, *, kind: UpstreamFault = "refused", sent: bool = True
    ) -> None:
        self.server = server
        self.detail = detail
        """The message without the server's name."""
        self.kind: UpstreamFault = kind
        self.status = 0
        """The HTTP status by which it refused; 0 if it was something else."""
        self.sent = sent
        """False if it is certain that no request left us: nothing can have run."""
        self.stderr: tuple[str, ...] = ()
        """What its program wrote last to standard error, for people: at most five short lines,
        without control characters and secrets. Never for a model: a stranger wrote it."""
        super().__init__(f"{server!r}: {detail}")

    @property
    def with_stderr(self) -> str:
        """The message, and behind it what the program wrote last."""
        return "; it wrote: ".join((str(self), *filter(None, [" | ".join(self.stderr)])))


class UpstreamTimeoutError(UpstreamError):
    """A source of tools did not answer within its limit."""

    def __init__(self, server: str, detail: str, *, sent: bool = True) -> None:
        super().__init__(server, detail, kind="late", sent=sent)


class UpstreamFloodError(UpstreamError):
    """A server sent more than its limits allow, and was disconnected."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(server, f"was disconnected: it {why}", kind="flood")


class UpstreamUnavailableError(UpstreamError):
    """A server failed too often in a row and is left alone for a while; nothing was sent."""

    def __init__(self, server: str, detail: str, *, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        """When it may be used again."""
        super().__init__(server, detail, kind="unavailable", sent=False)


class CallerError(UpstreamError):
    """A server asked its caller for something that the caller cannot give; the call ended."""

    def __init__(self, server: str, detail: str, *, needed: Mapping[str, object]) -> None:
        self.needed = needed
        """The client capabilities that were missing; empty if it was something else."""
        super().__init__(server, detail)


class SignInRequiredError(UpstreamError):
    """A server is called with the credentials of each user, and has none of this one."""

    def __init__(self, server: str, address: str, *, previous: str = "", fault: str = "") -> None:
        self.address = address
        """Where the user signs in, with the token by which it uses the gateway; empty if the host
        says no address."""
        self.previous = previous
        """The sign-in that the server refused; empty if there was none."""
        mend = (
            f"sign in at {address} and call again"
            if address
            else "no sign-in is offered until the host sets public_url (GATEWAY_PUBLIC_URL)"
        )
        detail = f"needs a sign-in of your own{fault and f' ({fault})'}: {mend}"
        super().__init__(server, detail, kind="authorization", sent=False)


class StoreError(GatewayError):
    """A store could not be read or written."""

    def __init__(self, detail: str, *, rebuilt: bool = False) -> None:
        self.rebuilt = rebuilt
        """True if the store has begun anew: the next call works."""
        super().__init__(detail)


class EmbeddingError(GatewayError):
    """An embedder failed, or its vectors cannot be used."""


class ModelFileError(ConfigError):
    """A file of the embedded model is not the one that was reviewed."""


class LoopError(GatewayError):
    """A conversation reached a limit of `ChatOptions` before the model was done."""

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
        """The option that ended it."""
        self.messages = messages
        """What the conversation gained: the model's calls of our tools, each with its answer. Put
        behind the host's own messages, they let it go on from there."""
        self.accounting = accounting
        """What was done and spent; `gateway.accounting_of` returns it typed."""
        super().__init__(
            f"the model was still calling tools after {turns} turns; "
            f"raise ChatOptions.{limit} or give the model a clearer task"
        )


class ClosedError(GatewayError):
    """The gateway was closed and cannot serve any more."""


def missing_plugin(user: str, name: str, otherwise: str = "") -> ConfigError:
    """Return the error of *user*, a thing that needs the plugin *name*; or do *otherwise*."""
    return ConfigError(
        f"{user} needs the plugin {name!r}, which is not loaded: add it to Options.plugins, "
        f"GATEWAY_PLUGINS or 'plugins' of mcp.json{otherwise and f', or {otherwise}'}"
    )


def uninstalled_plugin(user: str, error: ModuleNotFoundError) -> str:
    """Return the message that *user* needs our own plugin that *error* names.

    The message is empty if another module was not found.
    """
    _, _, module = (error.name or "").partition("gateway.plugins.")
    name = module.partition(".")[0]
    advice = "which is not installed: install tool-gateway again"
    return f"{user} needs the plugin {name!r}, {advice}" if name else ""


@dataclass(frozen=True, slots=True)
class Failed:
    """What foreign code raised, as a value."""

    error: BaseException

    @property
    def reason(self) -> str:
        """The cause: our own errors in full, foreign ones by type, since a foreign message
        may hold a query or a secret.
        """
        own = isinstance(self.error, GatewayError)
        return str(self.error) if own else type(self.error).__name__


async def attempt(work: Awaitable[T]) -> T | Failed:
    """Await code of the host, and return its exception as a value.

    With `attempt_call` the only broad ``except`` of the package: embedders, normalizers and tools
    are the host's code and may raise anything, while a search or a conversation must go on.
    ``SystemExit`` is a failure as any other (an ``argparse`` that refuses), as is any other
    ``BaseException`` (a panic of a library in Rust), and a ``CancelledError`` that was not
    asked for: a job of the host's own was cancelled. Cancellation of the caller passes, and so do
    ``KeyboardInterrupt`` and ``GeneratorExit``.
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
    """Call code of the host that is not awaited, and return its exception as a value.

    As `attempt`; a ``CancelledError`` cannot be the caller's, since nothing is awaited.
    """
    try:
        return work()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  (see `attempt`)
        return Failed(error)


async def attempt_within(work: Awaitable[T], seconds: float, error: GatewayError) -> T | Failed:
    """Await *work* as `attempt` does, but not for ever: what takes longer has failed as *error*.

    Args:
        work: Cancelled when it takes too long; what it shares with others goes on for them.
        seconds: >= 0; what is there at once is given even with none.
        error: What it is that takes too long, and of which limit.
    """
    try:
        async with asyncio.timeout(seconds):
            return await attempt(work)
    except TimeoutError:
        # No other comes out of `attempt`.
        return Failed(error)
