"""Approval: whether the host is asked before a tool runs, and asking it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from gateway.catalog.arguments import check_arguments
from gateway.errors import Failed, InvalidRequestError, attempt
from gateway.gateway import Gateway
from gateway.index.snapshot import resolve
from gateway.options import Confirm
from gateway.runtime.background_loop import in_thread
from gateway.types import ANYONE, Caller, Entity, JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A call that waits for the host's decision."""

    entity: Entity
    arguments: JsonObject
    call_id: str
    caller: Caller = ANYONE
    """The party that the call is for."""


Approve: TypeAlias = Callable[[Approval], bool | Awaitable[bool]]
"""Decides whether a call may go out: ``True`` is a yes; anything else that it returns or raises is
a no. A plain function runs on a thread of its own and may block."""


def needs_approval(entity: Entity, confirm: Confirm) -> bool:
    """Return whether the host is asked about *entity*.

    Annotations of an untrusted server can only make us stricter. A tool of such a server that has
    none may destroy something, as MCP says.
    """
    hints = entity.hints
    if confirm == "all" or hints.destructive is True:
        return True
    if confirm == "not_read_only":
        return hints.read_only is not True
    return not entity.trusted and hints.destructive is None and hints.read_only is not True


async def request_approval(
    gateway: Gateway,
    approve: Approve,
    tool: str,
    arguments: JsonObject,
    *,
    call_id: str,
    caller: Caller,
) -> None:
    """Ask the host about a call, if its options want that for this tool.

    Raises:
        InvalidRequestError: If the answer is anything but ``True``, or *tool* is ambiguous.
        UnknownToolError: If there is no such tool.
        InvalidArgumentsError: If the arguments do not fit: then there is nothing to ask.
    """
    entity = resolve(await gateway.snapshot(), tool, caller.filters())
    if not needs_approval(entity, gateway.options.chat.confirm):
        return
    check_arguments(entity, arguments)
    approval = Approval(entity=entity, arguments=arguments, call_id=call_id, caller=caller)
    decision = await attempt(_decide(approve, approval))
    if decision is not True:
        reason = f" (the answer was of type {type(decision).__name__}, not True)"
        if isinstance(decision, Failed):
            reason = f" (asking failed: {decision.reason})"
        raise InvalidRequestError(
            f"{tool!r} was not approved{'' if decision is False else reason}: "
            "do not repeat the call, say what you wanted to do"
        )


async def _decide(approve: Approve, approval: Approval) -> object:
    # A plain function may block, on a person too: it gets a thread.
    is_async = inspect.iscoroutinefunction(approve)
    decision = approve(approval) if is_async else await in_thread(approve, approval)
    return await decision if inspect.isawaitable(decision) else decision
