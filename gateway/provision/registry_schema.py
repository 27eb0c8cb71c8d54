"""The schema of a registry's servers: JSON of the official MCP registry as values.

The format is `server.json` beside the registry's own metadata in ``_meta`` (API v0.1,
docs/reference/api of modelcontextprotocol/registry). All text is untrusted: it is shown, ranked and
checked, never run as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import (
    AfterValidator,
    AliasPath,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)
from pydantic.dataclasses import dataclass

from gateway.mcp.injection_scanner import scan_definition
from gateway.runtime.json_models import validation_message
from gateway.runtime.text import clean

BUNDLED = "known"
"""The source of an entry of the bundled list."""
OFFICIAL = "io.modelcontextprotocol.registry/official"
"""The key of ``_meta`` under which a registry adds its own metadata."""

_NAME = re.compile(r"[A-Za-z0-9.-]{1,100}/[A-Za-z0-9._-]{1,100}")
_TITLE_CHARS = 100
_DESCRIPTION_CHARS = 1000
_MAX_TEXT_CHARS = 2000
_MAX_ITEMS = 50
"""No entry needs more packages, remotes, arguments or variables."""
_CONFIG = ConfigDict(validate_by_name=True, validate_by_alias=True)


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ValueError("it is not an object")  # noqa: TRY004  (a fault of the data)
    return value


def _items(value: object) -> list[Mapping[str, object]] | object:
    return [_object(item) for item in value] if isinstance(value, list) else value


def _arguments(value: object) -> object:
    """Return arguments of a command line with the keys of `Input`."""
    items = _items(value)
    return [_argument(item) for item in items] if isinstance(items, list) else items


def _argument(item: Mapping[str, object]) -> Mapping[str, object]:
    name = item.get("name")
    if item.get("type") == "named" and name:
        return {**item, "name": str(name).lstrip("-") or name, "flag": name}
    if item.get("type") == "positional":
        return {**item, "name": item.get("valueHint"), "flag": ""}
    raise ValueError("an argument is neither 'positional' nor 'named'")


def _named_inputs(value: object) -> object:
    """Return variables or headers, which have no flag."""
    items = _items(value)
    if not isinstance(items, list):
        return items
    if not all(item.get("name") for item in items):
        raise ValueError("'name' is missing")
    return [{**item, "flag": ""} for item in items]


def _placeholders(value: object) -> object:
    """Return the placeholders of a template; deeper ones are dropped, since no entry nests them."""
    if isinstance(value, tuple):
        return value
    items = _object({} if value is None else value).items()
    return tuple(
        {**_object(item), "name": name, "flag": "", "variables": {}} for name, item in items
    )


def _packages(value: object) -> object:
    items = _items(value)
    for item in items if isinstance(items, list) else ():
        if not _object(item.get("transport")).get("type"):
            raise ValueError("'transport' has no type")
    return items


Text = Annotated[
    str,
    Field(max_length=_MAX_TEXT_CHARS),
    BeforeValidator(lambda value: "" if value is None else value),
]
RequiredText = Annotated[str, Field(min_length=1, max_length=_MAX_TEXT_CHARS)]
OptionalText = Annotated[
    str | None, Field(max_length=_MAX_TEXT_CHARS), BeforeValidator(lambda value: value or None)
]
Title = Annotated[Text, AfterValidator(lambda text: clean(text, limit=_TITLE_CHARS))]
Description = Annotated[Text, AfterValidator(lambda text: clean(text, limit=_DESCRIPTION_CHARS))]
IsTrue = Annotated[bool, BeforeValidator(lambda value: value is True)]


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Input:
    """One argument, environment variable, header or placeholder."""

    name: Text
    """The hint of a positional argument."""
    description: Description = ""
    flag: Text = ""
    """The option before the value on a command line, such as ``--port``; empty for none."""
    value: OptionalText = None
    """Fixed by the entry; ``{name}`` in it stands for one of *variables*."""
    default: OptionalText = None
    required: IsTrue = Field(default=False, validation_alias="isRequired")
    secret: IsTrue = Field(default=False, validation_alias="isSecret")
    variables: Annotated[
        tuple[Input, ...], Field(max_length=_MAX_ITEMS), BeforeValidator(_placeholders)
    ] = ()


Placeholders = Annotated[
    tuple[Input, ...], Field(max_length=_MAX_ITEMS), BeforeValidator(_placeholders)
]
NamedInputs = Annotated[
    tuple[Input, ...], Field(max_length=_MAX_ITEMS), BeforeValidator(_named_inputs)
]
Arguments = Annotated[tuple[Input, ...], Field(max_length=_MAX_ITEMS), BeforeValidator(_arguments)]


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Package:
    """A package of a public index that contains the server."""

    kind: RequiredText = Field(validation_alias="registryType")
    """``pypi``, ``npm``, ``oci`` … as the registry has it."""
    identifier: RequiredText
    version: Text = ""
    transport: RequiredText = Field(
        default="stdio", validation_alias=AliasPath("transport", "type")
    )
    arguments: Arguments = Field(default=(), validation_alias="packageArguments")
    environment: NamedInputs = Field(default=(), validation_alias="environmentVariables")
    runtime_arguments: Annotated[bool, BeforeValidator(bool)] = Field(
        default=False, validation_alias="runtimeArguments"
    )
    """Whether the entry has arguments for the program that runs the package."""
    base_url: Text = Field(default="", validation_alias="registryBaseUrl")
    """The index, if the entry names one."""
    sha256: Text = Field(default="", validation_alias="fileSha256")
    script: Text = ""
    """The package's program, if it is known before the install; bundled entries only."""


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Remote:
    """A server that runs elsewhere."""

    transport: RequiredText = Field(validation_alias="type")
    url: RequiredText
    headers: NamedInputs = ()
    variables: Placeholders = ()


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class RegistryEntry:
    """One server of a registry, at one version."""

    name: RequiredText
    """``namespace/name``; the registry verified the namespace."""
    title: Title = ""
    description: Description = ""
    version: Text = ""
    status: Text = "active"
    """``active``, ``deprecated`` or ``deleted``."""
    latest: bool = True
    updated: Text = ""
    """The time of the last change, RFC 3339; empty if the registry has none."""
    source: str = BUNDLED
    """`BUNDLED`, or the registry's origin."""
    packages: Annotated[
        tuple[Package, ...], Field(max_length=_MAX_ITEMS), BeforeValidator(_packages)
    ] = ()
    remotes: Annotated[tuple[Remote, ...], Field(max_length=_MAX_ITEMS)] = ()
    suspicions: tuple[str, ...] = ()
    """Why its text looks like an attack on a model."""

    @property
    def namespace(self) -> str:
        """The part of the name before the slash."""
        return self.name.partition("/")[0]

    @property
    def short(self) -> str:
        """The part of the name after the slash."""
        return self.name.partition("/")[2]


_ENTRY = TypeAdapter(RegistryEntry)


def parse_entry(raw: object, *, source: str) -> RegistryEntry:
    """Parse one item of ``servers``.

    Args:
        raw: The decoded JSON.
        source: See `RegistryEntry.source`.

    Raises:
        ValueError: It cannot be used. The message holds no text of the entry but its name.
    """
    item = _object(raw)
    server = _object(item.get("server"))
    own = _object(_object(item.get("_meta", {})).get(OFFICIAL, {}))
    name = server.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("it has no name of the form namespace/name")
    # These keys are ours: whatever the server says under them is overwritten.
    trusted = {
        "packages": server.get("packages") or (),
        "remotes": server.get("remotes") or (),
        "status": own.get("status") or server.get("status") or "active",
        "latest": own.get("isLatest") is not False,
        "updated": own.get("updatedAt") or own.get("publishedAt"),
        "source": source,
        "suspicions": (),
    }
    try:
        # Only the keys of the registry count, never the names of our fields.
        entry = _ENTRY.validate_python({**server, **trusted}, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ValueError(f"{name!r}: {validation_message(error)}") from None
    found = scan_definition({key: server.get(key) for key in ("title", "description")})
    packages = entry.packages
    if source != BUNDLED:
        packages = tuple(replace(package, script="") for package in packages)
    return replace(entry, packages=packages, suspicions=found)
