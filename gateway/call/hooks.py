"""Hooks around each call: one may refuse it, change its answer, or note how it ended."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from gateway.catalog.visibility import Visibility
from gateway.errors import missing_plugin
from gateway.options import AuditOptions
from gateway.types import ANYONE, Caller, Entity, InvokeResult, JsonObject

Action: TypeAlias = Literal["call", "read", "prompt"]
Unsent: TypeAlias = Literal["denied", "asked", "approved", "refused"]
"""What was decided about a call that is not sent, or not yet: its caller may not see the tool, the
host is asked, or the host answered."""

Change: TypeAlias = AbstractAsyncContextManager[None]
"""A context around an administrative change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool, one read of a resource, or one prompt that is filled in."""

    action: Action = "call"
    entity: Entity
    """The tool, resource or prompt. Its caller may see it."""
    arguments: JsonObject
    caller: Caller = ANYONE
    visibility: Visibility
    """What callers may see and do at the time of this call."""
    call_id: str = ""
    """The model's id of the call; empty without one."""
    task: str = ""
    """The host's label of the task that the call belongs to."""
    approved: bool = False
    """Whether a person, or the host, approved it."""


Proceed: TypeAlias = Callable[[Call], Awaitable[InvokeResult]]
"""Does the rest of a call: the hooks inside this one, then the source."""


class CallHook:
    """A part of a gateway around its calls and changes. A subclass overrides what it needs.

    Example:
        class Guardrail(CallHook):
            name = "guardrail"

            async def around(self, call, proceed):
                check(call.arguments)
                return await proceed(call)
    """

    name: str = ""
    order: int = 0
    """Hooks with lower numbers are further outside; those with the same number go by name."""

    async def around(self, call: Call, proceed: Proceed) -> InvokeResult:
        """Do the call by awaiting *proceed*, at most once, and return its answer.

        The answer to a read or a prompt is the server's own JSON, in ``structured``.

        Raises:
            GatewayError: The call is refused, or failed.
        """
        return await proceed(call)

    async def note_unsent(self, decision: Unsent, call: Call, detail: str = "") -> None:
        """Note a decision about a call that is not sent, or not yet.

        Raises:
            StoreError: It cannot be noted, and has to be.
        """

    def shown_arguments(self, _: Call, arguments: object) -> object:
        """Return the arguments of a call without the parts that traces must not show."""
        return arguments

    def change(self, action: str, *entities: str, detail: str = "") -> Change:
        """Return a context around a change of the gateway, such as ``catalog.put`` of entities.

        Entering it raises `StoreError` if the change cannot be noted, and has to be.
        """
        del action, entities, detail
        return nullcontext()

    def close(self) -> None:
        """Keep what is not kept yet: the gateway ends."""


@dataclass(frozen=True, eq=False)
class CallHooks(CallHook):
    """All hooks of a gateway as one, the outermost first."""

    hooks: Sequence[CallHook] = ()

    def named(self, name: str) -> CallHook | None:
        """Return the hook of this name, and None if there is none."""
        return next((hook for hook in self.hooks if hook.name == name), None)

    async def around(self, call: Call, proceed: Proceed) -> InvokeResult:
        """See `CallHook.around`."""
        for hook in reversed(self.hooks):
            proceed = partial(hook.around, proceed=proceed)
        return await proceed(call)

    async def note_unsent(self, decision: Unsent, call: Call, detail: str = "") -> None:
        """See `CallHook.note_unsent`."""
        for hook in self.hooks:
            await hook.note_unsent(decision, call, detail)

    def shown_arguments(self, call: Call, arguments: object) -> object:
        """See `CallHook.shown_arguments`."""
        for hook in self.hooks:
            arguments = hook.shown_arguments(call, arguments)
        return arguments

    @asynccontextmanager
    async def change(self, action: str, *entities: str, detail: str = "") -> AsyncIterator[None]:
        """See `CallHook.change`."""
        async with AsyncExitStack() as stack:
            for hook in self.hooks:
                await stack.enter_async_context(hook.change(action, *entities, detail=detail))
            yield

    def close(self) -> None:
        """See `CallHook.close`."""
        for hook in self.hooks:
            hook.close()


def all_hooks(hooks: Sequence[CallHook], options: AuditOptions) -> CallHooks:
    """Return the *hooks* of a gateway as one.

    Raises:
        ConfigError: An audit log is wanted, and none of the hooks keeps one.
    """
    found = CallHooks(hooks)
    if options.record == "on" and found.named("access") is None:
        raise missing_plugin("audit.record", "access", "turn it off")
    return found
