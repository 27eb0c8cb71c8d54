"""Approval of tool calls by the host."""

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
    """A call that waits for the host to approve or deny it."""

    entity: Entity
    arguments: JsonObject
    """A copy; changes do not affect the call."""
    call_id: str
    caller: Caller = ANYONE
    rule: str = ""
    """Policy that requires the approval; "" if the tool's hints require it."""


Approve: TypeAlias = Callable[[Approval], bool | Awaitable[bool]]
"""Decides whether a call is sent: only ``True`` approves it, and an error denies it. A plain
function runs in its own thread and may block."""


@runtime_checkable
class Selective(Protocol):
    """An `Approve` that decides about some calls only. All others are sent."""

    def asks(self, approval: Approval) -> bool:
        """Return True if this object must decide about *approval*. If False, the call is sent."""


def needs_approval(entity: Entity, confirm: Confirm, *, can_ask: bool = True) -> bool:
    """Return whether a call of *entity* needs the host's approval under `ChatOptions.confirm`.

    The host vouches for a tool by trusting its server or by its own hints. Under ``destructive``,
    tools marked as destructive need approval, and all tools that the host does not vouch for. Under
    ``not_read_only``, only vouched tools marked as read-only, and not as destructive, need none.

    If no person can be asked (*can_ask* is False), ``destructive`` only covers tools marked as
    destructive. Otherwise nearly every call would be refused.
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
    """Request the host's approval of a call, if a policy or option requires it. Return the tool.

    The audit log records the request and a denial here, and an approval if no policy required it.
    Other approvals are recorded when the call is sent.

    Raises:
        NotApprovedError: If the answer is not ``True``, or *approve* is None.
        InvalidRequestError: If *tool* is ambiguous.
        UnknownToolError: If the tool does not exist.
        InvalidArgumentsError: If the arguments are invalid; then the host is not asked.
        StoreError: If the audit log cannot be written, and the options then refuse calls.
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
        raise _cannot_ask_error(tool, rule, confirm)
    arguments_copy = deepcopy(arguments)
    approval = Approval(
        entity=entity, arguments=arguments_copy, call_id=call_id, caller=caller, rule=rule
    )
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


def _cannot_ask_error(tool: str, rule: str, confirm: str) -> NotApprovedError:
    reason = f"by the policy {rule!r}" if rule else f"ChatOptions.confirm is {confirm!r}"
    allows = "approve=…" if rule else 'approve=… or ChatOptions(confirm="never")'
    return NotApprovedError(
        f"{tool!r} needs an approval ({reason}), and nobody can be asked: do not repeat the "
        f"call, say what you wanted to do. Whoever runs this program allows it by {allows}"
    )


async def _decide(approve: Approve, approval: Approval) -> object:
    # A plain function may block, perhaps on a person, so it gets its own thread.
    is_async = inspect.iscoroutinefunction(approve)
    decision = approve(approval) if is_async else await in_thread(approve, approval)
    return await decision if inspect.isawaitable(decision) else decision
