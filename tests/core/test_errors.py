"""The hierarchy of errors, and exceptions returned as values."""

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


def documented_tree() -> dict[str, str]:
    """Return the parents of each error, keyed by error, as the docstring of `gateway.errors` shows
    them.
    """
    parents: dict[str, str] = {}
    above: dict[int, str] = {0: "GatewayError"}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"    ( *)\+ (\w+)", line):
            depth, name = len(match[1]) // 2 + 1, match[2]
            above[depth] = name
            parents[name] = above[depth - 1]
    return parents


def test_documented_hierarchy_of_errors_matches_the_classes() -> None:
    bases = {error.__name__: error.__base__ for error in ERRORS if error is not GatewayError}

    assert {name: base.__name__ for name, base in bases.items() if base} == documented_tree()


def test_errors_have_attributes_for_programs() -> None:
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


def test_errors_derive_from_builtin_errors() -> None:
    assert issubclass(UnknownToolError, LookupError)
    assert issubclass(UnknownToolError, ValueError)


async def test_attempt_returns_the_result_or_the_failure() -> None:

    async def good() -> int:
        return 1

    async def bad() -> int:
        raise ZeroDivisionError("the secret")

    failed = await attempt(bad())

    assert 1 == await attempt(good())
    assert isinstance(failed, Failed)
    assert "ZeroDivisionError" == failed.reason


def test_reason_of_a_failure_omits_the_message_of_a_foreign_error() -> None:
    """A foreign message may contain a query or a key."""
    assert "a vector is all zeros" == Failed(EmbeddingError("a vector is all zeros")).reason
    assert "ValueError" == Failed(ValueError("sk-secret")).reason


async def test_attempt_raises_cancellation_of_the_caller() -> None:
    trying = asyncio.ensure_future(attempt(asyncio.Event().wait()))
    await asyncio.sleep(0)

    trying.cancel()

    with pytest.raises(asyncio.CancelledError):
        await trying


@pytest.mark.parametrize("error", [SystemExit(2), asyncio.CancelledError(), PanicError()])
async def test_attempt_returns_exits_and_cancellations_of_host_code(error: BaseException) -> None:

    async def bad() -> None:
        raise error

    failed = await attempt(bad())

    assert Failed(error) == failed
    assert type(error).__name__ == Failed(error).reason


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit])
def test_attempt_raises_interruptions(error: type[BaseException]) -> None:

    async def bad() -> None:
        raise error

    with pytest.raises(error):
        attempt(bad()).send(None)


@pytest.mark.parametrize("error", [ValueError(), SystemExit(2), PanicError()])
def test_attempt_call_returns_all_failures_but_interruptions(error: BaseException) -> None:

    def bad(raised: BaseException) -> None:
        raise raised

    assert Failed(error) == attempt_call(lambda: bad(error))
    with pytest.raises(KeyboardInterrupt):
        attempt_call(lambda: bad(KeyboardInterrupt()))
