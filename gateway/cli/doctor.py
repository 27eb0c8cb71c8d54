"""`gateway doctor`: everything that can be wrong here, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from gateway.cli.checks import Check, configuration, folders, machine, models, servers
from gateway.cli.exits import OK, UNAVAILABLE, USAGE
from gateway.cli.jsonable import jsonable
from gateway.cli.screen import emit, out, printable
from gateway.cli.servers import tested
from gateway.cli.show import plain_table
from gateway.manifests.manifest import Manifest

_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(*, config: Path | None, connect: bool, as_json: bool) -> int:
    """Look at everything; start servers only if *connect*."""
    manifest, read = configuration(config)
    checks = [*machine(), *models(), *folders(), *read]
    if manifest is not None:
        checks += servers(config, manifest)
        if connect:
            checks += _connected(manifest)
    failed = [each for each in checks if each.verdict == "fail"]
    if as_json:
        emit({"healthy": not failed, "checks": jsonable(checks)})
    else:
        _show(checks)
    if not failed:
        return OK
    return USAGE if any(each.name == "configuration" for each in failed) else UNAVAILABLE


def _connected(manifest: Manifest) -> Iterator[Check]:
    for name in (*manifest.servers, *manifest.virtual):
        done = tested(name, manifest)
        told = "; ".join(note.detail for note in done.diagnostics)
        if done.works:
            told = told or f"{len(done.tools)} tools in {done.seconds:.2f} s"
            yield Check(name=f"connect {name}", verdict="ok", told=told)
        else:
            yield Check(name=f"connect {name}", verdict="fail", told=told)


def _show(checks: list[Check]) -> None:
    table = plain_table("", "", "", "what to do")
    for each in checks:
        table.add_row(
            Text(each.verdict, style=_STYLES[each.verdict]),
            printable(each.name),
            printable(each.told),
            printable(each.todo),
        )
    out().print(table)
