"""The audit log, read over HTTP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gateway.gateway import Gateway
from gateway.options import AuditOptions
from gateway.serve.auth import AUDIT, AUDIT_ALL, WRITE, BearerToken
from gateway.types import Caller
from tests.apps.serve.api.client import open_client
from tests.conftest import PATIENT, OpenGateway
from tests.fakes import tool

AUDITOR = {"Authorization": "Bearer of-the-auditor-0123"}


def audited(open_gateway: OpenGateway, folder: Path) -> Gateway:
    own_options = replace(
        PATIENT, audit=AuditOptions(record="on"), catalog_store_path=folder / "catalog.sqlite3"
    )
    return open_gateway([tool("read_letter")], options=own_options)


async def test_audit_log_is_read_in_pages_with_the_scope(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    gateway = audited(open_gateway, tmp_path)
    caller = Caller(user="eve", scopes=frozenset({AUDIT}))
    auditor = BearerToken.from_secret("auditor", "of-the-auditor-0123", caller)
    body = {"description": "Plans journeys."}
    async with open_client(gateway, scopes=[WRITE], tokens=[auditor]) as client:
        await client.put("/api/entities/agent:catalog/planner", json=body)
        await client.patch("/api/entities/agent:catalog/planner", json={"status": "draft"})
        await client.delete("/api/entities/agent:catalog/planner")
        refused = await client.get("/api/audit")
        first = (await client.get("/api/audit?limit=4", headers=AUDITOR)).json()
        response = (await client.get(f"/api/audit?after={first['next']}", headers=AUDITOR)).json()
        later = await client.get("/api/audit?since=2999-01-01T00:00:00", headers=AUDITOR)

    assert (403, "scope_missing") == (refused.status_code, refused.json()["code"])
    rows = [*first["rows"], *response["rows"]]
    assert (4, 2) == (len(first["rows"]), len(response["rows"]))
    assert ["allowed", "ok"] * 3 == [row["decision"] for row in rows]
    assert ["catalog.put", "catalog.change", "catalog.remove"] == [
        row["action"] for row in rows[::2]
    ]
    assert {("me", "agent:catalog/planner")} == {(row["token"], row["entity"]) for row in rows}
    assert ([], 0) == (later.json()["rows"], later.json()["next"])


async def test_caller_with_a_tenant_reads_only_audit_rows_of_its_tenant(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """With the scope `audit:read:all`, the caller reads all rows.

    Callers without a tenant belong to the host, and also read all rows.
    """
    gateway = audited(open_gateway, tmp_path)
    readers = {
        "acme": Caller(tenant="acme", scopes=frozenset({AUDIT})),
        "both": Caller(tenant="acme", scopes=frozenset({AUDIT, AUDIT_ALL})),
        "host": Caller(scopes=frozenset({AUDIT})),
    }
    tokens = [
        BearerToken.from_secret(name, f"token-of-{name}-0123", caller)
        for name, caller in readers.items()
    ]
    async with open_client(gateway, tokens=tokens) as client:
        for tenant in ("acme", "globex", "acme"):
            await gateway.invoke("read_letter", {}, caller=Caller(user="ada", tenant=tenant))
        pages = {
            name: (
                await client.get(
                    "/api/audit?limit=3", headers={"Authorization": f"Bearer token-of-{name}-0123"}
                )
            ).json()
            for name in readers
        }

    tenants = {name: [row["tenant"] for row in page["rows"]] for name, page in pages.items()}
    assert ["acme"] * 3 == tenants["acme"]
    assert ["acme", "acme", "globex"] == tenants["both"] == tenants["host"]


async def test_reading_a_missing_audit_log_returns_404(open_gateway: OpenGateway) -> None:
    async with open_client(open_gateway(), scopes=[AUDIT]) as client:
        answer = await client.get("/api/audit")

    assert (404, "no_audit_log") == (answer.status_code, answer.json()["code"])
