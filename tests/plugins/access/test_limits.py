"""Limits over a sliding period."""

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
def test_limiter_never_exceeds_the_limit_in_a_period_and_admits_after_the_wait(
    calls: list[tuple[float, float]],
) -> None:
    """A refused call is not counted."""
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
        within = sum(amount for time, amount in admitted if end - PERIOD_S < time <= end)
        assert within <= 3.0 + 1e-6


def test_counters_count_all_charges_of_a_call_or_none() -> None:
    """If several charges exceed their limits, the longest wait is returned."""
    counters, wide = MemoryCounters(), charge(limit=9.0)
    narrow = Charge(key="n", amount=1.0, limit=1.0, period_s=3600.0, rule="narrow")
    counters.charge([wide, narrow], 0.0)
    refused = [counters.charge([wide, narrow], 0.0) for _ in range(20)]
    rules = [counters.charge([wide], 0.0)[1] for _ in range(9)]

    assert {(3660.0, "narrow")} == set(refused)
    assert [""] * 8 + ["slow"] == rules


def test_users_with_one_name_in_two_tenants_have_separate_counters() -> None:
    """Otherwise one tenant could exhaust the limit of another."""
    rule = AccessPolicy(action="limit", calls=5)
    keys = {
        charge.key
        for tenant in ("acme", "other")
        for charge in charges_of([("r", rule)], entity("a/x"), Caller(user="ada", tenant=tenant))
    }

    assert 2 == len(keys)


def test_alias_counts_towards_the_limit_of_its_original() -> None:
    """Otherwise each alias would raise the limit."""
    counters, original = MemoryCounters(), entity("a/x")
    alias = replace(entity("v/y"), originals=("a/x",))
    rules = [
        ("r", AccessPolicy(action="limit", calls=2, by=("tool",))),
        ("s", AccessPolicy(action="limit", calls=2, by=("server",))),
        ("u", AccessPolicy(action="limit", calls=2)),
    ]
    refused = [
        counters.charge([*charges_of([rule], called, Caller())], 0.0)[1]
        for rule in rules
        for called in (original, alias, original)
    ]

    assert ["", "", "r", "", "", "s", "", "", "u"] == refused


def test_charges_with_the_same_counter_are_added_before_the_check() -> None:
    """Two rules with the same name may both match a call."""
    counters = MemoryCounters()

    assert "slow" == counters.charge([charge(2.0), charge(2.0)], 0.0)[1]
    assert "" == counters.charge([charge(1.0), charge(2.0)], 0.0)[1]


def test_limit_rule_counts_separately_for_each_value_of_its_by_fields() -> None:
    """Rules with the same name share counters. Calls and costs are counted separately."""
    rule = AccessPolicy(action="limit", calls=5, cost=2.5, call_cost=0.5, by=("tenant", "server"))
    mine, other = (
        [*charges_of([("r", rule)], entity("a/x"), Caller(tenant=name))] for name in ("acme", "b")
    )
    cheap = AccessPolicy(action="limit", cost=9, call_cost=0.1, by=("tenant", "server"))
    (same,) = charges_of([("r", cheap)], entity("a/y"), Caller(tenant="acme", user="ada"))

    assert [(1.0, 5), (0.5, 2.5)] == [(charge.amount, charge.limit) for charge in mine]
    assert not {charge.key for charge in mine} & {charge.key for charge in other}
    assert mine[1].key == same.key


class _Broken:
    def charge(self, charges: object, now: float) -> tuple[float, str]:
        raise StoreError("the disk is full")


async def test_limiter_counts_in_its_process_and_reports_if_the_store_fails() -> None:
    """A failing store neither fails the call nor lifts the limit."""
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
