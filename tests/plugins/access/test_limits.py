"""Limits over a period that slides."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import LimitExceededError, StoreError
from gateway.options import AccessPolicy
from gateway.plugins.access import Charge, Limiter, MemoryCounters, charges_of
from gateway.testing import ManualClock
from gateway.types import Caller
from tests.plugins.access.test_policies import entity

PERIOD_S = 60.0


def charge(amount: float = 1.0, limit: float = 3.0) -> Charge:
    return Charge(key="k", amount=amount, limit=limit, period_s=PERIOD_S, rule="slow")


@given(
    st.lists(st.tuples(st.floats(0, 40), st.sampled_from([0.5, 1.0, 2.0])), min_size=1, max_size=30)
)
def test_no_period_holds_more_than_the_limit_and_who_waits_is_admitted(
    calls: list[tuple[float, float]],
) -> None:
    """Whatever the pauses; what is refused counts nothing."""
    counters, now, admitted = MemoryCounters(), 1_000_000.0, []
    for pause, amount in calls:
        now += pause
        wait, rule = counters.charge([charge(amount)], now)
        if rule:
            assert 0 < wait <= PERIOD_S * 61 / 60 + 1e-3
            now += wait
            assert (0.0, "") == counters.charge([charge(amount)], now)
        admitted.append((now, amount))

    for end, _ in admitted:
        within = sum(amount for at, amount in admitted if end - PERIOD_S < at <= end)
        assert within <= 3.0 + 1e-6


def test_of_several_limits_all_are_counted_or_none() -> None:
    """The longest wait is told."""
    counters, wide = MemoryCounters(), charge(limit=9.0)
    narrow = Charge(key="n", amount=1.0, limit=1.0, period_s=3600.0, rule="narrow")
    counters.charge([wide, narrow], 0.0)
    refused = [counters.charge([wide, narrow], 0.0) for _ in range(20)]
    left = [counters.charge([wide], 0.0)[1] for _ in range(9)]

    assert {(3660.0, "narrow")} == set(refused)
    assert [""] * 8 + ["slow"] == left


def test_users_of_one_name_in_two_tenants_are_counted_apart() -> None:
    """One tenant could use up what the other may call."""
    rule = AccessPolicy(action="limit", calls=5)
    keys = {
        charge.key
        for tenant in ("acme", "other")
        for charge in charges_of([("r", rule)], entity("a/x"), Caller(user="ada", tenant=tenant))
    }

    assert 2 == len(keys)


def test_an_alias_takes_of_the_limit_of_what_it_stands_for() -> None:
    """Else each alias of a tool would allow as many calls again."""
    counters, own = MemoryCounters(), entity("a/x")
    alias = replace(entity("v/y"), originals=("a/x",))
    rules = [
        ("r", AccessPolicy(action="limit", calls=2, by=("tool",))),
        ("s", AccessPolicy(action="limit", calls=2, by=("server",))),
        ("u", AccessPolicy(action="limit", calls=2)),
    ]
    refused = [
        counters.charge([*charges_of([rule], each, Caller())], 0.0)[1]
        for rule in rules
        for each in (own, alias, own)
    ]

    assert ["", "", "r", "", "", "s", "", "", "u"] == refused


def test_charges_of_one_counter_must_fit_together() -> None:
    """Two rules of one name that both match a call."""
    counters = MemoryCounters()

    assert "slow" == counters.charge([charge(2.0), charge(2.0)], 0.0)[1]
    assert "" == counters.charge([charge(1.0), charge(2.0)], 0.0)[1]


def test_each_limit_counts_by_what_it_names() -> None:
    """Limits of one name count together, at a cost of their own; calls and cost apart."""
    rule = AccessPolicy(action="limit", calls=5, cost=2.5, call_cost=0.5, by=("tenant", "server"))
    mine, other = (
        [*charges_of([("r", rule)], entity("a/x"), Caller(tenant=name))] for name in ("acme", "b")
    )
    cheap = AccessPolicy(action="limit", cost=9, call_cost=0.1, by=("tenant", "server"))
    (same,) = charges_of([("r", cheap)], entity("a/y"), Caller(tenant="acme", user="ada"))

    assert [(1.0, 5), (0.5, 2.5)] == [(each.amount, each.limit) for each in mine]
    assert not {each.key for each in mine} & {each.key for each in other}
    assert mine[1].key == same.key


class _Broken:
    def charge(self, charges: object, now: float) -> tuple[float, str]:
        raise StoreError("the disk is full")


async def test_without_the_store_this_process_counts_and_says_so() -> None:
    """A store that fails costs no call, and frees none from its limit."""
    clock = ManualClock(1_000_000.0)
    limiter = Limiter(_Broken(), wall=clock)

    (note,) = await limiter.charge([charge(limit=1.0)])
    waits = []
    for _ in range(2):
        try:
            await limiter.charge([charge(limit=1.0)])
        except LimitExceededError as error:
            waits.append(error.retry_after_s)
            clock.tick(error.retry_after_s)

    assert "limits_not_shared" == note.code
    assert "the disk is full" in note.detail
    assert 1 == len(waits)
