"""`gateway graph`: show, export, check, query and extend the graph of the tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Group, RenderableType
from rich.text import Text
from typer import Argument, Option

import graphs
from gateway.cli import options
from gateway.cli.command import command, command_group
from gateway.cli.exit_codes import OK, USAGE
from gateway.cli.output import Output, note, printable
from gateway.cli.session import open_session
from gateway.cli.tables import plain_table
from gateway.errors import ConfigError, InvalidRequestError
from gateway.index.graph_documents import graph_of, node_named
from gateway.index.tool_graph_builder import names_of
from gateway.search.edges import ShownEdge, around, edges, name_of, written
from gateway.search.expand.edge_proposals import Batch, batches

_CHARS_PER_TOKEN = 4
"""An estimate."""

app = command_group(
    "graph", help_text="See, draw, ask, check and write down the graph of the tools."
)


@contextmanager
def _graph_errors() -> Iterator[None]:
    """Turn errors of `graphs` into errors of the gateway."""
    try:
        yield
    except graphs.QueryError as error:
        raise InvalidRequestError(str(error)) from error
    except graphs.GraphError as error:
        raise ConfigError(str(error)) from error


@command(app)
def show(
    tool: Annotated[str, Argument(help="Its id or its name; without one: counts.")] = "",
    *,
    config: options.Config = None,
    documents: options.Graph = None,
) -> Output:
    """Count what the graph holds, or list the edges around one tool and where they come from."""
    with open_session(config, documents=documents) as session:
        snapshot = session.snapshot()
    graph = graph_of(snapshot)
    if tool:
        node = node_named(snapshot, graph, tool)
        name, near = name_of(graph, node), around(graph, node)
        rows = [_edge_fields(name, edge) for edge in near]
        return Output(
            {"tool": name, "edges": rows}, _edge_table(name, rows), session.code_for(near)
        )
    found = edges(graph)
    counts = {
        "nodes": len(graph.index.network),
        "documents": len(graph.index.documents),
        "tools": session.report.tools,
        "edges": len(found),
        "declared": sum(edge.declared for edge in found),
        "derived": sum(not edge.declared for edge in found),
    }
    predicates = {
        predicate: {
            "declared": sum(edge.declared for edge in found if edge.predicate == predicate),
            "derived": sum(not edge.declared for edge in found if edge.predicate == predicate),
        }
        for predicate in sorted({edge.predicate for edge in found})
    }
    rules = dict(sorted(Counter(edge.rule for edge in found if edge.rule).items()))
    return Output(
        {**counts, "predicates": predicates, "rules": rules, "index": session.report},
        _count_tables(counts, predicates, rules),
        session.code_for(graph.nodes),
    )


def _count_tables(
    counts: Mapping[str, int], predicates: Mapping[str, Mapping[str, int]], rules: Mapping[str, int]
) -> RenderableType:
    by_predicate = (
        (name, str(both["declared"]), str(both["derived"])) for name, both in predicates.items()
    )
    by_rule = ((name, str(count)) for name, count in rules.items())
    tables = [plain_table("graph", "", rows=((name, str(n)) for name, n in counts.items()))]
    if predicates:
        headings = ("edges by predicate", "declared", "derived")
        tables.append(plain_table(*headings, rows=by_predicate))
    if rules:
        tables.append(plain_table("derived by rule", "edges", rows=by_rule))
    return Group(*tables)


def _edge_fields(tool: str, edge: ShownEdge) -> dict[str, object]:
    is_outgoing = edge.subject == tool
    return {
        "direction": "out" if is_outgoing else "in",
        "predicate": edge.predicate,
        "other": edge.object if is_outgoing else edge.subject,
        "declared": edge.declared,
        "rule": edge.rule,
        "source": edge.source,
    }


def _edge_table(tool: str, edges_around: Sequence[Mapping[str, object]]) -> RenderableType:
    if not edges_around:
        return Text(f"No edge starts or ends at {printable(tool)}.")
    rows = (
        (
            "->" if edge["direction"] == "out" else "<-",
            str(edge["predicate"]),
            str(edge["other"]),
            str(edge["source"] or (f"rule {edge['rule']}" if edge["rule"] else "declared")),
        )
        for edge in edges_around
    )
    return plain_table(printable(tool), "predicate", "other end", "from", rows=rows)


@command(app, has_json=False)
def export(
    *,
    form: Annotated[
        Literal["turtle", "json-ld", "n-triples", "mermaid", "dot"],
        Option("--format", "-f", help="RDF, or a picture."),
    ] = "turtle",
    centre: Annotated[str, Option(help="For a picture: the tool in its middle.")] = "",
    hops: Annotated[int, Option(min=1, help="Edges from the centre, at most.")] = 1,
    out: Annotated[Path | None, Option("--out", "-o", help="A file to write.")] = None,
    config: options.Config = None,
    documents: options.Graph = None,
) -> Output:
    """Write the graph as RDF, or draw it, as a whole or around one tool."""
    with open_session(config, documents=documents) as session:
        text = session.gateway.export_graph(form, centre=centre, hops=hops)
    if out is None:
        return Output(None, text, session.code)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {str(out)!r}: {error.strerror}") from error
    return Output(None, "", session.code)


@command(app)
def derive(
    *,
    out: options.Folder = None,
    force: options.Force = False,
    config: options.Config = None,
    documents: options.Graph = None,
) -> Output:
    """Write what the rules derive as Markdown-LD, for you to read, edit and commit.

    One document a rule and tool; what you declare or forbid yourself is left out. With --json it
    is a bundle that --graph reads.
    """
    with open_session(config, documents=documents) as session:
        derived = written(graph_of(session.snapshot()))
    if out is not None:
        write_documents(derived, out, force=force)
    remark = f"{len(derived)} documents written to {out}: --graph {out} declares what they say"
    return document_output(derived, out, remark, session.code_for(derived))


@command(app)
def validate(
    path: Annotated[Path, Argument(help="A folder, a file or a bundle.")],
    *,
    config: Annotated[
        Path | None,
        Option("--config", "-c", help="An mcp.json whose tools the documents may name."),
    ] = None,
) -> Output:
    """Check Markdown-LD documents, and the graph they make with SHACL if pyshacl is installed."""
    with _graph_errors():
        documents, notices = graphs.collect(path)
    code, names = OK, dict[str, str]()
    if config is not None:
        with open_session(config) as session:
            code, names = session.code, dict(names_of(session.gateway.list_tools()))
    is_checked, faults = _check_shapes(documents, names)
    # A notice is a fault too: the author meant something by what was skipped.
    is_wrong = bool(notices) or any(fault.severity == "violation" for fault in faults)
    return Output(
        {"documents": len(documents), "notices": notices, "shacl": is_checked, "faults": faults},
        _fault_tables(documents, notices, faults),
        USAGE if is_wrong else code,
    )


def _check_shapes(
    documents: Sequence[graphs.Document], names: Mapping[str, str]
) -> tuple[bool, tuple[graphs.ShapeViolation, ...]]:
    """Return whether SHACL is installed, and what it found."""
    try:
        return True, graphs.validate(graphs.extract_facts(documents, names=names))
    except graphs.ExtraError as error:
        note(f"the graph's shape was not checked: {error}")
        return False, ()


def _fault_tables(
    documents: Sequence[graphs.Document],
    notices: Sequence[graphs.Notice],
    faults: Sequence[graphs.ShapeViolation],
) -> RenderableType:
    parts: list[RenderableType] = [Text(f"{len(documents)} documents read.")]
    if notices:
        rows = ((item.path, str(item.line), item.code, item.detail) for item in notices)
        parts.append(plain_table("file", "line", "code", "detail", rows=rows))
    if faults:
        headings = ("node", "severity", "predicate", "value", "detail")
        cells = ((item.node, item.severity, item.path, item.value, item.detail) for item in faults)
        parts.append(plain_table(*headings, rows=cells))
    if not notices and not faults:
        parts.append(Text("Nothing is wrong."))
    return Group(*parts)


@command(app)
def propose(  # noqa: PLR0913  (one for each option)
    *,
    out: options.Folder = None,
    model: Annotated[str, Option(help="The chat model; its key is OPENAI_API_KEY.")] = "",
    base_url: Annotated[str, Option(help="Another endpoint of the same wire format.")] = "",
    server: Annotated[list[str] | None, Option(help="Only this one; repeatable.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would be asked.")] = False,
    force: options.Force = False,
    config: options.Config = None,
) -> Output:
    """Ask a chat model which tools belong together, for you to read, edit and commit.

    One document a server. What the model says counts for nothing until you give the folder to
    --graph yourself.
    """
    if not (model or dry_run):
        raise ConfigError("no model is named: choose one with --model, or look with --dry-run")
    servers = tuple(server or ())
    with open_session(config) as session:
        if dry_run:
            return _request_output(batches(session.snapshot(), servers), session.code)
        from gateway.search.openai import connected  # noqa: PLC0415  (openai is heavy)

        with connected(model=model, base_url=base_url) as proposer:
            proposed = session.gateway.propose_edges(proposer, servers=servers)
    for notice in proposed.notices:
        note(notice)
    tokens = f"{proposed.input_tokens} tokens in, {proposed.output_tokens} out"
    note(f"{proposed.requests} requests, {tokens}")
    if out is not None:
        write_documents(proposed.documents, out, force=force)
    remark = f"{len(proposed.documents)} documents written to {out}: read them, then --graph {out}"
    more = {
        "notices": proposed.notices,
        "requests": proposed.requests,
        "input_tokens": proposed.input_tokens,
        "output_tokens": proposed.output_tokens,
    }
    code = session.code_for(proposed.documents)
    return document_output(proposed.documents, out, remark, code, more)


def _request_output(requests: tuple[Batch, ...], code: int) -> Output:
    tokens = sum(len(batch.text) for batch in requests) // _CHARS_PER_TOKEN
    texts = [{"server": batch.server, "text": batch.text} for batch in requests]
    notes = [f"{batch.server}: {len(batch.tools)} tools" for batch in requests]
    notes.append(f"{len(requests)} requests of about {tokens} tokens in all; nothing was sent")
    return Output({"requests": texts, "about_input_tokens": tokens}, "", code, notes=notes)


@command(app)
def query(
    text: Annotated[str, Argument(help="A read-only SPARQL query.")],
    *,
    limit: Annotated[int, Option("--limit", "-n", min=1, help="Rows at most.")] = 1000,
    timeout_s: Annotated[
        float, Option("--timeout", min=0.1, help="Seconds that the query may take.")
    ] = 10.0,
    config: options.Config = None,
    documents: options.Graph = None,
) -> Output:
    """Ask the graph in SPARQL; nothing is changed and nothing is fetched."""
    with open_session(config, documents=documents) as session:
        graph = graph_of(session.snapshot())
    with _graph_errors(), graphs.SparqlProcess(graph.facts) as run_query:
        answer = run_query(text, limit=limit, timeout_s=timeout_s)
    if answer.truncated:
        note(f"cut at {limit} rows: ask for less, or raise --limit")
    return Output(
        answer, _answer_table(answer), session.code_for(answer.rows or answer.value is not None)
    )


def _answer_table(answer: graphs.Answer) -> RenderableType:
    if answer.value is not None:
        return Text("yes" if answer.value else "no")
    if not answer.rows:
        return Text("Nothing was found.")
    rows = (map(_term_text, row) for row in answer.rows)
    return plain_table(*map(printable, answer.columns), rows=rows)


def _term_text(term: graphs.Term | None) -> str:
    if term is None:
        return ""
    return term.value + (f"@{term.language}" if term.language else "")


def document_output(
    documents: Sequence[graphs.Document],
    folder: Path | None,
    remark: str,
    code: int,
    more: Mapping[str, object] | None = None,
) -> Output:
    """Return documents as a bundle and as text, or only *remark* if *folder* holds them."""
    text = "\n".join(f"<!-- {item.path} -->\n{graphs.render(item)}" for item in documents)
    if folder is None:
        return Output(bundle(documents, more), text, code)
    return Output(bundle(documents, more), "", code, notes=(remark,))


def bundle(
    documents: Sequence[graphs.Document], more: Mapping[str, object] | None = None
) -> dict[str, object]:
    """Return documents as a bundle that ``--graph`` reads, and the members *more*."""
    texts = [{"path": item.path, "content": graphs.render(item)} for item in documents]
    return {"version": 1, "documents": texts, **(more or {})}


def write_documents(documents: Sequence[graphs.Document], folder: Path, *, force: bool) -> None:
    """Write documents to *folder*.

    Raises:
        ConfigError: A file exists and *force* is not given, or the folder cannot be written.
    """
    try:
        existing = [item.path for item in documents if (folder / item.path).exists()]
        if existing and not force:
            raise ConfigError(
                f"{len(existing)} files are there already, the first "
                f"{str(folder / existing[0])!r}; nothing was written: name another folder, or "
                "overwrite them with --force"
            )
        with _graph_errors():
            graphs.write(documents, folder)
    except OSError as error:
        raise ConfigError(f"cannot write to {str(folder)!r}: {error.strerror}") from error
