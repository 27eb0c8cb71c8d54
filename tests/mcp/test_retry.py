"""What is tried again, how far apart, what is never sent twice, and who is left alone."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from gateway.errors import ClosedError, UpstreamError, UpstreamTimeoutError
from gateway.mcp.retry import Breaker, retry_connect, retry_if_safe, retry_while_locked
from gateway.options import UpstreamOptions
from gateway.testing import ManualClock

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


def tripped(clock: ManualClock) -> Breaker:
    """One that opens after two failures, for 4 s, then 8 s, then 10 s; it is open."""
    options = UpstreamOptions(breaker_failures=2, breaker_s=4, breaker_max_s=10)
    circuit = Breaker(options, clock=clock)
    circuit.record_failure()
    circuit.record_success()
    circuit.record_failure()
    assert not circuit.is_open
    circuit.record_failure()
    return circuit


def test_failures_in_a_row_open_the_breaker_and_an_answer_between_does_not() -> None:
    """A server that works now and then works; waits vary by a fifth."""
    circuit = tripped(ManualClock())

    assert circuit.is_open
    with circuit.admit() as wait_s:
        assert pytest.approx(4, rel=0.2) == wait_s


@pytest.mark.parametrize("has_answered", [False, True])
def test_one_probe_decides_and_the_others_wait(*, has_answered: bool) -> None:
    """A server that just came back must not be stormed; a caller that left says nothing of it."""
    clock = ManualClock()
    circuit = tripped(clock)
    clock.tick(5)
    with circuit.admit() as probe_s:
        for _ in range(2):
            with circuit.admit() as wait_s:
                assert 1.0 == wait_s
        if has_answered:
            circuit.record_success()

    with circuit.admit() as next_s, circuit.admit() as other_s:
        assert (0.0, 0.0, 0.0 if has_answered else 1.0) == (probe_s, next_s, other_s)


@pytest.mark.parametrize("fails", [False, True])
def test_a_use_from_before_does_not_end_the_probe(*, fails: bool) -> None:
    """Whoever called while all was well, and goes away or fails now, has nothing to do with it."""
    clock = ManualClock()
    circuit = Breaker(UpstreamOptions(breaker_failures=1, breaker_s=4), clock=clock)
    with ExitStack() as probing:
        with circuit.admit():
            circuit.record_failure()
            clock.tick(5)
            assert 0.0 == probing.enter_context(circuit.admit())
            if fails:
                circuit.record_failure()
                clock.tick(20)
        with circuit.admit() as wait_s:
            assert 1.0 == wait_s


def test_each_failed_probe_doubles_the_wait_up_to_its_limit() -> None:
    """A server that is gone for good costs less and less."""
    clock = ManualClock()
    circuit = tripped(clock)
    waits = []
    for _ in range(4):
        with circuit.admit() as wait_s:
            waits.append(wait_s)
        clock.tick(wait_s)
        with circuit.admit():
            circuit.record_failure()

    assert pytest.approx([4.0, 8.0, 10.0, 10.0], rel=0.2) == waits
