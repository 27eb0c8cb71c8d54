"""Schema of registry entries: JSON of the official MCP registry as dataclasses.

The format is `server.json` with the registry's metadata in ``_meta`` (API v0.1, docs/reference/api
of modelcontextprotocol/registry). All texts of an entry are untrusted. They are shown, ranked and
checked, and no command runs before the checks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, TypeVar

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
"""`RegistryEntry.source` of bundled entries."""
OFFICIAL = "io.modelcontextprotocol.registry/official"
"""Key in ``_meta`` of the official registry's own metadata."""

_NAME = re.compile(r"[A-Za-z0-9.-]{1,100}/[A-Za-z0-9._-]{1,100}")
_TITLE_CHARS = 100
_DESCRIPTION_CHARS = 1000
_MAX_TEXT_CHARS = 2000
_MAX_ITEMS = 50
"""Maximum number of packages, remotes, arguments and variables, each, of an entry."""
_CONFIG = ConfigDict(validate_by_name=True, validate_by_alias=True)


def _from_argument(raw: object) -> object:
    """Convert a command-line argument to the keys of `Input`."""
    if not isinstance(raw, Mapping):
        return raw
    name = raw.get("name")
    if raw.get("type") == "positional":
        return {**raw, "name": raw.get("valueHint"), "flag": ""}
    if raw.get("type") == "named" and isinstance(name, str) and name:
        return {**raw, "name": name.lstrip("-") or name, "flag": name}
    raise ValueError("an argument is neither 'positional' nor 'named'")


def _from_named_input(raw: object) -> object:
    """Convert an environment variable or header, which has no flag, to the keys of `Input`."""
    if not isinstance(raw, Mapping):
        return raw
    if not raw.get("name"):
        raise ValueError("'name' is missing")
    return {**raw, "flag": ""}


def _placeholders(raw: object) -> object:
    """Convert a template's placeholders to a list of inputs, without nested placeholders."""
    if not isinstance(raw, Mapping):
        return raw or ()
    return tuple(
        {**item, "name": name, "flag": "", "variables": ()} if isinstance(item, Mapping) else item
        for name, item in raw.items()
    )


T = TypeVar("T")
Items = Annotated[tuple[T, ...], Field(max_length=_MAX_ITEMS)]
Text = Annotated[
    str,
    Field(max_length=_MAX_TEXT_CHARS),
    BeforeValidator(lambda value: "" if value is None else value),
]
RequiredText = Annotated[str, Field(min_length=1, max_length=_MAX_TEXT_CHARS)]
OptionalText = Annotated[
    str | None, Field(max_length=_MAX_TEXT_CHARS), BeforeValidator(lambda value: value or None)
]
Description = Annotated[Text, AfterValidator(lambda text: clean(text, limit=_DESCRIPTION_CHARS))]
IsTrue = Annotated[bool, BeforeValidator(lambda value: value is True)]


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Input:
    """Argument, environment variable, header or placeholder of a server."""

    name: Text
    """Name of the input; for a positional argument its ``valueHint``."""
    description: Description = ""
    flag: Text = ""
    """Option before the value, such as ``--port``; empty for a positional argument."""
    value: OptionalText = None
    """Fixed value. ``{name}`` in it is replaced by the value of that item in `variables`."""
    default: OptionalText = None
    required: IsTrue = Field(default=False, validation_alias="isRequired")
    secret: IsTrue = Field(default=False, validation_alias="isSecret")
    variables: Annotated[Items[Input], BeforeValidator(_placeholders)] = ()


Placeholders = Annotated[Items[Input], BeforeValidator(_placeholders)]
NamedInputs = Items[Annotated[Input, BeforeValidator(_from_named_input)]]
Arguments = Items[Annotated[Input, BeforeValidator(_from_argument)]]


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Package:
    """A package of a public index."""

    kind: RequiredText = Field(validation_alias="registryType")
    """Type of the package, such as ``pypi``, ``npm`` or ``oci``."""
    identifier: RequiredText
    version: Text = ""
    transport: RequiredText = Field(validation_alias=AliasPath("transport", "type"))
    arguments: Arguments = Field(default=(), validation_alias="packageArguments")
    environment: NamedInputs = Field(default=(), validation_alias="environmentVariables")
    runtime_arguments: Annotated[bool, BeforeValidator(bool)] = Field(
        default=False, validation_alias="runtimeArguments"
    )
    """True if the entry has arguments for the program that runs the package, such as ``npx``."""
    base_url: Text = Field(default="", validation_alias="registryBaseUrl")
    """URL of the package index, or empty."""
    sha256: Text = Field(default="", validation_alias="fileSha256")


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Remote:
    """A server elsewhere, reached by URL."""

    transport: RequiredText = Field(validation_alias="type")
    url: RequiredText
    headers: NamedInputs = ()
    variables: Placeholders = ()


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class RegistryEntry:
    """One version of a server, from a registry or from the bundled list."""

    name: RequiredText
    """``namespace/name``. The official registry verifies that the publisher owns the namespace.
    The gateway does not verify it.
    """
    title: Annotated[Text, AfterValidator(lambda text: clean(text, limit=_TITLE_CHARS))] = ""
    description: Description = ""
    version: Text = ""
    status: Text = "active"
    """``active``, ``deprecated`` or ``deleted``."""
    latest: bool = True
    updated: Text = ""
    """Time of the last change, RFC 3339; empty if unknown."""
    source: str = BUNDLED
    """`BUNDLED`, or the origin of the registry's URL."""
    packages: Items[Package] = ()
    remotes: Items[Remote] = ()
    suspicions: tuple[str, ...] = ()
    """Reasons why the texts may contain a prompt injection."""

    @property
    def namespace(self) -> str:
        """Part of the name before the slash."""
        return self.name.partition("/")[0]

    @property
    def short(self) -> str:
        """Part of the name after the slash."""
        return self.name.partition("/")[2]


_ENTRY = TypeAdapter(RegistryEntry)


def parse_entry(raw: object, *, source: str) -> RegistryEntry:
    """Parse one item of a registry's answer.

    Args:
        raw: Item of the field ``servers``, as decoded JSON.
        source: `RegistryEntry.source` of the entry.

    Raises:
        ValueError: If the item cannot be used. The message contains only the entry's name.
    """
    item = _object(raw)
    server = _object(item.get("server"))
    official = _object(_object(item.get("_meta", {})).get(OFFICIAL, {}))
    name = server.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("the name does not have the form namespace/name")
    # Values of these keys in the server's JSON are overwritten.
    trusted = {
        "packages": server.get("packages") or (),
        "remotes": server.get("remotes") or (),
        "status": official.get("status") or server.get("status") or "active",
        "latest": official.get("isLatest") is not False,
        "updated": official.get("updatedAt") or official.get("publishedAt"),
        "source": source,
        "suspicions": scan_definition({key: server.get(key) for key in ("title", "description")}),
    }
    try:
        # The JSON may use only the registry's keys, not the field names.
        return _ENTRY.validate_python({**server, **trusted}, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ValueError(f"{name!r}: {validation_message(error)}") from None


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ValueError("it is not an object")  # noqa: TRY004  (a fault of the data)
    return value
