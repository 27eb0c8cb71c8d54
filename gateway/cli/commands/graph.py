"""`gateway graph`: the graph of the tools."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
from gateway.errors import ConfigError, missing_plugin
from gateway.index.graph_documents import graph_of, load_proposals
from gateway.index.tool_graph import STEP_PREDICATE, ToolGraph, host_names
from gateway.mcp.json_fetch import ask_endpoint
from gateway.plugins.graph_tools.edge_proposals import batches
from gateway.plugins.graph_tools.graph_view import GraphView, rule_of
from gateway.runtime.text import counted, estimate_tokens
from gateway.types import Caller, Entity
from gateway.types.caller import filters_for
from graphs.facts.fact import Fact
from graphs.graph import EDGE_PREDICATES

app = command_group("graph")
_TOOL_PREDICATES = {"requires", STEP_PREDICATE, "relatedTo"}
EDGE_COLUMNS = ("subject", "predicate", "object", "origin", "source")


def open_view(session: CatalogSession, documents: Path | None, caller: Caller | None) -> GraphView:
    """Return the graph for *caller*, with learned and proposed edges."""
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
    tool: Annotated[str, "Id or name of a tool; by default nodes and edges are counted."] = "",
    *,
    hops: Annotated[int, Option(min=1, max=3, help="Maximum number of edges from the tool.")] = 1,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    caller: Caller | None = None,
) -> Output:
    """Count nodes and edges of the graph, or list the edges around one tool with their origin.

    Next steps learned from calls, and proposals in the folder proposed/ of your documents, are
    included.
    """
    with open_session(config, documents=documents) as session:
        view = open_view(session, documents, caller)
        around = view.around(tool, hops=hops) if tool else None
    if around:
        if around.omitted:
            note(f"{counted(around.omitted, 'more node')} omitted: show one of these tools instead")
        rows = table(around.edges, *EDGE_COLUMNS)
        return Output(around, rows, found=around.edges, code=session.code)
    graph = view.graph
    edges = _edges(graph)
    declared = Counter(edge.predicate for edge in edges if edge.is_of_host)
    bundled = Counter(edge.predicate for edge in edges if edge.declared and edge.origin)
    derived = Counter(edge.predicate for edge in edges if not edge.declared)
    counts = {
        "tools": session.report.tools,
        "nodes": len(graph.index.kinds),
        "documents": list(graph.index.kinds.values()).count("document"),
        "edges": len(edges),
        "declared": declared.total(),
        "bundled": bundled.total(),
        "derived": derived.total(),
        "predicates": {
            name: {"declared": declared[name], "bundled": bundled[name], "derived": derived[name]}
            for name in sorted({*declared, *bundled, *derived})
        },
        "rules": dict(sorted(Counter(rule for rule in map(_rule, edges) if rule).items())),
    }
    return Output(
        {**counts, "index": session.report}, document(counts), found=graph.nodes, code=session.code
    )


def _edges(graph: ToolGraph) -> list[Fact]:
    """Return the statements that connect two nodes, except predicates that are only stored."""
    return [fact for fact in graph.facts if not fact.literal and fact.predicate in EDGE_PREDICATES]


def _rule(edge: Fact) -> str:
    """Return the rule that derived *edge*; empty for a declared edge.

    The rule is the name of a field of `GraphOptions`, or ``catalog``.
    """
    return "" if edge.declared else rule_of(edge.predicate, edge.origin)


def _name(graph: ToolGraph, node: str) -> str:
    return graph.index.label(node) if graph.entity(node) is None else graph.entity_id(node)


@command(app, has_json=False)
def export(
    *,
    form: Annotated[
        Literal["turtle", "json-ld", "n-triples", "mermaid", "dot"],
        "--format",
        "-f",
        "Format of RDF, or mermaid or dot for a picture.",
    ] = "turtle",
    centre: Annotated[str, "For a picture: the tool in the centre."] = "",
    hops: Annotated[int, Option(min=1, help="Maximum number of edges from the centre.")] = 1,
    out: Annotated[Path | None, "--out", "-o", "File to write."] = None,
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
    """Write the edges derived by rules as Markdown-LD, for you to read, edit and commit.

    There is one document per rule and tool. Edges that you declare or forbid are omitted. The
    output of --json is a bundle that --graph reads.
    """
    with open_session(config, documents=documents) as session:
        derived = _derived_documents(graph_of(session.gateway.snapshot()))
    return document_output(derived, out, force=force, code=session.code)


def _derived_documents(graph: ToolGraph) -> list[graphs.Document]:
    """Return derived edges as documents, one per rule and tool.

    Paths begin with the rule's name, so that copied edges show their origin.
    """
    links = defaultdict[tuple[str, str], defaultdict[str, list[graphs.Link]]](
        lambda: defaultdict(list)
    )
    for edge in _edges(graph):
        if not edge.declared and graph.entity(edge.subject) is not None:
            link = graphs.Link(target=_name(graph, edge.object))
            links[_rule(edge), edge.subject][edge.predicate].append(link)
    return [_derived_document(graph, *key, links_of_tool) for key, links_of_tool in links.items()]


def _derived_document(
    graph: ToolGraph, rule: str, node: str, links: Mapping[str, Sequence[graphs.Link]]
) -> graphs.Document:
    tool = graph.entity_id(node)
    # Quoted, because names of upstream tools may contain any character.
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
    path: Annotated[
        Path | None, "Documents: a folder, a file or a bundle. With --against: the bundled one."
    ] = None,
    *,
    against: Annotated[str, "Server of --config: list names of tools that it lacks."] = "",
    shapes: Annotated[Path | None, "Your own SHACL shapes, as Turtle."] = None,
    config: Annotated[
        Path | None, "--config", "-c", "An mcp.json whose tools the documents may name."
    ] = None,
) -> Output:
    """Check Markdown-LD documents and their graph: cycles of prerequisites, and SHACL if pyshacl is
    installed.

    With --against, also check that a server has all tools that the documents name.
    """
    missing = f"file {str(shapes)!r} was not found"
    own_shapes = "" if shapes is None else read_text(shapes, missing=missing)
    code, tools = OK, list[Entity]()
    if config is not None or against:
        with open_session(config or options.DEFAULT_CONFIG, only=f"{against}/") as session:
            code, tools = session.code, list(session.gateway.list_tools(filters_for(None)))
    if against:
        tools = [tool for tool in tools if tool.server == against]
        if not tools:
            raise ConfigError(f"server {against!r} has no tools: name a server of --config")
    names = host_names(tools)
    documents, notices = graphs.collect(path or _bundled_document(against, tools))
    missing_tools = sorted(_named(documents) - names.keys()) if against else []
    faults: Sequence[graphs.ShapeViolation] | None = None
    facts = graphs.extract_facts(documents, names=names)
    index = graphs.compile_facts(facts)
    cycles = [list(map(index.label, nodes)) for nodes in graphs.prerequisite_cycles(index)]
    try:
        faults = graphs.validate(facts, shapes=own_shapes)
    except graphs.ExtraError as error:
        if own_shapes:
            raise
        note(f"the graph was not checked by SHACL: {error}")
    data = {
        "documents": len(documents),
        "notices": notices,
        "cycles": cycles,
        "shacl": faults is not None,
    } | ({"missing_tools": missing_tools} if against else {})
    # A notice counts as a fault, because the skipped text was meant as a statement.
    violations = [fault for fault in faults or () if fault.severity == "violation"]
    is_wrong = notices or cycles or missing_tools or violations
    return Output({**data, "faults": faults or ()}, code=USAGE if is_wrong else code)


def _bundled_document(server: str, tools: Sequence[Entity]) -> Path:
    """Return the file of the bundled document about *server*, which has *tools*.

    Raises:
        ConfigError: If there is no such document.
    """
    if not server:
        raise ConfigError("no documents are named: pass a folder, a file or a bundle")
    try:
        from gateway.plugins.bundled.documents import document_about  # noqa: PLC0415  (may be gone)
    except ModuleNotFoundError as error:
        raise missing_plugin("gateway graph validate without a path", "bundled") from error
    document = document_about([tool.name for tool in tools])
    if document is None:
        raise ConfigError(
            f"no bundled document names a tool of {server!r}: pass a folder, a file or a bundle"
        )
    return document


def _named(documents: Iterable[graphs.Document]) -> set[str]:
    """Return the names of the tools that *documents* name in links and edges."""
    names = set[str]()
    for each in documents:
        links = (*each.entities, *each.requires, *each.next_steps, *each.related)
        edges = (edge for edge in each.edges if edge.predicate in _TOOL_PREDICATES)
        names.update(link.target for link in links)
        names.update(end for edge in edges for end in (edge.subject, edge.object))
    return names


@command(app)
def find(
    text: Annotated[str, "A question in any language."],
    *,
    mode: Annotated[
        Literal["words", "schema", "hybrid"],
        "Search by words, by the schema (names, descriptions, topics), or by both.",
    ] = "hybrid",
    limit: Annotated[int, Option("--limit", "-n", min=1, help="Maximum number of nodes.")] = 5,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    caller: Caller | None = None,
) -> Output:
    """Find tools and documents of the graph, with the statements that match."""
    with open_session(config, documents=documents) as session:
        graph = graph_of(session.gateway.snapshot(), caller)
    nodes = graphs.find(graph.index, text, mode=mode, limit=limit)
    rows = [{"id": _name(graph, node.node), **asdict(node)} for node in nodes]
    view = [
        {"id": _name(graph, node.node), "score": round(node.score, 4), "file": _place(node),
         "reasons": "; ".join(f"{fact.predicate}: {fact.text}" for fact in node.evidence[:2])}
        for node in nodes
    ]  # fmt: skip
    columns = ("id", "score", "file", "reasons")
    data = {"mode": mode, "found": rows}
    return Output(data, table(view, *columns), found=nodes, code=session.code)


def _place(node: graphs.FoundNode) -> str:
    return f"{node.path}:{node.line}" if node.line else node.path


@command(app)
def propose(
    *,
    out: options.Folder = None,
    model: Annotated[str, "Chat model; its key is in OPENAI_API_KEY."] = "",
    base_url: Annotated[str, "URL of another OpenAI-compatible service."] = "",
    server: Annotated[options.Texts, "Only tools of this server; repeatable."] = None,
    dry_run: Annotated[bool, "Show the requests without sending them."] = False,
    force: options.Force = False,
    config: options.Config = options.DEFAULT_CONFIG,
    caller: Caller | None = None,
) -> Output:
    """Ask a chat model which tools belong together, for you to read, edit and commit.

    There is one document per server. Proposed edges have no effect until you pass the folder to
    --graph.
    """
    if not (model or dry_run):
        raise ConfigError(
            "no model is named: choose one with --model, or show the requests with --dry-run"
        )
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
    limit: Annotated[int, Option("--limit", "-n", min=1, help="Maximum number of rows.")] = 1000,
    timeout_s: Annotated[
        float, Option("--timeout", min=0.1, help="Maximum duration of the query in seconds.")
    ] = 10.0,
    service: Annotated[options.Texts, "Endpoint that SERVICE may query; repeatable."] = None,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    caller: Caller | None = None,
) -> Output:
    """Query the graph by SPARQL. Nothing is changed, and only --service endpoints are contacted."""
    ask = partial(ask_endpoint, timeout_s=timeout_s)
    services = {url: partial(ask, url) for url in service or ()}
    with open_session(config, documents=documents) as session:
        graph = graph_of(session.gateway.snapshot(), caller)
    answer = graphs.query_sparql(
        graph.facts, text, limit=limit, timeout_s=timeout_s, services=services
    )
    if answer.truncated:
        note(f"the result was cut at {counted(limit, 'row')}: narrow the query, or raise --limit")
    if answer.value is not None:
        return Output(answer, "yes" if answer.value else "no", code=session.code)
    rows = (dict(zip(answer.columns, row, strict=True)) for row in answer.rows)
    view = table(rows, *(f"{column}={column}.value" for column in answer.columns))
    return Output(answer, view, found=answer.rows, code=session.code)
