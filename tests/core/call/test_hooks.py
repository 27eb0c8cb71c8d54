"""Hooks around calls and changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from gateway.call import Call, CallHook, CallHooks, Proceed, Unsent
from gateway.catalog import EVERYTHING_VISIBLE
from gateway.errors import NotApprovedError
from gateway.types import InvokeResult
from tests.fakes import entity, tool

PAY = Call(entity=entity(tool("pay")), arguments={}, visibility=EVERYTHING_VISIBLE)


class Named(CallHook):
    """A call hook that records when it is entered and left."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self._log = log

    async def around(self, call: Call, proceed: Proceed) -> InvokeResult:
        self._log.append(f"{self.name} before")
        result = await proceed(call)
        self._log.append(f"{self.name} after")
        return result

    async def note_unsent(self, decision: Unsent, call: Call, detail: str = "") -> None:
        self._log.append(f"{self.name} {decision} {call.entity.id} {detail}")

    def shown_arguments(self, _: Call, arguments: object) -> object:
        return f"{self.name}({arguments})"

    @asynccontextmanager
    async def change(self, action: str, *entities: str, detail: str = "") -> AsyncIterator[None]:
        self._log.append(f"{self.name} {action} {entities} {detail}")
        yield
        self._log.append(f"{self.name} changed")

    def close(self) -> None:
        self._log.append(f"{self.name} closed")


class Refusing(CallHook):
    """A call hook that refuses all calls."""

    async def around(self, call: Call, proceed: Proceed) -> InvokeResult:
        raise NotApprovedError(f"{call.entity.id!r} is refused")

    @asynccontextmanager
    async def change(self, action: str, *_: str, detail: str = "") -> AsyncIterator[None]:
        raise NotApprovedError(f"{action} is refused")
        yield


async def run(hooks: Sequence[CallHook], log: list[str]) -> InvokeResult:
    async def send(call: Call) -> InvokeResult:
        log.append("sent")
        return InvokeResult(tool_id=call.entity.id)

    return await CallHooks(hooks).around(PAY, send)


async def test_first_call_hook_is_outermost() -> None:
    log: list[str] = []

    result = await run([Named("a", log), Named("b", log)], log)

    assert ["a before", "b before", "sent", "b after", "a after"] == log
    assert "srv/pay" == result.tool_id


async def test_refused_call_is_not_sent() -> None:
    log: list[str] = []

    with pytest.raises(NotApprovedError, match="'srv/pay' is refused"):
        await run([Named("a", log), Refusing()], log)

    assert ["a before"] == log


async def test_call_without_hooks_is_sent() -> None:
    log: list[str] = []

    await run([], log)

    assert ["sent"] == log


async def test_hooks_receive_changes_and_unsent_calls() -> None:
    log: list[str] = []
    hooks = CallHooks([Named("a", log), CallHook(), Named("b", log)])

    await hooks.note_unsent("refused", PAY, "when asked")
    async with hooks.change("catalog.put", "skill:x", detail="new"):
        log.append("done")
    hooks.close()

    assert ["a refused srv/pay when asked", "b refused srv/pay when asked"] == log[:2]
    assert ["a catalog.put ('skill:x',) new", "b catalog.put ('skill:x',) new"] == log[2:4]
    assert ["done", "b changed", "a changed", "a closed", "b closed"] == log[4:]
    assert "b(a(x))" == hooks.shown_arguments(PAY, "x")


async def test_change_that_a_hook_cannot_record_is_not_made() -> None:
    log: list[str] = []

    with pytest.raises(NotApprovedError):
        async with CallHooks([Named("a", log), Refusing()]).change("catalog.put"):
            log.append("done")

    assert ["a catalog.put () "] == log


def test_call_hooks_are_found_by_name() -> None:
    access = Named("a", [])

    assert CallHooks([CallHook(), access]).named("a") is access
    assert CallHooks([access]).named("b") is None
