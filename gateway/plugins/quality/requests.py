"""Test requests: queries and the tools that a search should find for them.

They are a Markdown table or JSON Lines. In frozen requests, the first line has the digest of the
catalog.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter

from gateway.config.config_file import read_text, write_text
from gateway.errors import ConfigError, InvalidRequestError, UnknownToolError
from gateway.index.snapshot import Snapshot, resolve
from gateway.runtime.json_models import Text, read_value
from gateway.runtime.text import digest
from gateway.types import Entity, Filters

Source = Literal["user", "rules", "model", "usage", "held_out"]
"""Origin of a request, by which reports split figures. ``held_out`` repeats another request without
the tools that serve it."""
_CELL_SEPARATOR = re.compile(r"(?<!\\)\|")
_TABLE_RULER = re.compile(r"[\s|:-]+")
_ARROW = re.compile(r"\s*(?:->|→)\s*")
_NO_TOOL = frozenset({"none", "-", ""})


def _groups(tools: object) -> object:
    """Return the field ``tools`` of a JSON request as groups of alternatives."""
    if isinstance(tools, list):
        return [[tool] if isinstance(tool, str) else tool for tool in tools]
    return () if tools == "none" else tools


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRequest:
    """A test request. In JSON, `text` is ``request`` and `wanted` is ``tools``."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")
    text: Annotated[Text, Field(alias="request")]
    wanted: Annotated[
        tuple[tuple[str, ...], ...], Field(alias="tools"), BeforeValidator(_groups)
    ] = ()
    """Wanted tools, each as a group of alternatives; empty if no tool serves the request."""
    ordered: bool = False
    """True if the wanted tools are used in this order."""
    source: Source = "user"
    style: str = ""
    """Kind of a generated request, such as ``typos``, or empty."""
    language: str = ""
    """ISO 639 code; empty if unknown."""
    without: frozenset[str] = frozenset()
    """Ids of tools that the search must ignore."""

    @property
    def key(self) -> tuple[object, ...]:
        """Identity, by which the requests of two evaluations are compared."""
        return self.text, self.wanted, self.without


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSet:
    """Test requests for a catalog."""

    requests: tuple[EvalRequest, ...]
    catalog: str = ""
    """Digest of the catalog, or empty."""


def catalog_digests(entities: Iterable[Entity]) -> dict[str, str]:
    """Return short digests of definitions, keyed by entity id and sorted."""
    return {entity.id: entity.digest[:12] for entity in sorted(entities, key=lambda each: each.id)}


def catalog_digest(digests: Mapping[str, str]) -> str:
    """Return the digest of a catalog from the digests of its entities."""
    return digest(json.dumps(dict(digests), sort_keys=True))


def parse(text: str, *, where: str) -> RequestSet:
    """Read requests: a Markdown table if a line begins with ``|``, otherwise JSON Lines.

    Args:
        text: Contents of the file.
        where: Name of the file, for messages.

    Raises:
        ConfigError: If a line cannot be read, or there are no requests.

    Example:
        >>> text = "| book a flight | search_flights -> book_flight |"
        >>> parse(text, where="asked.md").requests[0].wanted
        (('search_flights',), ('book_flight',))
    """
    lines, rows = _lines(text)
    request_set = _from_table(rows, where) if rows else _from_json_lines(lines, where)
    if not request_set.requests:
        raise ConfigError(f"{where}: there are no requests; add rows such as | request | tool |")
    return request_set


def _lines(text: str) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return line numbers and lines: all lines, and the table rows."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    return lines, [(number, line) for number, line in lines if line.startswith("|")]


def _from_table(rows: Sequence[tuple[int, str]], where: str) -> RequestSet:
    requests: list[EvalRequest] = []
    for number, line in rows:
        if _TABLE_RULER.fullmatch(line):
            # The row above the ruler is the heading.
            requests = requests[:-1]
            continue
        cells = [
            cell.replace("\\|", "|").strip() for cell in _CELL_SEPARATOR.split(line.strip("|"))
        ]
        if len(cells) < 2 or not cells[0]:
            raise ConfigError(
                f"{where}, line {number}: | what is asked | tool | expected, got {line!r}"
            )
        tools, ordered = parse_tools(cells[1])
        requests.append(EvalRequest(text=cells[0], wanted=tools, ordered=ordered))
    return RequestSet(requests=tuple(requests))


def parse_tools(cell: str) -> tuple[tuple[tuple[str, ...], ...], bool]:
    """Return the tools in a table cell as groups of alternatives, and whether they are ordered.

    ``a, b`` wants both, ``a -> b`` wants b after a, ``a or b`` wants either, ``none`` wants no
    tool.
    """
    cell = cell.replace("`", "").strip()
    if cell.casefold() in _NO_TOOL:
        return (), False
    steps = _ARROW.split(cell)
    parts = [part for step in steps for part in step.split(",")]
    groups = (tuple(name.strip() for name in re.split(r"\s+or\s+", part)) for part in parts)
    return tuple(groups), len(steps) > 1


def _from_json_lines(lines: Sequence[tuple[int, str]], where: str) -> RequestSet:
    requests: list[EvalRequest] = []
    catalog = ""
    for number, line in lines:
        if not line or line.startswith("#"):
            continue
        place = f"{where}, line {number}"
        try:
            raw = json.loads(line)
        except ValueError as error:
            raise ConfigError(
                f"{place}: the line is neither a table row nor JSON: {error}"
            ) from None
        if isinstance(raw, dict) and "catalog" in raw:
            catalog = str(raw["catalog"])
        else:
            requests.append(read_value(EvalRequest, raw, where=place))
    return RequestSet(requests=tuple(requests), catalog=catalog)


def freeze(
    requests: Iterable[EvalRequest], snapshot: Snapshot, filters: Filters, *, strict: bool = True
) -> RequestSet:
    """Replace tool names by ids, drop duplicate requests, and add the digest of the catalog.

    Args:
        requests: Requests that name tools by id, by exposed name, or by a unique name.
        snapshot: Catalog.
        filters: Filters for the visible tools.
        strict: True raises an error for an unknown tool. False keeps its name, so that it is
            missed.

    Raises:
        InvalidRequestError: If a tool is unknown, or several tools have its name.
    """

    def resolved(request: EvalRequest) -> EvalRequest:
        def find(name: str) -> str:
            try:
                return resolve(snapshot, name, filters).id
            except InvalidRequestError as error:
                if not strict and isinstance(error, UnknownToolError):
                    return name
                raise InvalidRequestError(f"{request.text!r}: {error}") from None

        return replace(request, wanted=tuple(tuple(map(find, group)) for group in request.wanted))

    unique = {request.key: request for request in reversed([*map(resolved, requests)])}
    digests = catalog_digests(snapshot.visible(filters))
    return RequestSet(requests=tuple(reversed(unique.values())), catalog=catalog_digest(digests))


def to_json_lines(requests: RequestSet) -> str:
    """Return *requests* as JSON Lines for `parse`, without empty fields."""
    rows = TypeAdapter(tuple[EvalRequest, ...]).dump_python(
        requests.requests, mode="json", by_alias=True, exclude_defaults=True
    )
    lines = ({"catalog": requests.catalog}, *({"tools": "none"} | row for row in rows))
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def save_request(path: Path, request: EvalRequest) -> bool:
    """Append *request* to a file of requests. Return False if the file already contains it.

    Args:
        path: File. A new one is a Markdown table if its name ends in ``.md``, else JSON Lines.
        request: Request. A table stores only its text and tools. White space in the text becomes
            single spaces.

    Raises:
        ConfigError: If the file cannot be read or written, or its format cannot hold the request.
    """
    before, where = read_text(path), str(path)
    text = request.text.encode("utf-8", "replace").decode()
    request = replace(request, text=" ".join(text.split()))
    lines, rows = _lines(before)
    has_objects = any(line.startswith("{") for _, line in lines)
    is_table = bool(rows) or (path.suffix.casefold() == ".md" and not has_objects)
    request_set = _from_table(rows, where) if is_table else _from_json_lines(lines, where)
    existing = request_set.requests
    if request.key in {other.key for other in existing}:
        return False
    after = _with_row(before, request) if is_table else _with_line(before, request)
    if parse(after, where=where).requests != (*existing, request):
        form = "a Markdown table" if is_table else "JSON Lines"
        raise ConfigError(f"{where!r} cannot hold this request as {form}: {request.text!r:.80}")
    write_text(path, after, expected=before)
    return True


def _with_row(text: str, request: EvalRequest) -> str:
    """Return the Markdown *text* with a row for *request* at the end of its table."""
    groups = [" or ".join(group) for group in request.wanted]
    tools = (" -> " if request.ordered else ", ").join(groups) or "none"
    row = "| {} | {} |\n".format(request.text.replace("|", "\\|"), tools)
    lines, (_, rows) = text.splitlines(keepends=True), _lines(text)
    if not rows:
        return f"{_with_newline(text)}| request | tool(s) |\n| --- | --- |\n{row}"
    last = rows[-1][0]
    return _with_newline("".join(lines[:last])) + row + "".join(lines[last:])


def _with_line(text: str, request: EvalRequest) -> str:
    line = to_json_lines(RequestSet(requests=(request,))).splitlines()[1]
    return f"{_with_newline(text)}{line}\n"


def _with_newline(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"
