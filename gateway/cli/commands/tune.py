"""`gateway tune`."""

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
from gateway.types import ANYONE, Caller

app = command_group()


@command(app)
def tune(
    requests: Annotated[Path | None, "Requests and their tools, as for 'gateway eval'."] = None,
    *,
    take_back: Annotated[bool, "--undo", "Take back what was learned."] = False,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    strategy: options.Strategy = None,
    caller: Caller | None = None,
) -> Output:
    """Learn which tools serve which requests, and keep it if others of them gain.

    Exit code 1 if nothing is kept. What was learned stands in tuning.json beside the catalog store.
    """
    read_config(config)
    if take_back == (requests is not None):
        raise InvalidRequestError("name a file of requests, or --undo")
    wanted = None
    if requests is not None:
        text = read_text(requests, missing=f"there is no file {str(requests)!r}")
        wanted = parse(text, where=str(requests))
    with open_session(config, strategy=strategy, documents=documents) as session:
        file = catalog_store_path(session.gateway.gateway.options).with_name("tuning.json")
        tools = _undo(session, file)
        if wanted is None:
            view = f"{tools} tools have the examples of before" if tools else "nothing was learned"
            return Output({"tools": tools}, view, found=tools, code=session.code)
        tuning = _learn(session, wanted, caller or ANYONE)
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
    """Take back what *file* says was learned; return of how many tools."""
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
    """Return what was learned, and what it changed."""
    changes = [
        {"figure": name, **to_jsonable(change)}
        for name, change in (tuning.comparison.changes.items() if tuning.comparison else ())
    ]
    summary = {
        "requests": tuning.requests,
        "tools with examples": len(tuning.examples) or None,
        "would be found no longer": tuning.unfound,
    }
    tables = [table(changes, *changes[0])] if changes else []
    return Group(*tables, tuning.reason, pairs(summary))
