"""`gateway graph validate`: what is wrong with Markdown-LD documents, file by file.

What was passed over counts as wrong: whoever wrote it meant something by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from gateway.cli import graphing
from gateway.cli.exits import OK, USAGE
from gateway.cli.jsonable import jsonable
from gateway.cli.screen import emit, note, out, printable
from gateway.cli.settings import opened
from gateway.cli.show import plain_table
from gateway.search.index.toolgraphs import names_of
from graphs import Document, ExtraError, Fault, Notice, collect, extract_facts
from graphs import validate as shacl


def validate(path: Path, *, config: Path | None, as_json: bool) -> int:
    """Check the documents at *path*, which may name the tools of *config*."""
    with graphing.ours():
        documents, notices = collect(path)
    code, names = _names(config)
    checked, faults = _faults(documents, names)
    if as_json:
        told = {"documents": len(documents), "notices": jsonable(notices)}
        emit({**told, "shacl": checked, "faults": jsonable(faults)})
    else:
        out().print(_shown(documents, notices, faults))
    wrong = bool(notices) or any(fault.severity == "violation" for fault in faults)
    return USAGE if wrong else code


def _names(config: Path | None) -> tuple[int, Mapping[str, str]]:
    if config is None:
        return OK, {}
    with opened(config, strategy="graph") as session:
        return session.code, names_of(session.gateway.list_tools())


def _faults(
    documents: Sequence[Document], names: Mapping[str, str]
) -> tuple[bool, tuple[Fault, ...]]:
    """Say whether SHACL looked, and what it found."""
    try:
        return True, shacl(extract_facts(documents, names=names))
    except ExtraError as error:
        note(f"the graph's shape was not checked: {error}")
        return False, ()


def _shown(
    documents: Sequence[Document], notices: Sequence[Notice], faults: Sequence[Fault]
) -> RenderableType:
    told: list[RenderableType] = [Text(f"{len(documents)} documents read.")]
    if notices:
        table = plain_table("file", "line", "code", "detail")
        for each in notices:
            table.add_row(printable(each.path), str(each.line), each.code, printable(each.detail))
        told.append(table)
    if faults:
        table = plain_table("node", "severity", "predicate", "value", "detail")
        for fault in faults:
            cells = fault.node, fault.severity, fault.path, fault.value, fault.detail
            table.add_row(*map(printable, cells))
        told.append(table)
    if not notices and not faults:
        told.append(Text("Nothing is wrong."))
    return Group(*told)
