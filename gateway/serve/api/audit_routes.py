"""HTTP route of the audit log, for callers with the scope `audit:read`."""

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
    """Query parameters that select rows of the audit log."""

    since: datetime | None = None
    """Earliest time of the rows to return. A time without a zone is UTC."""
    after: Annotated[int, Field(ge=0, le=_MAX_PLACE)] = 0
    """The `next` of the previous page. 0 starts with the oldest row."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class AuditPage(models.Response):
    """Rows of the audit log in the order in which they were written."""

    rows: Sequence[AuditRow]
    next: int
    """Send this as `after` to read the next rows, including rows written later."""


@router.get("/api/audit")
async def audit(
    caller: CurrentCaller, gateway: ServedGateway, query: Annotated[AuditQuery, Query()]
) -> AuditPage:
    """Read the audit log, oldest rows first.

    Requires the scope `audit:read`. Callers with a tenant read only the rows of their tenant,
    unless they also have the scope `audit:read:all`.

    Raises:
        RefusedError: 404 if the gateway does not record an audit log.
        StoreError: If the log cannot be read.
    """
    if gateway.options.audit.record != "on":
        raise RefusedError(404, "no_audit_log", "this gateway does not record an audit log")
    log = audit_log_of(gateway.store)
    since = query.since or _EPOCH
    since = since if since.tzinfo else since.replace(tzinfo=UTC)
    tenant = "" if caller.holds({AUDIT_ALL}) else caller.tenant
    page = await in_thread(log.page, since.timestamp(), query.after, query.limit, tenant)
    return AuditPage(rows=[row for _, row in page], next=page[-1][0] if page else query.after)
