"""What is tried again, how far apart, and what is never sent twice."""

from __future__ import annotations

import pytest

from gateway.errors import ClosedError, UpstreamError, UpstreamTimeoutError
from gateway.mcp.retry import retry_connect, retry_if_safe, retry_while_locked
from gateway.options import UpstreamOptions

OPTIONS = UpstreamOptions(connect_attempts=4, backoff_s=1.0, backoff_max_s=3.0)
UNREACHED = UpstreamError("s", "nothing answers", kind="connect", sent=False)


class Tries:
    """Raises each of *faults* in turn, then gives ``done``; remembers how long it was let wait."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.made = 0
        self.waits: list[float] = []

    async def __call__(self) -> str:
        self.made += 1
        if self.faults:
            raise self.faults.pop(0)
        return "done"

    async def wait(self, seconds: float) -> None:
        self.waits.append(seconds)


async def test_a_server_that_cannot_be_reached_is_tried_again_within_growing_limits() -> None:
    """Full jitter: each wait lies between nothing and a bound that doubles to its maximum."""
    tries = Tries(UNREACHED, UNREACHED, UNREACHED)

    assert "done" == await retry_connect(tries, OPTIONS, sleep=tries.wait)
    assert [True, True, True] == [
        0 <= wait <= bound for wait, bound in zip(tries.waits, (1.0, 2.0, 3.0), strict=True)
    ]


async def test_attempts_have_an_end() -> None:
    """The last failure is the one that is told."""
    tries = Tries(*[UNREACHED] * 5)

    with pytest.raises(UpstreamError, match="nothing answers"):
        await retry_connect(tries, OPTIONS, sleep=tries.wait)
    assert 4 == tries.made


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
    tries = Tries(fault)

    with pytest.raises(type(fault)):
        await retry_connect(tries, OPTIONS, sleep=tries.wait)
    assert (1, []) == (tries.made, tries.waits)


LOST = UpstreamError("s", "ended under way", kind="lost")
UNSENT = UpstreamError("s", "ended before", kind="lost", sent=False)


@pytest.mark.parametrize(
    ("fault", "repeatable", "made"),
    [
        (UNSENT, False, 2),
        (UNSENT, True, 2),
        (LOST, False, 1),
        (LOST, True, 2),
        (UNREACHED, True, 1),
        (UpstreamTimeoutError("s", "silent"), True, 1),
        (UpstreamError("s", "no"), True, 1),
        (ClosedError("closed"), True, 1),
    ],
)
async def test_a_call_is_sent_again_only_if_it_never_left_or_may_run_twice(
    fault: Exception, *, repeatable: bool, made: int
) -> None:
    """Money sent twice is worse than a failure that is told."""
    tries = Tries(fault)

    if made == 1:
        with pytest.raises(type(fault)):
            await retry_if_safe(tries, repeatable=repeatable)
    else:
        assert "done" == await retry_if_safe(tries, repeatable=repeatable)
    assert made == tries.made


async def test_a_call_is_sent_twice_at_the_most() -> None:
    """A server that dies of a request must not die of it for ever."""
    tries = Tries(LOST, LOST, LOST)

    with pytest.raises(UpstreamError):
        await retry_if_safe(tries, repeatable=True)
    assert 2 == tries.made


def test_what_others_hold_is_tried_until_they_let_go_and_nothing_else_is() -> None:
    """A fault of another kind is told at once, and so is one that lasts too long."""
    faults: list[Exception] = [OSError("held"), OSError("held"), ValueError("other")]

    def work() -> str:
        if faults:
            raise faults.pop(0)
        return "done"

    def tried(most_s: float) -> str:
        return retry_while_locked(
            work, lambda each: isinstance(each, OSError), pause_s=0, max_s=most_s
        )

    with pytest.raises(ValueError, match="other"):
        tried(60)
    assert "done" == tried(60)
    faults.append(OSError("held"))
    with pytest.raises(OSError, match="held"):
        tried(0)
