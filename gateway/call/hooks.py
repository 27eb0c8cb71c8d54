"""Hooks around each call: one may refuse it, change its answer, or note how it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, TypeAlias

from gateway.plugins.access.policies import Policies
from gateway.types import ANYONE, Caller, Entity, InvokeResult, JsonObject

Action: TypeAlias = Literal["call", "read", "prompt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool, one read of a resource, or one prompt that is filled in."""

    action: Action = "call"
    entity: Entity
    """The tool, resource or prompt. Its caller may see it."""
    arguments: JsonObject
    caller: Caller = ANYONE
    policies: Policies
    """Those that hold for this call."""
    call_id: str = ""
    """The model's id of the call; empty without one."""
    task: str = ""
    """The host's label of the task that the call belongs to."""
    approved: bool = False
    """Whether a person, or the host, approved it."""


Proceed: TypeAlias = Callable[[Call], Awaitable[InvokeResult]]
"""Does the rest of a call: the hooks behind this one, then the source."""


class CallHook(Protocol):
    """Something that stands around every call of a gateway."""

    async def around(self, call: Call, proceed: Proceed) -> InvokeResult:
        """Do the call by awaiting *proceed*, at most once, and return its answer.

        The answer to a read or a prompt is the server's own JSON, in ``structured``.

        Raises:
            GatewayError: The call is refused, or failed.
        """


def with_hooks(hooks: Sequence[CallHook], send: Proceed) -> Proceed:
    """Return *send* with *hooks* around it, the first one outermost."""
    for hook in reversed(hooks):
        send = partial(hook.around, proceed=send)
    return send
