"""What every audit log, and every place of counters, promises."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.plugins.access import AuditLog, AuditRow, Charge, audit_log_of, counters_of, read_all
from tests.core.storage.conformance.stores import Opener


@pytest.fixture
def log(opened: Opener) -> AuditLog:
    return audit_log_of(opened())


def row(at: float, **fields: str) -> AuditRow:
    return AuditRow(at=at, action="call", decision="allowed", **fields)


def test_rows_are_read_in_their_order_and_page_by_page(log: AuditLog) -> None:
    """As they were written, in any script; from a time on."""
    rows = [row(float(at), user="ada", entity="a/ü") for at in (1, 2, 3, 4, 5)]
    for each in rows:
        log.append(each)

    first = log.page(0.0, 0, 2)
    rest = log.page(0.0, first[-1][0], 10)

    assert rows == [each for _, each in (*first, *rest)]
    assert rows[3:] == [each for _, each in read_all(log, 4.0)]
    assert [] == [*log.page(0.0, rest[-1][0], 10)]


def test_the_rows_of_one_tenant_are_read_alone(log: AuditLog) -> None:
    """Whatever texts other rows hold."""
    own = [row(1.0, tenant='ac"me'), row(4.0, tenant='ac"me', user="ü")]
    others = [row(2.0, tenant="ac"), row(3.0, detail='"tenant": "ac\\"me"'), row(5.0)]
    for each in (own[0], *others, own[1]):
        log.append(each)

    first = log.page(0.0, 0, 1, 'ac"me')

    assert own == [each for _, each in (*first, *log.page(0.0, first[0][0], 10, 'ac"me'))]
    assert others[:1] == [each for _, each in log.page(0.0, 0, 10, "ac")]


def test_old_rows_are_forgotten_and_no_place_is_given_twice(log: AuditLog) -> None:
    """Whoever reads on after a place misses nothing."""
    for at in (1.0, 2.0):
        log.append(row(at))
    ((_, _), (last, _)) = read_all(log)

    assert 2 == log.forget(3.0)
    log.append(row(4.0))

    ((place, left),) = read_all(log)
    assert (4.0, True) == (left.at, place > last)


def test_stores_of_one_place_count_together(opened: Opener) -> None:
    """Many threads of two processes: as many calls are admitted as the limit says."""
    counters = [each for each in map(counters_of, (opened(), opened())) if each is not None]
    charge = Charge(key="k", amount=1.0, limit=7.0, period_s=3600.0, rule="slow")

    with ThreadPoolExecutor(4) as threads:
        charged = [*threads.map(lambda at: counters[at % 2].charge([charge], 1e6), range(20))]

    assert [""] * 7 + ["slow"] * 13 == sorted(rule for _, rule in charged)
    assert (0.0, "") == counters[0].charge([charge], 1e6 + 2 * 3600.0)
