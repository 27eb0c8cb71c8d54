"""The circuit breaker: when a server is left alone, and when it is tried again."""

from __future__ import annotations

from gateway.mcp.breaker import Breaker
from gateway.options import UpstreamOptions
from gateway.testing import ManualClock


def breaker(clock: ManualClock, *, chance: float = 0.5) -> Breaker:
    """One that opens after two failures, for 4 s, then 8 s, then 10 s, without jitter."""
    options = UpstreamOptions(breaker_failures=2, breaker_s=4, breaker_max_s=10)
    return Breaker(options, clock=clock, random_share=lambda: chance)


def test_failures_in_a_row_open_it_and_an_answer_between_does_not() -> None:
    """A server that works now and then works."""
    circuit = breaker(ManualClock())
    circuit.record_failure()
    circuit.record_success()
    circuit.record_failure()
    once = circuit.state
    circuit.record_failure()

    assert ("closed", "open", 4.0) == (once, circuit.state, circuit.admit())


def test_one_probe_decides_and_the_others_wait() -> None:
    """A server that just came back must not be stormed."""
    clock = ManualClock()
    circuit = breaker(clock)
    circuit.record_failure()
    circuit.record_failure()
    clock.tick(4)

    assert "half_open" == circuit.state
    assert [0.0, 1.0, 1.0] == [circuit.admit() for _ in range(3)]
    assert "half_open" == circuit.state
    circuit.record_success()
    assert ("closed", 0.0) == (circuit.state, circuit.admit())


def test_each_failed_probe_doubles_the_wait_up_to_its_limit() -> None:
    """A server that is gone for good costs less and less."""
    clock = ManualClock()
    circuit = breaker(clock)
    circuit.record_failure()
    circuit.record_failure()
    waits = []
    for _ in range(3):
        clock.tick(circuit.admit())
        circuit.admit()
        circuit.record_failure()
        waits.append(circuit.admit())

    assert [8.0, 10.0, 10.0] == waits


def test_a_probe_that_says_nothing_leaves_the_next_one_to_probe() -> None:
    """Its caller went away: that is no news of the server."""
    clock = ManualClock()
    circuit = breaker(clock)
    circuit.record_failure()
    circuit.record_failure()
    clock.tick(4)
    circuit.admit()
    circuit.release()

    assert 0.0 == circuit.admit()


def test_waits_vary_by_a_fifth() -> None:
    """Many gateways must not come back at the same moment."""
    short, long = breaker(ManualClock(), chance=0.0), breaker(ManualClock(), chance=1.0)
    for circuit in (short, long):
        circuit.record_failure()
        circuit.record_failure()

    assert [3.2, 4.8] == [round(circuit.admit(), 6) for circuit in (short, long)]
