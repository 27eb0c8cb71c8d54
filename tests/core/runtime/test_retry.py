"""Retries of connections and calls, and their pauses."""

from __future__ import annotations

import pytest

from gateway.errors import ClosedError, UpstreamError, UpstreamTimeoutError
from gateway.options import UpstreamOptions
from gateway.runtime.retry import retry_connect, retry_if_safe, retry_while_locked

OPTIONS = UpstreamOptions(connect_attempts=4, backoff_s=1.0, backoff_max_s=3.0)
UNREACHED = UpstreamError("s", "nothing answers", kind="connect", sent=False)
LOST = UpstreamError("s", "ended under way", kind="lost")
UNSENT = UpstreamError("s", "ended before", kind="lost", sent=False)


class Attempts:
    """Work that raises *faults* one after the other, then returns ``done``. Records the number of
    calls and the pauses between them.
    """

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.count = 0
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def __call__(self) -> str:
        self.count += 1
        if self.faults:
            raise self.faults.pop(0)
        return "done"


async def test_unreachable_server_is_retried_with_growing_pauses() -> None:
    """Full jitter: each pause is between zero and a bound that doubles up to its maximum."""
    pauses = []
    for _ in range(50):
        attempts = Attempts(UNREACHED, UNREACHED, UNREACHED)
        assert "done" == await retry_connect(attempts, OPTIONS, sleep=attempts.sleep)
        pauses.append(attempts.pauses)

    for bound, drawn in zip((1.0, 2.0, 3.0), zip(*pauses, strict=True), strict=True):
        assert all(0 <= pause <= bound for pause in drawn)
        assert max(drawn) > bound / 2
        assert len(set(drawn)) > 1


async def test_connection_attempts_are_limited() -> None:
    """The error of the last attempt is raised."""
    attempts = Attempts(*[UNREACHED] * 5)
    with pytest.raises(UpstreamError, match="nothing answers"):
        await retry_connect(attempts, OPTIONS, sleep=attempts.sleep)
    assert 4 == attempts.count


@pytest.mark.parametrize(
    "fault",
    [
        UpstreamError("s", "no such program", kind="config", sent=False),
        UpstreamError("s", "wrong key", kind="authorization", sent=False),
        UpstreamTimeoutError("s", "silent", sent=False),
        ClosedError("closed"),
    ],
)
async def test_permanent_failures_are_not_retried(fault: Exception) -> None:
    """Sending wrong credentials again can lock an account."""
    attempts = Attempts(fault)

    with pytest.raises(type(fault)):
        await retry_connect(attempts, OPTIONS, sleep=attempts.sleep)
    assert 1 == attempts.count


@pytest.mark.parametrize(
    ("faults", "repeatable", "count"),
    [
        ([UNSENT], False, 2),
        ([UNSENT], True, 2),
        ([LOST], False, 1),
        ([LOST], True, 2),
        ([LOST, LOST, LOST], True, 2),
        ([UNREACHED], True, 1),
        ([UpstreamTimeoutError("s", "silent")], True, 1),
        ([UpstreamError("s", "no")], True, 1),
    ],
)
async def test_call_is_repeated_once_only_if_safe(
    faults: list[Exception], *, repeatable: bool, count: int
) -> None:
    """A payment that runs twice is worse than a reported failure."""
    attempts = Attempts(*faults)

    if len(faults) < count:
        assert "done" == await retry_if_safe(attempts, repeatable=repeatable)
    else:
        with pytest.raises(UpstreamError):
            await retry_if_safe(attempts, repeatable=repeatable)
    assert count == attempts.count


def test_retry_while_locked_repeats_work_only_while_a_lock_is_held() -> None:
    """Other errors are raised, and so is the error of a lock that is held beyond the maximum
    time.
    """
    faults: list[Exception] = [OSError("locked"), OSError("locked"), ValueError("other")]

    def work() -> str:
        if faults:
            raise faults.pop(0)
        return "done"

    def attempt(max_s: float) -> str:
        return retry_while_locked(
            work, lambda error: isinstance(error, OSError), pause_s=0, max_s=max_s
        )

    with pytest.raises(ValueError, match="other"):
        attempt(60)
    assert "done" == attempt(60)
    faults.append(OSError("locked"))
    with pytest.raises(OSError, match="locked"):
        attempt(0)
