"""What `gateway graph` does with the catalog's graph: show, export, derive, query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from gateway.cli import graphshow
from gateway.cli.exits import NOTHING, OK
from gateway.cli.jsonable import jsonable
from gateway.cli.screen import emit, note, out, printable
from gateway.cli.settings import Opened, opened
from gateway.errors import ConfigError, InvalidRequestError
from gateway.index.graph_documents import GraphFormat, graph_of, node_named
from gateway.index.snapshot import Snapshot
from gateway.search.edges import around, edges, name_of, written
from graphs import Document, GraphError, QueryError, Sparql, render, write


@contextmanager
def ours() -> Iterator[None]:
    """Let faults of graphs end a command as our own do.

    Raises:
        InvalidRequestError: If a query is refused or takes too long.
        ConfigError: If documents cannot be read or written.
    """
    try:
        yield
    except QueryError as error:
        raise InvalidRequestError(str(error)) from error
    except GraphError as error:
        raise ConfigError(str(error)) from error


def show(tool: str, *, config: Path | None, documents: Path | None, as_json: bool) -> int:
    """Count the graph's nodes and edges, or list those around *tool*."""
    with opened(config, strategy="graph", documents=documents) as session:
        snapshot = snapshot_of(session)
    graph = graph_of(snapshot)
    if tool:
        node = node_named(snapshot, graph, tool)
        name, near = name_of(graph, node), around(graph, node)
        if as_json:
            emit({"tool": name, "edges": graphshow.directed(name, near)})
        else:
            out().print(graphshow.near(name, near))
        return session.code or (OK if near else NOTHING)
    counts = graphshow.counted(graph, edges(graph), tools=session.report.tools)
    if as_json:
        emit({**counts, "index": jsonable(session.report)})
    else:
        out().print(graphshow.summary(counts))
    return session.code or (OK if graph.nodes else NOTHING)


def export(
    form: GraphFormat,
    *,
    centre: str,
    hops: int,
    out: Path | None,
    config: Path | None,
    documents: Path | None,
) -> int:
    """Write the graph to *out*, or to standard output."""
    with opened(config, strategy="graph", documents=documents) as session:
        text = session.gateway.export_graph(form, centre=centre, hops=hops)
    if out is None:
        _print(text)
    else:
        _keep(out, text)
    return session.code


def derive(
    *, out: Path | None, force: bool, config: Path | None, documents: Path | None, as_json: bool
) -> int:
    """Write what the rules derive to the folder *out*, or to standard output."""
    with opened(config, strategy="graph", documents=documents) as session:
        found = written(graph_of(snapshot_of(session)))
    if out is not None:
        keep_documents(found, out, force=force)
    if as_json:
        texts = [{"path": each.path, "content": render(each)} for each in found]
        emit({"version": 1, "documents": texts})
    elif out is None:
        told(found)
    else:
        note(f"{len(found)} documents written to {out}: --graph {out} declares what they say")
    return session.code or (OK if found else NOTHING)


def query(
    text: str,
    *,
    limit: int,
    timeout_s: float,
    config: Path | None,
    documents: Path | None,
    as_json: bool,
) -> int:
    """Answer a SPARQL query over the graph."""
    with opened(config, strategy="graph", documents=documents) as session:
        graph = graph_of(snapshot_of(session))
    with ours(), Sparql(graph.facts) as ask:
        answer = ask(text, limit=limit, timeout_s=timeout_s)
    if answer.truncated:
        note(f"cut at {limit} rows: ask for less, or raise --limit")
    if as_json:
        emit(jsonable(answer))
    else:
        out().print(graphshow.answered(answer))
    found = bool(answer.rows) or answer.value is not None
    return session.code or (OK if found else NOTHING)


def snapshot_of(session: Opened) -> Snapshot:
    """Give the catalog of a session as it is searched."""
    gateway = session.gateway.gateway
    return gateway.bridge.call(gateway.snapshot)


def _print(text: str) -> None:
    typer.echo(printable(text), nl=not text.endswith("\n"))


def _keep(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {str(file)!r}: {error.strerror}") from error


def told(found: Sequence[Document]) -> None:
    """Print documents, each under its path."""
    _print("\n".join(f"<!-- {each.path} -->\n{render(each)}" for each in found))


def keep_documents(found: Sequence[Document], folder: Path, *, force: bool) -> None:
    """Write documents to *folder*.

    Raises:
        ConfigError: If one is there already, or the folder cannot be written.
    """
    try:
        there = [each.path for each in found if (folder / each.path).exists()]
        if there and not force:
            raise ConfigError(
                f"{len(there)} files are there already, the first {str(folder / there[0])!r}; "
                "nothing was written: name another folder, or overwrite them with --force"
            )
        with ours():
            write(found, folder)
    except OSError as error:
        raise ConfigError(f"cannot write to {str(folder)!r}: {error.strerror}") from error
