"""Test requests: what somebody would ask, and which tools should be found for it.

They are written by hand as a Markdown table or as JSON Lines, and frozen as JSON Lines whose first
line holds the digest of the catalog.
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
"""Where a request comes from; reports keep the sources apart. Of those held out no tool is left."""
_CELLS = re.compile(r"(?<!\\)\|")
_RULER = re.compile(r"[\s|:-]+")
_ARROW = re.compile(r"\s*(?:->|→)\s*")
_NO_TOOL = frozenset({"none", "-", ""})


def _groups(tools: object) -> object:
    """Return tools as JSON may have them, each with its alternatives."""
    if isinstance(tools, list):
        return [[tool] if isinstance(tool, str) else tool for tool in tools]
    return () if tools == "none" else tools


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRequest:
    """One request and its answer. As JSON its text is ``request`` and what it wants ``tools``."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")
    text: Annotated[Text, Field(alias="request")]
    wanted: Annotated[
        tuple[tuple[str, ...], ...], Field(alias="tools"), BeforeValidator(_groups)
    ] = ()
    """The tools that are wanted, each with the alternatives to it; empty if no tool serves it."""
    ordered: bool = False
    """Whether they are used in this order."""
    source: Source = "user"
    style: str = ""
    """How it was made, such as ``typos``; empty for one written by hand."""
    language: str = ""
    """An ISO 639 code; empty if unknown."""
    without: frozenset[str] = frozenset()
    """The ids of tools that the search must do without: then no tool serves it."""

    @property
    def key(self) -> tuple[object, ...]:
        """What two runs must have in common to be compared."""
        return self.text, self.wanted, self.without


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSet:
    """Test requests, and the catalog that they are about."""

    requests: tuple[EvalRequest, ...]
    catalog: str = ""
    """The digest of the catalog; empty for requests that are not frozen."""


def catalog_digests(entities: Iterable[Entity]) -> dict[str, str]:
    """Return a short digest of the definition of each entity, by id, sorted."""
    return {entity.id: entity.digest[:12] for entity in sorted(entities, key=lambda each: each.id)}


def catalog_digest(digests: Mapping[str, str]) -> str:
    """Return one digest of all of `catalog_digests`; equal ones mean equal catalogs."""
    return digest(json.dumps(dict(digests), sort_keys=True))


def parse(text: str, *, where: str) -> RequestSet:
    """Read requests: a Markdown table if there is a line that begins with ``|``, else JSON Lines.

    Args:
        text: The file's text.
        where: The file's name, for messages.

    Raises:
        ConfigError: If a line cannot be read, or there are no requests.
    """
    lines, rows = _lines(text)
    found = _from_table(rows, where) if rows else _from_json_lines(lines, where)
    if not found.requests:
        raise ConfigError(f"{where}: there are no requests: | what is asked | tool |")
    return found


def _lines(text: str) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return all lines with their numbers, and those that are rows of a table."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    return lines, [(number, line) for number, line in lines if line.startswith("|")]


def _from_table(rows: Sequence[tuple[int, str]], where: str) -> RequestSet:
    found: list[EvalRequest] = []
    for number, line in rows:
        if _RULER.fullmatch(line):
            # What stands above the ruler is the heading.
            found = found[:-1]
            continue
        cells = [cell.replace("\\|", "|").strip() for cell in _CELLS.split(line.strip("|"))]
        if len(cells) < 2 or not cells[0]:
            raise ConfigError(f"{where}, line {number}: | what is asked | tool |, got {line!r}")
        wanted, ordered = parse_tools(cells[1])
        found.append(EvalRequest(text=cells[0], wanted=wanted, ordered=ordered))
    return RequestSet(requests=tuple(found))


def parse_tools(cell: str) -> tuple[tuple[tuple[str, ...], ...], bool]:
    """Return the tools that a cell names, and whether they are ordered.

    ``a, b`` wants both, ``a -> b`` wants b after a, ``a or b`` one of them, ``none`` neither.
    """
    cell = cell.replace("`", "").strip()
    if cell.casefold() in _NO_TOOL:
        return (), False
    steps = _ARROW.split(cell)
    parts = [part for step in steps for part in step.split(",")]
    wanted = (tuple(name.strip() for name in re.split(r"\s+or\s+", part)) for part in parts)
    return tuple(wanted), len(steps) > 1


def _from_json_lines(lines: Sequence[tuple[int, str]], where: str) -> RequestSet:
    found: list[EvalRequest] = []
    catalog = ""
    for number, line in lines:
        if not line or line.startswith("#"):
            continue
        place = f"{where}, line {number}"
        try:
            raw = json.loads(line)
        except ValueError as error:
            raise ConfigError(f"{place}: it is neither a table row nor JSON: {error}") from None
        if isinstance(raw, dict) and "catalog" in raw:
            catalog = str(raw["catalog"])
        else:
            found.append(read_value(EvalRequest, raw, where=place))
    return RequestSet(requests=tuple(found), catalog=catalog)


def freeze(
    requests: Iterable[EvalRequest], snapshot: Snapshot, filters: Filters, *, strict: bool = True
) -> RequestSet:
    """Return *requests* with the ids of their tools and the digest of the catalog; equal ones once.

    Args:
        requests: Their tools have an id, an exposed name, or a name that only one tool has.
        snapshot: The catalog.
        filters: What may be found in it.
        strict: Whether an unknown tool is an error; else it stays as it is, and is missed.

    Raises:
        InvalidRequestError: A tool is unknown, or several have its name.
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
    """Write *requests* as JSON Lines that `parse` reads; what is empty is left out."""
    rows = TypeAdapter(tuple[EvalRequest, ...]).dump_python(
        requests.requests, mode="json", by_alias=True, exclude_defaults=True
    )
    lines = ({"catalog": requests.catalog}, *({"tools": "none"} | row for row in rows))
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def save_request(path: Path, request: EvalRequest) -> bool:
    """Append *request* to a file of requests; what is there stays as it is.

    Args:
        path: The file. A new one is a Markdown table if its name ends in ``.md``, else JSON Lines.
        request: A table holds its text and its tools alone. Blanks in the text become single ones.

    Returns:
        Whether it was added: an equal request that is there already is enough.

    Raises:
        ConfigError: The file cannot be read or written, or cannot hold the request.
    """
    before, where = read_text(path), str(path)
    text = request.text.encode("utf-8", "replace").decode()
    request = replace(request, text=" ".join(text.split()))
    lines, rows = _lines(before)
    has_objects = any(line.startswith("{") for _, line in lines)
    is_table = bool(rows) or (path.suffix.casefold() == ".md" and not has_objects)
    found = _from_table(rows, where) if is_table else _from_json_lines(lines, where)
    held = found.requests
    if request.key in {each.key for each in held}:
        return False
    after = _with_row(before, request) if is_table else _with_line(before, request)
    if parse(after, where=where).requests != (*held, request):
        form = "a Markdown table" if is_table else "JSON Lines"
        raise ConfigError(f"{where!r} cannot hold this request as {form}: {request.text!r:.80}")
    write_text(path, after, expected=before)
    return True


def _with_row(text: str, request: EvalRequest) -> str:
    """Return the text of a Markdown file with one row more, behind its last one."""
    wanted = [" or ".join(group) for group in request.wanted]
    tools = (" -> " if request.ordered else ", ").join(wanted) or "none"
    row = "| {} | {} |\n".format(request.text.replace("|", "\\|"), tools)
    lines, (_, rows) = text.splitlines(keepends=True), _lines(text)
    if not rows:
        return f"{_ended(text)}| request | tool(s) |\n| --- | --- |\n{row}"
    last = rows[-1][0]
    return _ended("".join(lines[:last])) + row + "".join(lines[last:])


def _with_line(text: str, request: EvalRequest) -> str:
    line = to_json_lines(RequestSet(requests=(request,))).splitlines()[1]
    return f"{_ended(text)}{line}\n"


def _ended(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"
