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
"""Decision about a call that is not sent, or not sent yet. ``denied``: the caller may not see the
tool. ``asked``: the host is asked for an approval. ``approved`` and ``refused``: the host's
answer."""

Change: TypeAlias = AbstractAsyncContextManager[None]
"""A context manager around an administrative change, such as a change of the catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool, read of a resource, or request for a prompt."""

    action: Action = "call"
    entity: Entity
    """Tool, resource or prompt of the call."""
    arguments: JsonObject
    caller: Caller = ANYONE
    visibility: Visibility
    """Visibility rules at the time of the call."""
    call_id: str = ""
    """The model's id of the call, or ""."""
    task: str = ""
    """The host's label of the call's task, or ""."""
    approved: bool = False
    """True if a person or the host approved the call."""


Proceed: TypeAlias = Callable[[Call], Awaitable[InvokeResult]]
"""Function that passes a call to the inner hooks and the source, and returns the result."""


class CallHook:
    """Base class of hooks, which can refuse calls, change results or record outcomes.

    Subclasses override the methods they need.

    Example:
        >>> from gateway.call.hooks import CallHook
        >>> class Guardrail(CallHook):
        ...     name = "guardrail"
        ...     async def around(self, call, proceed):
        ...         if "password" in call.arguments:
        ...             raise ValueError("passwords are not allowed")
        ...         return await proceed(call)
    """

    name: str = ""
    order: int = 0
    """Position among all hooks. The lowest number is outermost; equal numbers are sorted by
    name.
    """

    async def around(self, call: Call, proceed: Proceed) -> InvokeResult:
        """Run before and after a call.

        Await ``proceed(call)`` at most once and return its result, or raise an error to refuse the
        call. The result of a read or a prompt has the server's JSON in ``structured``.

        Raises:
            GatewayError: If the call is refused or fails.
        """
        return await proceed(call)

    async def note_unsent(self, decision: Unsent, call: Call, detail: str = "") -> None:
        """Record a decision about a call that is not sent, or not sent yet.

        Raises:
            StoreError: If the decision must be recorded but cannot be.
        """

    def shown_arguments(self, _: Call, arguments: object) -> object:
        """Return *arguments* without the parts that traces must not contain."""
        return arguments

    def change(self, action: str, *entities: str, detail: str = "") -> Change:
        """Return a context manager around an administrative change.

        Entering it raises `StoreError` if the change must be recorded but cannot be.

        Args:
            action: Kind of change, such as ``catalog.put``.
            entities: Ids of the changed entities.
            detail: Further facts for the record.
        """
        del action, entities, detail
        return nullcontext()

    def close(self) -> None:
        """Write pending records. Called when the gateway is closed."""


@dataclass(frozen=True, eq=False)
class CallHooks(CallHook):
    """All hooks of a gateway as one hook, outermost first."""

    hooks: Sequence[CallHook] = ()

    def named(self, name: str) -> CallHook | None:
        """Return the hook with this name, or None."""
        return next((hook for hook in self.hooks if hook.name == name), None)

    async def around(self, call: Call, proceed: Proceed) -> InvokeResult:
        """Run the call inside all hooks."""
        for hook in reversed(self.hooks):
            proceed = partial(hook.around, proceed=proceed)
        return await proceed(call)

    async def note_unsent(self, decision: Unsent, call: Call, detail: str = "") -> None:
        """Let every hook record the decision."""
        for hook in self.hooks:
            await hook.note_unsent(decision, call, detail)

    def shown_arguments(self, call: Call, arguments: object) -> object:
        """Hide the parts that any hook hides from traces."""
        for hook in self.hooks:
            arguments = hook.shown_arguments(call, arguments)
        return arguments

    @asynccontextmanager
    async def change(self, action: str, *entities: str, detail: str = "") -> AsyncIterator[None]:
        """Enter the context managers of all hooks."""
        async with AsyncExitStack() as stack:
            for hook in self.hooks:
                await stack.enter_async_context(hook.change(action, *entities, detail=detail))
            yield

    def close(self) -> None:
        """Let every hook write its pending records."""
        for hook in self.hooks:
            hook.close()


def all_hooks(hooks: Sequence[CallHook], options: AuditOptions) -> CallHooks:
    """Combine *hooks* into one.

    Raises:
        ConfigError: If the options require an audit log but the hook ``access`` is missing.
    """
    combined = CallHooks(hooks)
    if options.record == "on" and combined.named("access") is None:
        raise missing_plugin("audit.record", "access", "turn it off")
    return combined
