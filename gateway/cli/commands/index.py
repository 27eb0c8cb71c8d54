"""`gateway index`: build the index, or show the vector store that all commands share."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from typer import Argument, Option

from gateway.cli import options
from gateway.cli.command import command, command_group
from gateway.cli.exit_codes import NOTHING, OK
from gateway.cli.output import Output, to_jsonable, warn
from gateway.cli.session import choose_strategy, open_session, vector_store
from gateway.cli.tables import plain_table, vector_count
from gateway.errors import StoreError
from gateway.types import Diagnostic

app = command_group()


@command(app)
def index(
    action: Annotated[
        Literal["build", "show"],
        Argument(help="build: list and embed; show: what is stored, without servers."),
    ] = "build",
    *,
    rebuild: Annotated[bool, Option("--rebuild", help="Delete all stored vectors first.")] = False,
    config: options.Config = None,
) -> Output:
    """Build the index of the configured servers' tools, or show what is stored."""
    if action == "show":
        if rebuild:
            raise typer.BadParameter("--rebuild goes with build, not with show")
        return _show()
    if rebuild:
        _clear_store()
    with open_session(config, strategy=choose_strategy(None), relist=True) as session:
        report = session.report
    path = str(vector_store().path)
    rows = (
        ("tools", str(report.tools)),
        ("vectors", vector_count(report.vectors, embedded=report.embedded_texts)),
        ("graph", f"{report.graph_nodes} nodes, {report.graph_edges} edges"),
        ("time", f"{report.duration_s:.2f} s, starting the servers included"),
        ("vector store", path),
    )
    return Output(
        {"strategy": session.strategy, "store": path, **to_jsonable(report)},
        plain_table("index", "", rows=rows),
        session.code_for(report.tools),
    )


def _show() -> Output:
    count, size = _store_stats()
    path = str(vector_store().path)
    rows = [("vectors", str(count)), ("size", f"{size / 1024:.0f} KiB")]
    if not count:
        rows.append(("", "Nothing is stored yet: gateway index build"))
    return Output(
        {"store": path, "bytes": size, "vectors": count},
        plain_table("vector store", path, rows=rows),
        OK if count else NOTHING,
    )


def _clear_store() -> None:
    store = vector_store()
    try:
        store.clear()
    except StoreError as error:
        _warn_if_rebuilt(error)
    finally:
        store.close()


def _store_stats() -> tuple[int, int]:
    """Return the count of vectors and the bytes of the file; no file is made."""
    store = vector_store()
    if not store.path.is_file():
        return 0, 0
    try:
        return store.count(), store.path.stat().st_size
    except StoreError as error:
        _warn_if_rebuilt(error)
        return 0, 0
    finally:
        store.close()


def _warn_if_rebuilt(error: StoreError) -> None:
    """Warn of a corrupt file that was set aside; raise any other error."""
    if not error.rebuilt:
        raise error
    warn([Diagnostic(stage="store", code="store_rebuilt", detail=str(error))])
