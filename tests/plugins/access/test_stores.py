"""Conformance of audit logs and limit counters in every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.plugins.access import AuditLog, AuditRow, Charge, audit_log_of, counters_of, read_all
from tests.core.storage.conformance.stores import Opener


@pytest.fixture
def audit_log(opened: Opener) -> AuditLog:
    return audit_log_of(opened())


def row(at: float, **fields: str) -> AuditRow:
    return AuditRow(at=at, action="call", decision="allowed", **fields)


def test_audit_log_returns_pages_of_rows_in_order(audit_log: AuditLog) -> None:
    rows = [row(float(time), user="ada", entity="a/ü") for time in (1, 2, 3, 4, 5)]
    for written in rows:
        audit_log.append(written)

    first = audit_log.page(0.0, 0, 2)
    second = audit_log.page(0.0, first[-1][0], 10)

    assert rows == [written for _, written in (*first, *second)]
    assert rows[3:] == [written for _, written in read_all(audit_log, 4.0)]
    assert [] == [*audit_log.page(0.0, second[-1][0], 10)]


def test_audit_log_returns_the_rows_of_one_tenant(audit_log: AuditLog) -> None:
    """Rows that contain the tenant's name in another field are not returned."""
    expected = [row(1.0, tenant='ac"me'), row(4.0, tenant='ac"me', user="ü")]
    others = [row(2.0, tenant="ac"), row(3.0, detail='"tenant": "ac\\"me"'), row(5.0)]
    for written in (expected[0], *others, expected[1]):
        audit_log.append(written)

    first = audit_log.page(0.0, 0, 1, 'ac"me')

    assert expected == [
        written for _, written in (*first, *audit_log.page(0.0, first[0][0], 10, 'ac"me'))
    ]
    assert others[:1] == [written for _, written in audit_log.page(0.0, 0, 10, "ac")]


def test_audit_log_forgets_old_rows_and_never_reuses_an_id(audit_log: AuditLog) -> None:
    """A reader that continues after an id must not miss rows."""
    for time in (1.0, 2.0):
        audit_log.append(row(time))
    ((_, _), (last, _)) = read_all(audit_log)

    assert 2 == audit_log.forget(3.0)
    audit_log.append(row(4.0))

    ((place, remaining),) = read_all(audit_log)
    assert (4.0, True) == (remaining.at, place > last)


def test_two_processes_with_one_store_admit_no_more_calls_than_the_limit(opened: Opener) -> None:
    counters = [
        counter for counter in map(counters_of, (opened(), opened())) if counter is not None
    ]
    charge = Charge(key="k", amount=1.0, limit=7.0, period_s=3600.0, rule="slow")

    with ThreadPoolExecutor(4) as threads:
        charged = [*threads.map(lambda at: counters[at % 2].charge([charge], 1e6), range(20))]

    assert [""] * 7 + ["slow"] * 13 == sorted(rule for _, rule in charged)
    assert (0.0, "") == counters[0].charge([charge], 1e6 + 2 * 3600.0)
