"""The audit log over HTTP, for callers with a right of its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from gateway.plugins.access.audit import AuditRow
from gateway.plugins.access.tables import audit_log_of
from gateway.runtime.background_loop import in_thread
from gateway.serve.api import models
from gateway.serve.api.problems import RefusedError
from gateway.serve.api.routing import AuditorRoute, CurrentCaller, ServedGateway
from gateway.serve.auth import AUDIT_ALL

router = APIRouter(route_class=AuditorRoute)
_MAX_PLACE = 2**63 - 1
_EPOCH = datetime.fromtimestamp(0, UTC)


class AuditQuery(models.Request):
    """Which rows are wanted."""

    since: datetime | None = None
    """The oldest time, in UTC unless it says otherwise."""
    after: Annotated[int, Field(ge=0, le=_MAX_PLACE)] = 0
    """The `next` of the page before."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class AuditPage(models.Response):
    """Rows in the order in which they were written."""

    rows: Sequence[AuditRow]
    next: int
    """What to give as `after` for the rows that follow, also later ones."""


@router.get("/api/audit")
async def audit(
    caller: CurrentCaller, gateway: ServedGateway, query: Annotated[AuditQuery, Query()]
) -> AuditPage:
    """Read the audit log, oldest rows first.

    Needs the scope `audit:read`. A caller of a tenant reads its own rows alone, unless it has the
    scope `audit:read:all`.

    Raises:
        RefusedError: 404 if no audit log is kept.
        StoreError: If the log cannot be read.
    """
    if gateway.options.audit.record != "on":
        raise RefusedError(404, "no_audit_log", "no audit log is kept here")
    log = audit_log_of(gateway.store)
    since = query.since or _EPOCH
    since = since if since.tzinfo else since.replace(tzinfo=UTC)
    tenant = "" if caller.holds({AUDIT_ALL}) else caller.tenant
    page = await in_thread(log.page, since.timestamp(), query.after, query.limit, tenant)
    return AuditPage(rows=[row for _, row in page], next=page[-1][0] if page else query.after)
