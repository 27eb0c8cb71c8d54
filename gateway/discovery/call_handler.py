"""A tool call of the model -> the message that answers it. Never raises for what a model did.

* Bad JSON, bad arguments, a misspelt name: the answer says what was wrong and shows the schema or
  near names, so that the model can mend it in one turn.
* A tool is called even if the model is not shown it at the moment, or never was.
* Meta-tools cannot be called through `call_tool`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial

from gateway.discovery.advice import coming_next, hint, routed
from gateway.discovery.approval import Approve, ask
from gateway.discovery.meta_tools import MetaNames
from gateway.discovery.proxies import parameters
from gateway.discovery.render_results import Count, Parameters, compact, direct_names
from gateway.errors import (
    CallerError,
    GatewayError,
    InvalidArgumentsError,
    InvalidRequestError,
    UnknownToolError,
)
from gateway.gateway import Gateway
from gateway.index.snapshot import Snapshot
from gateway.runtime.text import estimate_tokens
from gateway.types import Content, Filters, InvokeResult, JsonObject, SearchResult

_ANYBODY = Filters()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call as the model wrote it."""

    id: str
    name: str
    arguments: str
    """JSON, or what the model meant to be JSON."""
    given: JsonObject | None = None
    """The same, if it was parsed already; then the text is not read."""
    native: bool = False
    """True if the service asked for tools to load: that is a search, but no function call."""
    foreign: bool = False
    """True if only the caller can answer a call of this kind; it is no function call either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model is told, and what happened."""

    call: ToolCall
    text: str
    """Never holds a lone surrogate."""
    queries: tuple[str, ...] = ()
    """Not empty for a search."""
    search: SearchResult | None = None
    tool: str = ""
    """The tool that was called, as the model named it; empty for a search."""
    arguments: JsonObject | None = None
    result: InvokeResult | None = None
    """None if nothing was sent."""
    error: str = ""
    needed: JsonObject | None = None
    """The client capabilities that the tool needed and its caller lacks; None if none."""
    loaded: tuple[str, ...] = ()
    """The tools that a native search loads, by their exposed names."""

    def __post_init__(self) -> None:
        """Replace lone surrogates: a model may write them, and no request could carry them."""
        if not self.text.isascii():
            told = self.text.encode("utf-8", "replace").decode()
            if told != self.text:
                object.__setattr__(self, "text", told)

    @property
    def failed(self) -> bool:
        """Whether the model got an error for a result."""
        return bool(self.error) or (self.result is not None and self.result.is_error)


def parameters_of(snapshot: Snapshot, name: str) -> Parameters | None:
    """Write what the tool of this exposed name takes; None if no such tool may be called, or its
    definition is suspicious.
    """
    schema = _parameters(snapshot, name)
    return Parameters(schema) if schema is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """How the calls of one conversation are answered."""

    schemas: bool = False
    """True if answers to searches carry schemas, since found tools do not become tools."""
    shown: Collection[str] = ()
    """Found tools that are among the model's tools already."""
    count: Count = estimate_tokens
    told: Callable[[Snapshot, str], Parameters | None] = parameters_of
    """Writes the schemas; `Discovery.told` is one that writes each only once."""
    approve: Approve | None = None
    by_name: bool = True
    """False if no call tool is offered: then no advice mentions it."""
    task: str = ""
    """What the calls belong to, for the ledger of calls."""


_PLAIN = AnswerOptions()


async def answer(
    gateway: Gateway,
    names: MetaNames,
    call: ToolCall,
    *,
    hidden: Collection[str] = (),
    max_result_chars: int,
    answering: AnswerOptions = _PLAIN,
) -> Answer:
    """Do what *call* asks and write the answer.

    Args:
        gateway: The catalog.
        names: Of the meta-tools.
        call: Of the model.
        hidden: The names of the host's own tools: a found tool of such a name is called by
            `call_tool` alone.
        max_result_chars: Where a longer answer of a tool is cut.
        answering: How searches are answered, and who is asked before a tool runs.
    """
    try:
        given = dict(call.given) if call.given is not None else _arguments(call.arguments)
        if call.native or (call.name and call.name == names.search):
            queries, found = await searched(gateway, given)
            return await tell(gateway, call, queries, found, hidden=hidden, answering=answering)
        if call.name in names and call.name != names.call:
            return await _advice(gateway, names, call, given)
        tool, arguments = _target(names, call, given)
    except (InvalidRequestError, UnknownToolError) as error:
        schema = await _schema(gateway, call.name)
        return _failed(call, str(error), schema=schema)
    try:
        if answering.approve is not None:
            await ask(gateway, answering.approve, tool, arguments, call.id)
        result = await gateway.invoke(tool, arguments, call_id=call.id, task=answering.task)
    except GatewayError as error:
        schema = None
        if isinstance(error, InvalidArgumentsError) and not await _suspicious(gateway, error.tool):
            schema = error.schema
        near = error.near if isinstance(error, UnknownToolError) else ()
        told = _failed(call, str(error), tool=tool, arguments=arguments, schema=schema, near=near)
        return replace(told, needed=error.needed) if isinstance(error, CallerError) else told
    text = clipped(result_text(result), max_result_chars)
    if not result.is_error:
        text += await hint(gateway, names.call if answering.by_name else "", tool)
    return Answer(call=call, text=text, tool=tool, arguments=arguments, result=result)


async def _advice(
    gateway: Gateway, names: MetaNames, call: ToolCall, given: dict[str, object]
) -> Answer:
    text = await (routed if call.name == names.route else coming_next)(gateway, given)
    return Answer(call=call, text=text, tool=call.name, arguments=given)


def _arguments(text: str) -> dict[str, object]:
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError(f"the arguments are not JSON: {error}") from error
    if not isinstance(given, dict):
        raise InvalidRequestError("the arguments must be a JSON object")
    return given


def _target(
    names: MetaNames, call: ToolCall, given: dict[str, object]
) -> tuple[str, dict[str, object]]:
    if call.name != names.call:
        return call.name, given
    tool, arguments = given.get("name"), given.get("arguments", {})
    if isinstance(arguments, str):
        # Some models write the inner object as a text.
        arguments = _arguments(arguments)
    if not isinstance(tool, str) or not tool or not isinstance(arguments, dict):
        raise InvalidRequestError(f"{names.call} takes a 'name' (text) and 'arguments' (object)")
    if tool in names:
        raise InvalidRequestError(f"{tool!r} is called directly, not through {names.call}")
    return tool, arguments


async def searched(gateway: Gateway, given: JsonObject) -> tuple[tuple[str, ...], SearchResult]:
    """Search for what a model asks; give its queries and the result.

    Args:
        gateway: The catalog.
        given: ``query`` (text), ``queries`` (list of texts), or neither to browse.

    Raises:
        InvalidRequestError: They are something else.
    """
    query, queries = given.get("query"), given.get("queries") or []
    if query is not None and not isinstance(query, str):
        raise InvalidRequestError("'query' is a text")
    if not isinstance(queries, list) or not all(isinstance(each, str) for each in queries):
        raise InvalidRequestError("'queries' is a list of texts")
    asked = tuple(queries)
    if query and query not in asked and asked:
        asked = (query, *asked)
    if asked:
        limit = gateway.options.search.max_queries
        return asked, await gateway.search(queries=asked[:limit])
    return (query or "",), await gateway.search(query)


async def tell(
    gateway: Gateway,
    call: ToolCall,
    queries: tuple[str, ...],
    found: SearchResult,
    *,
    hidden: Collection[str] = (),
    answering: AnswerOptions = _PLAIN,
) -> Answer:
    """Answer a search *call* with what was found.

    Args:
        gateway: The catalog.
        call: The search.
        queries: What was asked.
        found: What came of it.
        hidden: See `answer`.
        answering: How searches are told.
    """
    options = gateway.options.discovery
    loaded = direct_names(found, options, hidden=hidden) if call.native else ()
    snapshot = await gateway.snapshot()
    schemas = partial(answering.told, snapshot) if answering.schemas else None
    text = compact(
        found,
        options,
        hidden=hidden,
        shown=answering.shown,
        count=answering.count,
        schemas=schemas,
    )
    return Answer(call=call, text=text, queries=queries, search=found, loaded=loaded)


def _parameters(snapshot: Snapshot, name: str) -> JsonObject | None:
    for spot in snapshot.exposed(name, snapshot.mask(_ANYBODY)):
        entity = snapshot.entities[spot]
        return None if entity.suspicious else parameters(entity.definition.input_schema)
    return None


async def _suspicious(gateway: Gateway, name: str) -> bool:
    snapshot = await gateway.snapshot()
    spots = snapshot.exposed(name, snapshot.mask(_ANYBODY))
    return any(snapshot.entities[spot].suspicious for spot in spots)


async def _schema(gateway: Gateway, name: str) -> JsonObject | None:
    return _parameters(await gateway.snapshot(), name)


def _failed(
    call: ToolCall,
    error: str,
    *,
    tool: str = "",
    arguments: JsonObject | None = None,
    schema: JsonObject | None = None,
    near: tuple[str, ...] = (),
) -> Answer:
    told = {"error": error, "schema": schema, "near": near}
    text = json.dumps({key: value for key, value in told.items() if value}, ensure_ascii=False)
    return Answer(call=call, text=text, tool=tool or call.name, arguments=arguments, error=error)


def result_text(result: InvokeResult) -> str:
    """Write a tool's answer as text: its text blocks, else its structured content.

    Blocks that no text can hold are named with their type, so that the model knows of them.
    """
    parts = [block.text or _named(block) for block in result.content]
    text = "\n".join(part for part in parts if part)
    if not text and result.structured is not None:
        text = json.dumps(result.structured, ensure_ascii=False, default=str)
    if result.is_error:
        return f"The tool reported an error:\n{text}"
    return text or "The tool answered with nothing."


def _named(block: Content) -> str:
    uri, mime = block.data.get("uri"), block.data.get("mimeType")
    about = " ".join(str(part) for part in (mime, uri) if part)
    return f"[{block.type}{f': {about}' if about else ''}]" if block.type != "text" else ""


def clipped(text: str, limit: int) -> str:
    """Cut *text* at *limit* characters, with a note that it was cut."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: {len(text) - limit} of {len(text)} characters left out]"
