"""Hooks around a call: their order, and what one may do to it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gateway.call.hooks import Call, CallHook, Proceed, with_hooks
from gateway.errors import NotApprovedError
from gateway.plugins.access.policies import NO_POLICIES
from gateway.types import InvokeResult
from tests.fakes import entity, tool


class Named:
    """A hook that writes down when it is entered and left."""

    def __init__(self, name: str, log: list[str]) -> None:
        self._name = name
        self._log = log

    async def around(self, call: Call, proceed: Proceed) -> InvokeResult:
        self._log.append(f"{self._name} before")
        result = await proceed(call)
        self._log.append(f"{self._name} after")
        return result


class Refusing:
    """A hook that lets no call pass."""

    async def around(self, call: Call, proceed: Proceed) -> InvokeResult:
        raise NotApprovedError(f"{call.entity.id!r} is refused")


async def run(hooks: Sequence[CallHook], log: list[str]) -> InvokeResult:
    async def send(call: Call) -> InvokeResult:
        log.append("sent")
        return InvokeResult(tool_id=call.entity.id)

    call = Call(entity=entity(tool("pay")), arguments={}, policies=NO_POLICIES)
    return await with_hooks(hooks, send)(call)


async def test_the_first_hook_is_the_outermost() -> None:
    log: list[str] = []

    result = await run([Named("a", log), Named("b", log)], log)

    assert ["a before", "b before", "sent", "b after", "a after"] == log
    assert "srv/pay" == result.tool_id


async def test_a_hook_that_refuses_a_call_keeps_it_from_being_sent() -> None:
    log: list[str] = []

    with pytest.raises(NotApprovedError, match="'srv/pay' is refused"):
        await run([Named("a", log), Refusing()], log)

    assert ["a before"] == log


async def test_without_hooks_a_call_is_sent() -> None:
    log: list[str] = []

    await run([], log)

    assert ["sent"] == log
