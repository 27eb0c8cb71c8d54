"""Policies for two users, a limit, and what the audit log tells of it.

python examples/policies.py
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway import Gateway, Options
from gateway.errors import LimitExceededError, UnknownToolError
from gateway.options import AccessPolicy, AuditOptions
from gateway.plugins.access.audit import read_all
from gateway.plugins.access.tables import audit_log_of
from gateway.types import Caller

POLICIES = (
    AccessPolicy(action="allow", tools=("*/delete_*",), scopes=("ops",)),
    AccessPolicy(action="deny", tools=("*/delete_*",), name="no deletes"),
    AccessPolicy(action="redact", paths=("owner.email",)),
    AccessPolicy(action="limit", calls=2, per="hour", name="two an hour"),
)
ADA, BOB = Caller(user="ada", scopes=frozenset({"ops"})), Caller(user="bob")


def delete_repository(name: str) -> str:
    """Delete a repository."""
    return f"{name} is gone"


def show_repository(name: str) -> dict[str, object]:
    """Show a repository and its owner."""
    return {"name": name, "owner": {"name": "Ada", "email": "ada@example.org"}}


async def main() -> None:
    """Call tools for both users, and print what came of it."""
    with TemporaryDirectory() as folder:  # leave it out to keep the log in your own cache folder
        options = Options(
            policies=POLICIES,
            audit=AuditOptions(record="on"),
            catalog_store_path=Path(folder) / "catalog.sqlite3",
        )
        await show(Gateway(strategy="graph", options=options))


async def show(opened: Gateway) -> None:
    """Call what each user may, and what it may not."""
    async with opened as gateway:
        gateway.add_tool(delete_repository)
        gateway.add_tool(show_repository)
        for caller in (ADA, BOB):
            for tool in ("delete_repository", "show_repository", "show_repository"):
                try:
                    result = await gateway.invoke(tool, {"name": "demo"}, caller=caller)
                except (UnknownToolError, LimitExceededError) as error:
                    print(f"{caller.user}: {error}")
                else:
                    print(f"{caller.user}: {result.text}")
        for _, row in read_all(audit_log_of(gateway.store)):
            print(f"{row.user} {row.entity} {row.decision} {row.rule}".strip())


if __name__ == "__main__":
    asyncio.run(main())
