"""`gateway graph`: show, export, check, query and extend the graph of the tools."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

from typer import Option

import graphs
from gateway.cli import options
from gateway.cli.command import Output, command, command_group, document_output, note, stderr
from gateway.cli.exit_codes import OK, USAGE
from gateway.cli.session import CatalogSession, open_session
from gateway.cli.tables import document, pairs, table
from gateway.config.config_file import read_text, write_text
from gateway.errors import ConfigError
from gateway.index.compiler import host_names
from gateway.index.graph_documents import graph_of, load_proposals
from gateway.index.tool_graph import ToolGraph
from gateway.mcp.json_fetch import ask_endpoint
from gateway.plugins.graph_tools.edge_proposals import batches
from gateway.plugins.graph_tools.graph_view import GraphView, rule_of
from gateway.runtime.text import estimate_tokens
from gateway.types import Caller
from gateway.types.caller import filters_for
from graphs.facts.fact import Fact
from graphs.graph import EDGE_PREDICATES

app = command_group("graph")
EDGE_COLUMNS = ("subject", "predicate", "object", "origin", "source")


def open_view(session: CatalogSession, documents: Path | None, caller: Caller | None) -> GraphView:
    """Return what *caller* may see of the graph, with what lies over it."""
    snapshot, gateway = session.gateway.snapshot(), session.gateway.gateway
    read = partial(gateway.searches.cached.signals, snapshot, caller.tenant if caller else "")
    return GraphView(
        snapshot=snapshot,
        caller=caller,
        learned=gateway.bridge.call(read).learned,
        proposals=load_proposals(documents),
    )


@command(app)
def show(
    tool: Annotated[str, "Its id or its name; without one: counts."] = "",
    *,
    hops: Annotated[int, Option(min=1, max=3, help="Edges from the tool, at most.")] = 1,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    caller: Caller | None = None,
) -> Output:
    """Count what the graph holds, or list the edges around one tool and where they come from.

    Next steps that calls have shown and what waits in the folder proposed/ of your documents are
    among the edges.
    """
    with open_session(config, documents=documents) as session:
        view = open_view(session, documents, caller)
        around = view.around(tool, hops=hops) if tool else None
    if around:
        if around.omitted:
            note(f"{around.omitted} more nodes were left out: look around one of these")
        rows = table(around.edges, *EDGE_COLUMNS)
        return Output(around, rows, found=around.edges, code=session.code)
    graph = view.graph
    found = _edges(graph)
    declared = Counter(edge.predicate for edge in found if edge.declared)
    derived = Counter(edge.predicate for edge in found if not edge.declared)
    counts = {
        "tools": session.report.tools,
        "nodes": len(graph.index.kinds),
        "documents": list(graph.index.kinds.values()).count("document"),
        "edges": len(found),
        "declared": declared.total(),
        "derived": derived.total(),
        "predicates": {
            name: {"declared": declared[name], "derived": derived[name]}
            for name in sorted({*declared, *derived})
        },
        "rules": dict(sorted(Counter(rule for rule in map(_rule, found) if rule).items())),
    }
    return Output(
        {**counts, "index": session.report}, document(counts), found=graph.nodes, code=session.code
    )


def _edges(graph: ToolGraph) -> list[Fact]:
    """Return every statement between two nodes; what is only stored is none."""
    return [fact for fact in graph.facts if not fact.literal and fact.predicate in EDGE_PREDICATES]


def _rule(edge: Fact) -> str:
    """Return the switch in `GraphOptions` of the rule that derived *edge*; empty if declared."""
    return "" if edge.declared else rule_of(edge.predicate, edge.origin)


def _name(graph: ToolGraph, node: str) -> str:
    """Return a tool's id, or the label of another node."""
    return graph.index.label(node) if graph.entity(node) is None else graph.entity_id(node)


@command(app, has_json=False)
def export(
    *,
    form: Annotated[
        Literal["turtle", "json-ld", "n-triples", "mermaid", "dot"],
        "--format",
        "-f",
        "RDF, or a picture.",
    ] = "turtle",
    centre: Annotated[str, "For a picture: the tool in its middle."] = "",
    hops: Annotated[int, Option(min=1, help="Edges from the centre, at most.")] = 1,
    out: Annotated[Path | None, "--out", "-o", "A file to write."] = None,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    caller: Caller | None = None,
) -> Output:
    """Write the graph as RDF, or draw it, as a whole or around one tool."""
    with open_session(config, documents=documents) as session:
        text = session.gateway.export_graph(form, centre=centre, hops=hops, caller=caller)
    if out is not None:
        write_text(out, text, expected=read_text(out))
    return Output(None, "" if out else text, code=session.code)


@command(app)
def derive(
    *,
    out: options.Folder = None,
    force: options.Force = False,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
) -> Output:
    """Write what the rules derive as Markdown-LD, for you to read, edit and commit.

    One document a rule and tool; what you declare or forbid yourself is left out. With --json it
    is a bundle that --graph reads.
    """
    with open_session(config, documents=documents) as session:
        derived = _derived_documents(graph_of(session.gateway.snapshot()))
    return document_output(derived, out, force=force, code=session.code)


def _derived_documents(graph: ToolGraph) -> list[graphs.Document]:
    """Write what was derived as documents of the host: one a rule and tool.

    Their paths begin with the rule's name, so that an edge still tells where it comes from when
    it was copied into a document of the host's.
    """
    links = defaultdict[tuple[str, str], defaultdict[str, list[graphs.Link]]](
        lambda: defaultdict(list)
    )
    for edge in _edges(graph):
        if not edge.declared and graph.entity(edge.subject) is not None:
            link = graphs.Link(target=_name(graph, edge.object))
            links[_rule(edge), edge.subject][edge.predicate].append(link)
    return [_derived_document(graph, *key, found) for key, found in links.items()]


def _derived_document(
    graph: ToolGraph, rule: str, node: str, links: Mapping[str, Sequence[graphs.Link]]
) -> graphs.Document:
    tool = graph.entity_id(node)
    # Quoted, a name of an upstream is one part of a path, whatever it holds.
    place = "/".join(quote(part, safe="") for part in (rule, *tool.split("/", 1)))
    return graphs.Document(
        id=tool,
        path=f"{place}.md",
        title=graph.index.label(node),
        groups=tuple(links.get("memberOf", ())),
        consumes=tuple(links.get("consumes", ())),
        produces=tuple(links.get("produces", ())),
        requires=tuple(links.get("requires", ())),
        next_steps=tuple(links.get("nextStep", ())),
        related=tuple(links.get("relatedTo", ())),
    )


@command(app)
def validate(
    path: Annotated[Path, "A folder, a file or a bundle."],
    *,
    shapes: Annotated[Path | None, "SHACL shapes of your own, as Turtle."] = None,
    config: Annotated[
        Path | None, "--config", "-c", "An mcp.json whose tools the documents may name."
    ] = None,
) -> Output:
    """Check Markdown-LD documents, and the graph they make: for prerequisites in a circle, and with
    SHACL if pyshacl is installed.
    """
    missing = f"no file {str(shapes)!r} with shapes"
    own = "" if shapes is None else read_text(shapes, missing=missing)
    documents, notices = graphs.collect(path)
    code, names = OK, dict[str, str]()
    if config is not None:
        with open_session(config) as session:
            code = session.code
            names = dict(host_names(session.gateway.list_tools(filters_for(None))))
    faults: Sequence[graphs.ShapeViolation] | None = None
    facts = graphs.extract_facts(documents, names=names)
    index = graphs.compile_facts(facts)
    cycles = [list(map(index.label, nodes)) for nodes in graphs.prerequisite_cycles(index)]
    try:
        faults = graphs.validate(facts, shapes=own)
    except graphs.ExtraError as error:
        if own:
            raise
        note(f"the graph's shape was not checked: {error}")
    data = {
        "documents": len(documents),
        "notices": notices,
        "cycles": cycles,
        "shacl": faults is not None,
    }
    # A notice is a fault too: the author meant something by what was skipped.
    is_wrong = notices or cycles or any(fault.severity == "violation" for fault in faults or ())
    return Output({**data, "faults": faults or ()}, code=USAGE if is_wrong else code)


@command(app)
def find(
    text: Annotated[str, "A question in any language."],
    *,
    mode: Annotated[
        Literal["words", "schema", "hybrid"],
        "By words, by what names, descriptions and topics say, or by both.",
    ] = "hybrid",
    limit: Annotated[int, Option("--limit", "-n", min=1, help="Nodes at most.")] = 5,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    caller: Caller | None = None,
) -> Output:
    """Find tools and documents of the graph, with the statements that speak for them."""
    with open_session(config, documents=documents) as session:
        graph = graph_of(session.gateway.snapshot(), caller)
    found = graphs.find(graph.index, text, mode=mode, limit=limit)
    rows = [{"id": _name(graph, node.node), **asdict(node)} for node in found]
    view = [
        {"id": _name(graph, node.node), "score": round(node.score, 4), "place": _place(node),
         "why": "; ".join(f"{each.predicate}: {each.text}" for each in node.evidence[:2])}
        for node in found
    ]  # fmt: skip
    columns = ("id", "score", "place", "why")
    data = {"mode": mode, "found": rows}
    return Output(data, table(view, *columns), found=found, code=session.code)


def _place(node: graphs.FoundNode) -> str:
    return f"{node.path}:{node.line}" if node.line else node.path


@command(app)
def propose(
    *,
    out: options.Folder = None,
    model: Annotated[str, "The chat model; its key is OPENAI_API_KEY."] = "",
    base_url: Annotated[str, "Another endpoint of the same wire format."] = "",
    server: Annotated[options.Texts, "Only this one; repeatable."] = None,
    dry_run: Annotated[bool, "Show what would be asked."] = False,
    force: options.Force = False,
    config: options.Config = options.DEFAULT_CONFIG,
    caller: Caller | None = None,
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
            requests = batches(session.gateway.snapshot(), servers, caller)
            texts = [{"server": batch.server, "text": batch.text} for batch in requests]
            tokens = sum(estimate_tokens(batch.text) for batch in requests)
            data = {"requests": texts, "about_input_tokens": tokens}
            return Output(data, code=session.code, notes=("nothing was sent",))
        from gateway.plugins.graph_tools.openai import connected  # noqa: PLC0415  (openai is heavy)

        with connected(model=model, base_url=base_url) as proposer:
            proposed = session.gateway.propose_edges(proposer, servers=servers, caller=caller)
    more = {
        "notices": proposed.notices,
        "requests": proposed.requests,
        "input_tokens": proposed.input_tokens,
        "output_tokens": proposed.output_tokens,
    }
    stderr().print(pairs(more))
    return document_output(proposed.documents, out, force=force, code=session.code, more=more)


@command(app)
def query(
    text: Annotated[str, "A read-only SPARQL query."],
    *,
    limit: Annotated[int, Option("--limit", "-n", min=1, help="Rows at most.")] = 1000,
    timeout_s: Annotated[
        float, Option("--timeout", min=0.1, help="Seconds that the query may take.")
    ] = 10.0,
    service: Annotated[options.Texts, "An endpoint that SERVICE may ask; repeatable."] = None,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    caller: Caller | None = None,
) -> Output:
    """Ask the graph in SPARQL; nothing is changed, and nothing fetched but from --service."""
    ask = partial(ask_endpoint, timeout_s=timeout_s)
    services = {url: partial(ask, url) for url in service or ()}
    with open_session(config, documents=documents) as session:
        graph = graph_of(session.gateway.snapshot(), caller)
    answer = graphs.query_sparql(
        graph.facts, text, limit=limit, timeout_s=timeout_s, services=services
    )
    if answer.truncated:
        note(f"cut at {limit} rows: ask for less, or raise --limit")
    if answer.value is not None:
        return Output(answer, "yes" if answer.value else "no", code=session.code)
    rows = (dict(zip(answer.columns, row, strict=True)) for row in answer.rows)
    view = table(rows, *(f"{column}={column}.value" for column in answer.columns))
    return Output(answer, view, found=answer.rows, code=session.code)
