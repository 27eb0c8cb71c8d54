"""One entry of a registry's answer, as JSON -> `Entry`. Strict in form, for it is a stranger's.

The format is that of the official MCP registry: `server.json` beside what the registry itself
says in ``_meta`` (API v0.1, docs/reference/api of modelcontextprotocol/registry).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gateway.mcp.injection_scanner import suspicions
from gateway.provision.entries import KNOWN, Entry, Input, Package, Remote
from gateway.runtime.text import clean

OFFICIAL = "io.modelcontextprotocol.registry/official"
"""The key of ``_meta`` under which a registry says what it knows of an entry itself."""

_NAME = re.compile(r"[A-Za-z0-9.-]{1,100}/[A-Za-z0-9._-]{1,100}")
_TITLE_CHARS = 100
_DESCRIPTION_CHARS = 1000
_TEXT_CHARS = 2000
_MAX_ITEMS = 50
"""No entry needs more packages, remotes, arguments or variables."""
Json = Mapping[str, object]


def read_entry(raw: object, *, source: str) -> Entry:
    """Read one item of ``servers``.

    Args:
        raw: As JSON gave it.
        source: Whose it is; see `Entry.source`.

    Raises:
        ValueError: It cannot be used; the message says why and holds no text of the entry but
            its name.
    """
    whole = _object(raw, "the entry")
    server = _object(whole.get("server"), "'server'")
    name = server.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("it has no name of the form namespace/name")
    said = _object(_object(whole.get("_meta", {}), "'_meta'").get(OFFICIAL, {}), "its own '_meta'")
    try:
        return Entry(
            name=name,
            title=clean(_text(server, "title"), limit=_TITLE_CHARS),
            description=clean(_text(server, "description"), limit=_DESCRIPTION_CHARS),
            version=_text(server, "version"),
            status=_text(said, "status") or _text(server, "status") or "active",
            latest=said.get("isLatest") is not False,
            updated=_text(said, "updatedAt") or _text(said, "publishedAt"),
            source=source,
            packages=tuple(_package(each, source) for each in _objects(server, "packages")),
            remotes=tuple(_remote(each) for each in _objects(server, "remotes")),
            suspicions=suspicions({key: server.get(key) for key in ("title", "description")}),
        )
    except ValueError as error:
        raise ValueError(f"{name!r}: {error}") from None


def _package(raw: Json, source: str) -> Package:
    return Package(
        kind=_needed(raw, "registryType"),
        identifier=_needed(raw, "identifier"),
        version=_text(raw, "version"),
        transport=_needed(_object(raw.get("transport"), "'transport'"), "type"),
        arguments=tuple(_argument(each) for each in _objects(raw, "packageArguments")),
        environment=tuple(_named(each) for each in _objects(raw, "environmentVariables")),
        runtime_arguments=bool(_objects(raw, "runtimeArguments")),
        base_url=_text(raw, "registryBaseUrl"),
        sha256=_text(raw, "fileSha256"),
        script=_text(raw, "script") if source == KNOWN else "",
    )


def _remote(raw: Json) -> Remote:
    placeholders = _object(raw.get("variables", {}), "'variables'")
    return Remote(
        transport=_needed(raw, "type"),
        url=_needed(raw, "url"),
        headers=tuple(_named(each) for each in _objects(raw, "headers")),
        variables=_variables(placeholders),
    )


def _argument(raw: Json) -> Input:
    kind = _text(raw, "type")
    if kind == "named":
        name = _needed(raw, "name")
        return _input(raw, name=name.lstrip("-") or name, flag=name)
    if kind == "positional":
        return _input(raw, name=_text(raw, "valueHint"))
    raise ValueError("an argument is neither 'positional' nor 'named'")


def _named(raw: Json) -> Input:
    return _input(raw, name=_needed(raw, "name"))


def _input(raw: Json, *, name: str, flag: str = "") -> Input:
    return Input(
        name=name,
        description=clean(_text(raw, "description"), limit=_DESCRIPTION_CHARS),
        flag=flag,
        value=_text(raw, "value") or None,
        default=_text(raw, "default") or None,
        required=raw.get("isRequired") is True,
        secret=raw.get("isSecret") is True,
        variables=_variables(_object(raw.get("variables", {}), "'variables'")),
    )


def _variables(raw: Json) -> tuple[Input, ...]:
    if len(raw) > _MAX_ITEMS:
        raise ValueError(f"'variables' holds more than {_MAX_ITEMS}")
    # One level: no entry nests them, and a stranger's might for ever.
    return tuple(
        _input({**_object(each, f"variable {name!r}"), "variables": {}}, name=str(name))
        for name, each in raw.items()
    )


def _object(value: object, what: str) -> Json:
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is not an object")  # noqa: TRY004  (a fault of the data)
    return value


def _objects(raw: Json, key: str) -> list[Json]:
    items = raw.get(key) or []
    if not isinstance(items, list) or len(items) > _MAX_ITEMS:
        raise ValueError(f"{key!r} is not a list of at most {_MAX_ITEMS}")
    return [_object(item, f"an item of {key!r}") for item in items]


def _text(raw: Json, key: str) -> str:
    value = raw.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > _TEXT_CHARS:
        raise ValueError(f"{key!r} is not a text of at most {_TEXT_CHARS} characters")
    return value


def _needed(raw: Json, key: str) -> str:
    text = _text(raw, key)
    if not text:
        raise ValueError(f"{key!r} is missing")
    return text
