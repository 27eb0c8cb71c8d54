"""Approval: whether the host is asked before a tool runs, and asking it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from gateway.catalog.arguments import check_arguments
from gateway.errors import Failed, InvalidRequestError, attempt
from gateway.gateway import Gateway
from gateway.options.chat import Confirm
from gateway.runtime.background_loop import in_thread
from gateway.search.invoke import resolve
from gateway.types import Entity, Filters, JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A call that waits for the host's decision."""

    entity: Entity
    arguments: JsonObject
    call_id: str


Approve: TypeAlias = Callable[[Approval], bool | Awaitable[bool]]
"""Says whether a call may go out: ``True`` is a yes; anything else that it gives or raises is a no.
A plain function runs on a thread of its own and may block."""


def needs_approval(entity: Entity, confirm: Confirm) -> bool:
    """Say whether the host is asked about *entity*.

    Annotations of an untrusted server are hints of a stranger: they can only make us stricter.
    A tool of such a server that has none may destroy something, as MCP says.
    """
    hints = entity.hints
    if confirm == "all" or hints.destructive is True:
        return True
    if confirm == "not_read_only":
        return hints.read_only is not True
    return not entity.trusted and hints.destructive is None and hints.read_only is not True


async def ask(
    gateway: Gateway, approve: Approve, tool: str, arguments: JsonObject, call_id: str
) -> None:
    """Ask the host about a call, if it wants to be asked about this tool.

    Raises:
        InvalidRequestError: If it says anything but ``True``, or *tool* could be any of several.
        UnknownToolError: If there is no such tool.
        InvalidArgumentsError: If the arguments do not fit: then there is nothing to ask.
    """
    entity = resolve(await gateway.snapshot(), tool, Filters())
    if not needs_approval(entity, gateway.options.chat.confirm):
        return
    check_arguments(entity, arguments)
    asked = Approval(entity=entity, arguments=arguments, call_id=call_id)
    said = await attempt(_said(approve, asked))
    if said is not True:
        raise InvalidRequestError(
            f"{tool!r} was not approved{_why(said)}: do not repeat the call, "
            "say what you wanted to do"
        )


async def _said(approve: Approve, asked: Approval) -> object:
    # A plain function may block, on a person too: it gets a thread.
    here = inspect.iscoroutinefunction(approve)
    said = approve(asked) if here else await in_thread(approve, asked)
    return await said if inspect.isawaitable(said) else said


def _why(said: object) -> str:
    """Log an answer that is neither yes nor no, for whoever wrote the host to find."""
    if isinstance(said, Failed):
        return f" (asking failed: {said.reason})"
    return "" if said is False else f" (the answer was of type {type(said).__name__}, not True)"
