"""`gateway search`, `tools`, `call`, `index` and `prepare`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from itertools import chain, repeat
from typing import Annotated, Any, Literal

import typer
from rich.console import Group, RenderableType
from rich.text import Text
from typer import Option

from gateway.cli import options
from gateway.cli.command import Output, command, command_group, note, warn
from gateway.cli.commands.servers import server_statuses
from gateway.cli.exit_codes import OK, UNAVAILABLE
from gateway.cli.session import command_options, open_session, read_config, read_optional
from gateway.cli.tables import age_text, pairs, printable, table, to_json, to_jsonable
from gateway.discovery.token_counter import ModelView, model_view
from gateway.errors import InvalidRequestError, UnknownToolError, UpstreamError
from gateway.options.environment import environment
from gateway.runtime.json_models import read_value
from gateway.search.explanation import reasons
from gateway.serve.catalog_search import search_catalog
from gateway.storage.protocol import OwnVectors
from gateway.stores import own_vectors
from gateway.types import (
    ALL_SCOPES,
    ANYONE,
    Caller,
    Diagnostic,
    Filters,
    InvokeResult,
    JsonObject,
    Match,
    SearchResult,
    Status,
)

_HEADINGS = {
    "matches": "tool",
    "prerequisites": "call first",
    "related": "related",
    "next_steps": "next steps",
}
"""Headings of the lists of a search result, keyed by attribute."""

_SCORING_COLUMNS = ("rrf_score", "vector_rank", "keyword_rank", "vector", "text_boost")
_FILTERED_COLUMNS = ("filtered out=id", "kind", "rank", "confidence", "filters")
_HOST = Caller(scopes=frozenset({ALL_SCOPES}))
"""Caller that may read every explanation, whoever searches."""

app = command_group()


@command(app)
def search(
    query: Annotated[str, "Task in any language; '' browses the catalog."],
    *,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    strategy: options.Strategy = None,
    limit: Annotated[
        int | None,
        Option(
            "--limit",
            "-n",
            min=1,
            help="Maximum number of matches, up to 50; by default the option search.limit (5).",
        ),
    ] = None,
    kind: options.Kind = None,
    tag: options.Tag = None,
    status: options.Status = None,
    normalize: options.Normalize = "",
    explain: Annotated[bool, "Show reasons, filtered entities and the text for the model."] = False,
    caller: Caller | None = None,
) -> Output:
    """Search the tools of the configured servers, or other entries of the catalog (--kind)."""
    defaults = Filters()
    filters = Filters(
        kinds=frozenset(kind or defaults.kinds),
        tags=frozenset(tag or ()),
        statuses=read_value(frozenset[Status], status or defaults.statuses, where="--status"),
    )
    # Other entities may exist without any server.
    is_catalog = filters.kinds != defaults.kinds
    with open_session(
        config, strategy=strategy, documents=documents, optional=is_catalog, normalize=normalize
    ) as session:
        gateway = session.gateway.gateway
        limit = limit or gateway.options.search.limit
        # The graph contains no servers, so words and vectors rank the catalog.
        ranking = gateway.searches.usual_ranking()
        find = (
            partial(search_catalog, gateway, query, max_results=limit, ranking=ranking)
            if is_catalog
            else partial(gateway.search, query, limit=limit)
        )
        reader = _HOST if explain else False
        work = partial(find, filters=filters, caller=caller or ANYONE, explain=reader)
        result = gateway.bridge.call(work)
        view = gateway.bridge.call(partial(model_view, gateway, result)) if explain else None
    printed_codes = {item.code for item in session.report.diagnostics}
    warn(item for item in result.diagnostics if item.code not in printed_codes)
    diagnostics = tuple(dict.fromkeys((*session.report.diagnostics, *result.diagnostics)))
    data = {"query": query, "strategy": session.strategy, "result": result}
    return Output(
        {**data, **({"model": view} if view else {}), "index": session.report},
        explanation(result, diagnostics, view) if explain else search_table(result),
        found=result.matches,
        code=OK if result.matches else session.code,
    )


def search_table(result: SearchResult) -> RenderableType:
    """Return a search's matches and supplements as tables."""
    if not result.matches:
        return _no_matches(result)
    if result.mode == "browse":
        return table(result.matches, "tool=name", "server", "description")
    columns = ("confidence", "server", "description")
    return Group(*(table(matches, f"{name}=name", *columns) for name, matches in _lists(result)))


def _lists(result: SearchResult) -> list[tuple[str, Sequence[Match]]]:
    return [(name, matches) for key, name in _HEADINGS.items() if (matches := getattr(result, key))]


def _no_matches(result: SearchResult) -> RenderableType:
    if not result.counts.eligible:
        return Text("Nothing was found: no entity has this kind, tag and status.")
    parts: list[RenderableType] = [Text("Nothing was found.")]
    if result.nearest is not None:
        parts.append(table([result.nearest], "nearest=name", "confidence", "description"))
    if result.unmatched:
        words = printable(", ".join(result.unmatched))
        parts.append(Text(f"No entity contains these words: {words}"))
    return Group(*parts)


def explanation(
    result: SearchResult, diagnostics: Sequence[Diagnostic], model: ModelView | None = None
) -> RenderableType:
    """Return a search's evidence, filtered entities, counts, times and text for the model."""
    rows = [(name, match) for name, matches in _lists(result) for match in matches]
    # The matches, which have ranks, are the first rows.
    ranks = chain(map(to_jsonable, result.ranks), repeat({}))
    parts = [_evidence(name, match, of) for (name, match), of in zip(rows, ranks, strict=False)]
    work = {"mode": result.mode, "cached": result.cached, **asdict(result.counts)}
    return Group(
        *(parts or [_no_matches(result)]),
        *([table(result.scoring, "score", *_SCORING_COLUMNS)] if result.scoring else ()),
        *([table(result.filtered, *_FILTERED_COLUMNS)] if result.filtered else ()),
        pairs({**work, "seconds": result.stages}),
        *([table(diagnostics, "code", "meaning", "detail")] if diagnostics else ()),
        *(
            [pairs({"text for the model": model.text, **to_jsonable(model), "text": ""})]
            if model
            else ()
        ),
    )


def _evidence(name: str, match: Match, ranks: Mapping[str, Any]) -> RenderableType:
    values = {**to_jsonable(match), **to_jsonable(match.evidence)}
    del values["evidence"]
    values["why"] = " ".join(reasons(match))
    values["rank"] = {key: rank for key, rank in ranks.items() if rank and key != "signals"}
    values["signals"] = dict(ranks.get("signals") or ())
    return pairs({name: values.pop("name"), **values, "": "\n"})


@command(app)
def tools(
    *,
    refresh: Annotated[bool, "List the tools of every server again."] = False,
    config: options.Config = options.DEFAULT_CONFIG,
    caller: Caller | None = None,
) -> Output:
    """List the tools of the configured servers.

    A recent stored list is used without asking its server.
    """
    with open_session(config, relist=refresh) as session:
        entities = session.gateway.list_tools(caller=caller or ANYONE)
    ages = {status.name: status.age_s for status in server_statuses(config)}
    rows = [{**to_jsonable(item), "listed": age_text(ages.get(item.server))} for item in entities]
    columns = ("required arguments=definition.input_schema.required", "definition.description")
    return Output(
        {"tools": entities, "ages_s": ages, "index": session.report},
        table(rows, "tool=id", "listed", *columns),
        found=entities,
        code=session.code,
    )


@command(app)
def call(
    tool: Annotated[str, "Id (server/name) or name of the tool."],
    arguments: Annotated[str, "Arguments as a JSON object; '-' reads standard input."] = "{}",
    *,
    approve: Annotated[bool, "Approve the call if a policy requires an approval."] = False,
    config: options.Config = options.DEFAULT_CONFIG,
    caller: Caller | None = None,
) -> Output:
    """Call one tool. With an id, only its server is started."""
    parsed = parse_object(arguments, "the arguments")
    # Starting only one server would reveal to a caller that it exists.
    with open_session(config, only="" if caller else tool) as session:
        try:
            result = session.gateway.invoke(tool, parsed, caller=caller or ANYONE, approved=approve)
        except UnknownToolError as error:
            if session.code == OK:
                raise
            # A server that could not be used may have the tool.
            raise UpstreamError(tool, f"{error} Correct the failing servers first.") from error
    return Output(result, result_text(result), found=not result.is_error)


def result_text(result: InvokeResult) -> str:
    """Return a tool's answer: texts and types of blocks, or else the structured content."""
    parts = [block.text or f"[{block.type}; --json shows it]" for block in result.content]
    if not parts and result.structured is not None:
        return to_json(result.structured)
    return "\n".join(parts)


def parse_object(text: str, name: str) -> JsonObject:
    """Return the JSON object in *text*; ``-`` reads standard input.

    Raises:
        InvalidRequestError: If the text is not a JSON object. The message contains *name*.
    """
    try:
        value = json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise InvalidRequestError(f"{name} must be JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidRequestError(f'{name} must be a JSON object, like \'{{"path": "/tmp"}}\'')
    return value


@command(app)
def index(
    action: Annotated[
        Literal["build", "show"],
        "build: list and embed the tools; show: print the place, size and number of the stored "
        "vectors without starting servers.",
    ] = "build",
    *,
    rebuild: Annotated[bool, "Delete all stored vectors first."] = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Build the index of the configured servers' tools, or print the place, size and number of the
    stored vectors.
    """
    if action == "show":
        if rebuild:
            raise typer.BadParameter("--rebuild works with build, not with show")
        return _show_store(own_vectors(command_options(read_optional(config))))
    if rebuild:
        with closing(own_vectors(command_options(read_config(config)))) as vectors:
            vectors.clear()
    with open_session(config, strategy=None, relist=True) as session:
        report = session.report
    place = own_vectors(session.gateway.gateway.options).place
    data = {"strategy": session.strategy, "store": place, **to_jsonable(report)}
    return Output(data, found=report.tools, code=session.code)


@command(app)
def prepare(
    *,
    servers: Annotated[bool, "Also list and embed the tools of the servers."] = True,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Prepare the embedding model and the index before their first use.

    Use it to build an image or to set up a machine, so that the first search does not wait.
    """
    with open_session(config, strategy="auto", optional=True, servers=servers) as session:
        report = session.report
    ready = all(note.code != "embedding_failed" for note in report.diagnostics)
    data = {"model": ready, "encoders": environment().encoder_dir, **to_jsonable(report)}
    return Output(data, code=session.code if ready else UNAVAILABLE)


def _show_store(vectors: OwnVectors) -> Output:
    with closing(vectors):
        # Opening a missing file would create it.
        count = vectors.count() if vectors.size() else 0
        size = vectors.size()
    if not count:
        note("the store has no vectors yet: gateway index build")
    return Output({"store": vectors.place, "bytes": size, "vectors": count}, found=count)
