"""`gateway approve`: look at what changed since it was approved, and approve it."""

from __future__ import annotations

from pathlib import Path

from gateway.catalog.approvals import LAUNCH
from gateway.cli.exits import NOTHING, OK
from gateway.cli.screen import emit, out, printable
from gateway.cli.settings import manifest_at
from gateway.errors import InvalidRequestError
from gateway.manifests.manifest import Manifest
from gateway.options import Options
from gateway.options.environment import catalog_store_path
from gateway.storage.listing_store import SqliteRecords


def approve(names: list[str], *, config: Path | None, everything: bool, as_json: bool) -> int:
    """Approve *names* (servers, or tools as ``server/tool``) as they were seen last.

    Without names, list what changed. No server is started.

    Raises:
        InvalidRequestError: A name belongs to no configured server.
        StoreError: The catalog store cannot be used.
    """
    manifest = manifest_at(config)
    records = SqliteRecords(catalog_store_path(Options()))
    try:
        changed = {
            _shown(server, name): (manifest.owner(server), name)
            for server in (*manifest.servers, *manifest.virtual)
            for name in sorted(records.changed(manifest.owner(server)))
        }
        chosen = list(changed) if everything else _chosen(names, changed, manifest)
        for shown in chosen:
            owner, name = changed[shown]
            records.approve(owner, [name])
    finally:
        records.close()
    left = [shown for shown in changed if shown not in chosen]
    if as_json:
        emit({"approved": chosen, "changed": left})
    else:
        told = [
            *(f"approved  {shown}" for shown in chosen),
            *(f"changed   {each}" for each in left),
        ]
        out().print(printable("\n".join(told) or "nothing changed"), soft_wrap=True)
    return OK if chosen or not names else NOTHING


def _shown(server: str, name: str) -> str:
    return server if name == LAUNCH else f"{server}/{name}"


def _chosen(names: list[str], changed: dict[str, tuple[str, str]], manifest: Manifest) -> list[str]:
    known = (*manifest.servers, *manifest.virtual)
    for name in names:
        if name.partition("/")[0] not in known:
            told = ", ".join(known) or "none"
            raise InvalidRequestError(f"{name!r} belongs to no configured server: {told}")
    # A server's name stands for its command line and for all of its tools.
    return [shown for shown in changed if shown in names or shown.partition("/")[0] in names]
