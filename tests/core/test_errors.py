"""One tree of errors, and foreign ones as values."""

from __future__ import annotations

import asyncio
import re

import pytest

from gateway import errors
from gateway.errors import (
    EmbeddingError,
    Failed,
    GatewayError,
    InvalidArgumentsError,
    LoopError,
    MissingExtraError,
    UnknownToolError,
    UpstreamTimeoutError,
    attempt,
    attempt_call,
)
from tests.fakes import PanicError

ERRORS = [
    each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)
]


def drawn() -> dict[str, str]:
    """The tree of the module's docstring: each error's name and that of its parent."""
    parents: dict[str, str] = {}
    above: dict[int, str] = {0: "GatewayError"}
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"    ( *)\+ (\w+)", line):
            depth, name = len(found[1]) // 2 + 1, found[2]
            above[depth] = name
            parents[name] = above[depth - 1]
    return parents


def test_the_drawn_tree_is_the_tree() -> None:
    """One `except` catches all that this package raises on purpose, another a branch of it."""
    bases = {each.__name__: each.__base__ for each in ERRORS if each is not GatewayError}

    assert {name: base.__name__ for name, base in bases.items() if base} == drawn()


def test_errors_carry_what_a_caller_acts_on() -> None:
    """The message is for people; programs read attributes."""
    unknown = UnknownToolError("sned", ("send", "lend"))
    unfit = InvalidArgumentsError("send", ("to: missing", "x: odd"), {"type": "object"})

    assert ("sned", ("send", "lend")) == (unknown.name, unknown.near)
    assert "unknown tool 'sned'; near names: send, lend. Search the catalog for the right one." == (
        str(unknown)
    )
    assert "invalid arguments for 'send': to: missing; x: odd" == str(unfit)
    assert {"type": "object"} == unfit.schema
    assert "git" == UpstreamTimeoutError("git", "late").server
    assert 'pip install "tool-gateway[local]"' in str(MissingExtraError("It", "local"))
    assert 40 == LoopError(40).turns


def test_unknown_tools_are_lookup_errors_and_bad_requests_value_errors() -> None:
    """Callers who do not know this package catch what they know."""
    assert issubclass(UnknownToolError, LookupError)
    assert issubclass(UnknownToolError, ValueError)


async def test_an_attempt_gives_the_answer_or_the_failure() -> None:
    """Optional stages are the host's code: they may raise anything."""

    async def good() -> int:
        return 1

    async def bad() -> int:
        raise ZeroDivisionError("the secret")

    failed = await attempt(bad())

    assert 1 == await attempt(good())
    assert isinstance(failed, Failed)
    assert "ZeroDivisionError" == failed.reason


def test_our_own_errors_are_told_in_full_and_foreign_ones_by_type() -> None:
    """A foreign message may hold a query or a key."""
    assert "a vector is all zeros" == Failed(EmbeddingError("a vector is all zeros")).reason
    assert "ValueError" == Failed(ValueError("sk-secret")).reason


async def test_an_attempt_lets_cancellation_through() -> None:
    """Who stops waiting must stop waiting."""
    trying = asyncio.ensure_future(attempt(asyncio.Event().wait()))
    await asyncio.sleep(0)

    trying.cancel()

    with pytest.raises(asyncio.CancelledError):
        await trying


@pytest.mark.parametrize("error", [SystemExit(2), asyncio.CancelledError(), PanicError()])
async def test_an_exit_and_a_cancellation_that_nobody_asked_for_are_failures(
    error: BaseException,
) -> None:
    """A command line that does not fit, or a cancelled job, of the host's own ends no program."""

    async def bad() -> None:
        raise error

    failed = await attempt(bad())

    assert Failed(error) == failed
    assert type(error).__name__ == Failed(error).reason


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit])
def test_an_attempt_lets_an_interruption_through(error: type[BaseException]) -> None:
    """A person at the keyboard wants the program to end, and Python a coroutine."""

    async def bad() -> None:
        raise error

    with pytest.raises(error):
        attempt(bad()).send(None)


@pytest.mark.parametrize("error", [ValueError(), SystemExit(2), PanicError()])
def test_what_is_not_awaited_fails_as_a_value_too(error: BaseException) -> None:
    """All but a person at the keyboard."""

    def bad(raised: BaseException) -> None:
        raise raised

    assert Failed(error) == attempt_call(lambda: bad(error))
    with pytest.raises(KeyboardInterrupt):
        attempt_call(lambda: bad(KeyboardInterrupt()))
