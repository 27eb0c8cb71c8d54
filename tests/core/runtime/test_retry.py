"""What is tried again, how far apart, what is never sent twice, and who is left alone."""

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
    """Raises each of *faults* in turn, then returns ``done``; counts, and notes the pauses."""

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


async def test_a_server_that_cannot_be_reached_is_tried_again_within_growing_limits() -> None:
    """Full jitter: each pause lies between nothing and a bound that doubles to its maximum."""
    pauses = []
    for _ in range(50):
        attempts = Attempts(UNREACHED, UNREACHED, UNREACHED)
        assert "done" == await retry_connect(attempts, OPTIONS, sleep=attempts.sleep)
        pauses.append(attempts.pauses)

    for bound, drawn in zip((1.0, 2.0, 3.0), zip(*pauses, strict=True), strict=True):
        assert all(0 <= pause <= bound for pause in drawn)
        assert max(drawn) > bound / 2
        assert len(set(drawn)) > 1


async def test_attempts_have_an_end() -> None:
    """The last failure is the one that is raised."""
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
async def test_what_will_not_mend_itself_is_not_tried_again(fault: Exception) -> None:
    """A wrong key tried three times is a locked account."""
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
async def test_a_call_is_sent_again_once_and_only_if_it_never_left_or_may_run_twice(
    faults: list[Exception], *, repeatable: bool, count: int
) -> None:
    """Money sent twice is worse than a failure that is reported."""
    attempts = Attempts(*faults)

    if len(faults) < count:
        assert "done" == await retry_if_safe(attempts, repeatable=repeatable)
    else:
        with pytest.raises(UpstreamError):
            await retry_if_safe(attempts, repeatable=repeatable)
    assert count == attempts.count


def test_what_others_lock_is_tried_until_it_is_free_and_nothing_else_is() -> None:
    """A fault of another kind is raised at once, and so is one that lasts too long."""
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
