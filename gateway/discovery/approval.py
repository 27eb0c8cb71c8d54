"""Approval: whether the host is asked before a tool runs, and asking it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias, runtime_checkable

from gateway.catalog.arguments import check_arguments
from gateway.errors import Failed, NotApprovedError, attempt
from gateway.gateway import Gateway
from gateway.options import Confirm
from gateway.runtime.background_loop import in_thread
from gateway.types import ANYONE, Caller, Entity, JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A call that waits for the host's decision."""

    entity: Entity
    arguments: JsonObject
    """A copy: to change it changes no call."""
    call_id: str
    caller: Caller = ANYONE
    """The party that the call is for."""
    rule: str = ""
    """The policy that wants it; empty if it is for the tool's hints."""


Approve: TypeAlias = Callable[[Approval], bool | Awaitable[bool]]
"""Decides whether a call may go out: ``True`` is a yes; anything else that it returns or raises is
a no. A plain function runs on a thread of its own and may block."""


@runtime_checkable
class Selective(Protocol):
    """An `Approve` that leaves some calls to others, which it approves unasked."""

    def asks(self, approval: Approval) -> bool:
        """Return whether it asks for *approval*."""


def needs_approval(entity: Entity, confirm: Confirm, *, can_ask: bool = True) -> bool:
    """Return whether a call of *entity* needs the host's approval.

    What a server says of its tools can only make us stricter, unless the host vouches for it:
    then a tool that is not destructive, or only reads, is what it says. Any other tool may destroy
    something, as MCP says: the host is asked about it. Where no person can be asked it runs, unless
    it says that it destroys, since the host vouches for few servers.
    """
    hints = entity.hints
    if confirm in {"never", "all"}:
        return confirm == "all"
    is_vouched = entity.trusted or entity.vouched
    if hints.destructive is True:
        return True
    if confirm == "not_read_only":
        return not (is_vouched and hints.read_only is True)
    return can_ask and not is_vouched


async def request_approval(
    gateway: Gateway,
    approve: Approve | None,
    tool: str,
    arguments: JsonObject,
    *,
    call_id: str,
    caller: Caller,
) -> Entity:
    """Ask the host about a call, if a policy or its options want that for this tool.

    That it was asked, and said no, is in the audit log; a yes is there when the call goes out.

    Raises:
        NotApprovedError: If the answer is anything but ``True``, or *approve* is None.
        InvalidRequestError: If *tool* is ambiguous.
        UnknownToolError: If there is no such tool.
        InvalidArgumentsError: If the arguments do not fit: then there is nothing to ask.
        StoreError: If the audit log cannot be written, and calls are refused then.
    """
    call = await gateway.calls.find(tool, caller, arguments)
    entity, confirm = call.entity, gateway.options.chat.confirm
    policy = call.visibility.decide(entity, caller)
    rule = policy.rule if policy.action == "ask" else ""
    if not rule and not needs_approval(entity, confirm, can_ask=approve is not None):
        return entity
    await check_arguments(entity, arguments)
    note = partial(gateway.hooks.note_unsent, call=call)
    if approve is None:
        await note("refused")
        raise _nobody_to_ask(tool, rule, confirm)
    own = deepcopy(arguments)
    approval = Approval(entity=entity, arguments=own, call_id=call_id, caller=caller, rule=rule)
    if isinstance(approve, Selective) and not approve.asks(approval):
        return entity
    await note("asked")
    decision = await attempt(_decide(approve, approval))
    if decision is not True:
        await note("refused", detail="when asked")
        reason = f" (the answer was of type {type(decision).__name__}, not True)"
        if isinstance(decision, Failed):
            reason = f" (asking failed: {decision.reason})"
        raise NotApprovedError(
            f"{tool!r} was not approved{'' if decision is False else reason}: "
            "do not repeat the call, say what you wanted to do"
        )
    if not rule:
        await note("approved")
    return entity


def _nobody_to_ask(tool: str, rule: str, confirm: str) -> NotApprovedError:
    wanted = f"by the policy {rule!r}" if rule else f"ChatOptions.confirm is {confirm!r}"
    allows = "approve=…" if rule else 'approve=… or ChatOptions(confirm="never")'
    return NotApprovedError(
        f"{tool!r} needs an approval ({wanted}), and nobody can be asked: do not repeat the "
        f"call, say what you wanted to do. Whoever runs this program allows it by {allows}"
    )


async def _decide(approve: Approve, approval: Approval) -> object:
    # A plain function may block, on a person too: it gets a thread.
    is_async = inspect.iscoroutinefunction(approve)
    decision = approve(approval) if is_async else await in_thread(approve, approval)
    return await decision if inspect.isawaitable(decision) else decision
