"""`gateway tune`: examples for tools, learned from requests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import TypeAdapter
from rich.console import Group, RenderableType

from gateway.cli import options
from gateway.cli.command import Output, command, command_group
from gateway.cli.exit_codes import NOTHING
from gateway.cli.session import CatalogSession, open_session, read_config
from gateway.cli.tables import pairs, table, to_jsonable
from gateway.config.config_file import read_text, write_text
from gateway.errors import InvalidRequestError
from gateway.options.environment import catalog_store_path
from gateway.plugins.quality.requests import RequestSet, parse
from gateway.plugins.quality.tuning import Tuning, undo
from gateway.plugins.quality.tuning import tune as learn
from gateway.runtime.json_models import read_value
from gateway.runtime.text import counted
from gateway.types import ANYONE, Caller

app = command_group()


@command(app)
def tune(
    requests: Annotated[
        Path | None, "File of requests and their tools, as for 'gateway eval'."
    ] = None,
    *,
    take_back: Annotated[bool, "--undo", "Undo the last run."] = False,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    strategy: options.Strategy = None,
    caller: Caller | None = None,
) -> Output:
    """Learn which tools serve which requests; keep the result if other requests improve.

    Exit code 1 if nothing is kept. The result is stored in tuning.json next to the catalog store.
    """
    read_config(config)
    if take_back == (requests is not None):
        raise InvalidRequestError("give a file of requests, or --undo")
    request_set = None
    if requests is not None:
        text = read_text(requests, missing=f"file {str(requests)!r} was not found")
        request_set = parse(text, where=str(requests))
    with open_session(config, strategy=strategy, documents=documents) as session:
        file = catalog_store_path(session.gateway.gateway.options).with_name("tuning.json")
        tools = _undo(session, file)
        if request_set is None:
            restored = f"{counted(tools, 'tool')} restored to the former examples"
            view = restored if tools else "nothing was learned, so there is nothing to undo"
            return Output({"tools": tools}, view, found=tools, code=session.code)
        tuning = _learn(session, request_set, caller or ANYONE)
        if tuning.kept:
            write_text(file, _adapter().dump_json(tuning, indent=1).decode() + "\n", expected="")
    code = session.code if tuning.kept else NOTHING
    return Output({"file": file, **to_jsonable(tuning)}, tuning_view(tuning), code=code)


def _learn(session: CatalogSession, requests: RequestSet, caller: Caller) -> Tuning:
    gateway = session.gateway.gateway
    return gateway.bridge.call(
        lambda: learn(gateway, requests, caller=caller, progress=session.on_progress)
    )


def _undo(session: CatalogSession, file: Path) -> int:
    """Undo the changes recorded in *file*; return the number of tools."""
    if not (text := read_text(file)):
        return 0
    tuning: Tuning = read_value(Tuning, TypeAdapter(object).validate_json(text), where=str(file))
    gateway = session.gateway.gateway
    gateway.bridge.call(lambda: undo(gateway, tuning))
    file.unlink()
    return len(tuning.before)


def _adapter() -> TypeAdapter[Tuning]:
    return TypeAdapter(Tuning)


def tuning_view(tuning: Tuning) -> RenderableType:
    """Return tables of the tools with new examples and of changed figures."""
    changes = [
        {"figure": name, **to_jsonable(change)}
        for name, change in (tuning.comparison.changes.items() if tuning.comparison else ())
    ]
    summary = {
        "requests": tuning.requests,
        "tools with examples": len(tuning.examples) or None,
        "no longer found": tuning.unfound,
    }
    tables = [table(changes, *changes[0])] if changes else []
    return Group(*tables, tuning.reason, pairs(summary))
