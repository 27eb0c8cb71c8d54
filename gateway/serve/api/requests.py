"""Request bodies and parameters: their models, how they are read, and their bounds.

Unknown fields are refused: ignoring a misspelt one would answer another question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError
from pydantic.config import JsonDict
from pydantic_core import from_json
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request

from gateway.catalog.metadata import MAX_PATH_DEPTH, MAX_PATHS, MAX_SEGMENT
from gateway.options.validation import OptionObject, Timeout
from gateway.serve.api.problems import RefusedError, RequestFault
from gateway.types import Status

M = TypeVar("M", bound=BaseModel)
_QUERY_OR_TAGS: JsonDict = {
    "anyOf": [
        {"required": ["query"], "properties": {"query": {"pattern": r"\S"}}},
        {"required": ["tags"], "properties": {"tags": {"minItems": 1}}},
    ]
}
MAX_RESULTS = 50
MAX_QUERY_CHARS = 4096
MAX_PAGE = 500
"""The most entities of one page."""
MAX_FAULTS = 20
"""The most faults that one response names."""

_END = r"$(?!\n)"
"""Python's ``$`` lets a newline follow, JSON Schema's does not."""
_NAME = r"\w[\w .,:;@+/()&'#!?*=~%-]{0,255}"
_SPACE = r"[A-Za-z0-9_.-]{1,64}"
_KIND = r"(?!(?:tool|prompt|resource)(?![a-z0-9_-]))[a-z][a-z0-9_-]{0,63}"
"""Every kind but the three that servers list."""
ENTRY_ID = re.compile(f"({_KIND}):({_SPACE})/({_NAME})")
"""The id of a writable entity: kind, namespace, name."""
_STEP = rf"[\w-]{{1,{MAX_SEGMENT}}}"


def _whole(value: object) -> object:
    """Return 36.0 as 36: JSON Schema counts it as an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Ranking = Literal["hybrid", "weighted", "legacy", "lexical", "strategy"]
Word: TypeAlias = Annotated[str, Field(min_length=1, max_length=64)]
Words: TypeAlias = Annotated[list[Word], Field(max_length=50)]
Query: TypeAlias = Annotated[str, Field(max_length=MAX_QUERY_CHARS)]
Limit: TypeAlias = Annotated[int, Field(ge=1, le=MAX_RESULTS), BeforeValidator(_whole)]
DotPath: TypeAlias = Annotated[
    str, Field(pattern=rf"^{_STEP}(\.{_STEP}){{0,{MAX_PATH_DEPTH - 1}}}{_END}")
]
Short: TypeAlias = Annotated[str, Field(max_length=256)]
Shorts: TypeAlias = Annotated[list[Short], Field(max_length=100)]


class _Body(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        use_attribute_docstrings=True,
        regex_engine="python-re",
    )


class _Parameters(BaseModel):
    # Not strict: all parameters are texts.
    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, regex_engine="python-re"
    )


class SemanticSearch(_Body):
    """A search of the catalog. Without a query it browses what has the tags."""

    model_config = ConfigDict(json_schema_extra=_QUERY_OR_TAGS)

    query: Query = ""
    """What is wanted, in any language; words as `#tag` are tags. May be empty if there are tags."""
    entity_types: Words | None = None
    """Kinds to look for: `mcp_server`, `virtual_server`, `a2a_agent`, `skill`, `tool`, `prompt`,
    `resource` or one of the host's own. None is all but prompts and resources."""
    tags: Words = []
    """All of these, compared without case."""
    max_results: Limit = 10
    include_draft: bool = False
    include_deprecated: bool = False
    include_disabled: bool = False
    metadata_fields: Annotated[list[DotPath], Field(max_length=MAX_PATHS)] | None = None
    """Dot-paths into the metadata that rows are to show; none shows all of it, an empty list
    nothing."""
    ranking: Ranking | None = None
    """How the evidence is weighed; none is as the server is set up."""


class EntityHints(_Body):
    """Other words by which an entity is found."""

    aliases: Shorts = []
    keywords: Shorts = []
    categories: Shorts = []
    tags: Shorts = []
    examples: Shorts = []
    """Requests that it serves, as a user would say them."""


class EntityBody(_Body):
    """An entity without its identity."""

    title: Short = ""
    description: Annotated[str, Field(max_length=8192)] = ""
    status: Status = "active"
    enabled: bool = True
    hints: EntityHints = EntityHints()
    scopes: Words = []
    """A caller needs all of these to find it; you must hold them yourself."""
    metadata: dict[str, JsonValue] = {}
    """Anything else, as JSON of at most 65,536 characters."""
    parent: Annotated[str, Field(max_length=512)] = ""
    """The id of what it belongs to."""


class NewEntity(EntityBody):
    """An entity to add. Its id will be `kind:namespace/name`."""

    kind: Annotated[str, Field(pattern=f"^{_KIND}{_END}")]
    """`server`, `virtual_server`, `agent`, `skill` or one of the host's own."""
    name: Annotated[str, Field(pattern=f"^{_NAME}{_END}")]
    namespace: Annotated[str, Field(pattern=f"^{_SPACE}{_END}")] = "catalog"


class EntityChange(_Body):
    """What changes of an entity; what is left out stays. Nothing of it is embedded anew."""

    status: Status | None = None
    enabled: bool | None = None


class EntityPageQuery(_Parameters):
    """Which entities are listed."""

    kind: Annotated[str, Field(pattern=rf"^[a-z][a-z0-9_-]{{0,63}}{_END}")] | None = None
    """None is every kind."""
    tags: Words = []
    """All of these; repeat the parameter."""
    include_draft: bool = False
    include_deprecated: bool = False
    include_disabled: bool = False
    after: Annotated[str, Field(max_length=1024)] = ""
    """The `next` of the page before."""
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 100


class EntityQuery(_Parameters):
    """Which servers or agents are listed."""

    query: Query = ""
    """Words that they hold, best first; none lists all by id."""
    tags: Words = []
    """All of these; repeat the parameter."""
    limit: Limit = MAX_RESULTS


class SkillQuery(_Parameters):
    """Which skills are searched for."""

    q: Query
    """Words that they hold, best first."""
    tags: Words = []
    """All of these; repeat the parameter."""
    limit: Limit = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOptions(OptionObject):
    """What one request may cost."""

    max_body_bytes: Annotated[int, Field(ge=1024)] = 1024 * 1024
    max_depth: Annotated[int, Field(ge=4)] = 32
    """Objects and lists within each other."""
    time_limit_s: Timeout = 30.0
    """A slower response is given up."""


async def read_body(request: Request, model: type[M], options: ApiOptions) -> M:
    """Read the JSON body of *request*.

    Raises:
        RefusedError: 415, 413, 400 for what is not JSON, 422 for JSON that does not fit.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if media != "application/json":
        raise RefusedError(415, "not_json", "send the body as application/json")
    raw = await _read_bytes(request, options.max_body_bytes)
    try:
        value = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise RefusedError(400, "not_json", "the body is not JSON") from error
    if _depth(value) > options.max_depth:
        raise RefusedError(422, "too_deep", f"the body is nested deeper than {options.max_depth}")
    return _validate(model, value, "#/")


async def _read_bytes(request: Request, max_bytes: int) -> bytes:
    declared = request.headers.get("content-length", "")
    size = int(declared) if declared.isdecimal() else 0
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if max(size, len(body)) > max_bytes:
                raise RefusedError(413, "too_large", f"the body may take {max_bytes} bytes")
    except ClientDisconnect as error:
        raise RefusedError(400, "hung_up", "the client hung up") from error
    return bytes(body)


def _depth(value: object) -> int:
    """Return how deep the containers in *value* are nested; 0 for a scalar."""
    if not isinstance(value, dict | list):
        return 0
    children = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, children), default=0)


def read_parameters(given: QueryParams, model: type[M]) -> M:
    """Read the query string; a parameter whose field is a list may be repeated.

    Raises:
        RefusedError: 422.
    """
    values: dict[str, object] = {}
    for name in given:
        texts = given.getlist(name)
        field = model.model_fields.get(name)
        if field is not None and isinstance(field.default, list):
            values[name] = texts
        elif len(texts) > 1:
            fault = RequestFault(where=f"?{name}", detail="it is given twice")
            raise RefusedError(422, "invalid_request", "the parameters do not fit", errors=[fault])
        else:
            values[name] = texts[0]
    return _validate(model, values, "?")


def _validate(model: type[M], value: object, root: str) -> M:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # Without the input: it may hold what must not stand in a log.
        faults = error.errors(include_url=False, include_context=False, include_input=False)
    named = [
        RequestFault(where=root + "/".join(map(_escape, fault["loc"])), detail=fault["msg"])
        for fault in faults[:MAX_FAULTS]
    ]
    what = "body does" if root == "#/" else "parameters do"
    raise RefusedError(422, "invalid_request", f"the {what} not fit: see errors", errors=named)


def _escape(step: int | str) -> str:
    """Return one step of a JSON pointer (RFC 6901), clipped."""
    return str(step)[:64].replace("~", "~0").replace("/", "~1")
