"""What a configuration file says of tools: shapes of a server, tables of virtual servers. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.errors import ConfigError
from gateway.sources.protocol import Shape
from gateway.sources.transforms import Describe, Filter, Prefix, Rename
from gateway.sources.virtual_servers import Alias, VirtualServer
from gateway.types import Kind

_SHAPE_KEYS: Mapping[Kind, tuple[str, ...]] = {
    "tool": ("allow", "deny", "describe", "rename", "prefix"),
    "prompt": ("allow", "deny", "describe", "rename", "prefix"),
    "resource": ("allow", "deny", "describe"),
}
SHAPED: Mapping[str, Kind] = {"tools": "tool", "resources": "resource", "prompts": "prompt"}
"""What a server's entry may say of what is shown of it, and of which kind that is."""
_VIRTUAL_KEYS = ("description", "disabled", "prompts", "resources", "tools")
_THINGS = ("tools", "resources", "prompts")
_ALIAS_KEYS = ("description", "pin", "tool")


def read_shapes(where: str, given: object, *, kind: Kind = "tool") -> tuple[Shape, ...]:
    """Read the ``tools``, ``resources`` or ``prompts`` of a server.

    Args:
        where: For messages.
        given: A list of patterns, which is what is allowed; or an object of ``allow``, ``deny``,
            ``describe`` and, but for resources, ``rename`` (both by the server's own names) and
            ``prefix``; None is nothing.
        kind: Which of them.

    Raises:
        ConfigError: If it says something else.
    """
    if given is None:
        return ()
    if isinstance(given, list):
        given = {"allow": given}
    table = _object(where, given, _SHAPE_KEYS[kind])
    shapes: list[Shape] = []
    if "allow" in table or "deny" in table:
        allow = _patterns(f"{where}.allow", table["allow"]) if "allow" in table else None
        deny = _patterns(f"{where}.deny", table.get("deny", []))
        shapes.append(Filter(allow=allow, deny=deny, kind=kind))
    if "describe" in table:
        shapes.append(Describe(_texts(f"{where}.describe", table["describe"]), kind=kind))
    if "rename" in table:
        shapes.append(Rename(_texts(f"{where}.rename", table["rename"]), kind=kind))
    if "prefix" in table:
        shapes.append(Prefix(_text(f"{where}.prefix", table["prefix"]), kind=kind))
    return tuple(shapes)


def read_virtual(name: str, given: object) -> VirtualServer | None:
    """Read one of ``virtualServers``; None if it is disabled.

    Raises:
        ConfigError: If it cannot be one.
    """
    where = f"virtual server {name!r}"
    table = _object(where, given, _VIRTUAL_KEYS)
    if table.get("disabled") is True:
        return None
    tools, resources, prompts = (_aliases(where, table, key) for key in _THINGS)
    if not (tools or resources or prompts):
        raise ConfigError(f"{where} needs 'tools': an object of names and server/tool")
    return VirtualServer(
        name=name,
        tools=tools,
        description=_text(f"{where}.description", table.get("description", "")),
        resources=resources,
        prompts=prompts,
    )


def _aliases(where: str, table: Mapping[str, object], key: str) -> dict[str, Alias]:
    given = table.get(key, {})
    if not isinstance(given, dict):
        raise ConfigError(f"{where} needs {key!r}: an object of names and server/name")
    return {alias: _alias(f"{where}, {alias!r}", each) for alias, each in given.items()}


def _alias(where: str, given: object) -> Alias:
    if isinstance(given, str):
        return Alias(of=given)
    table = _object(where, given, _ALIAS_KEYS)
    return Alias(
        of=_text(f"{where}.tool", table.get("tool", "")),
        description=_text(f"{where}.description", table.get("description", "")),
        pin=_text(f"{where}.pin", table.get("pin", "")),
    )


def _object(where: str, given: object, keys: tuple[str, ...]) -> Mapping[str, object]:
    if not isinstance(given, dict):
        raise ConfigError(f"{where} must be an object of {', '.join(keys)}")
    for key in given:
        if key not in keys:
            raise ConfigError(f"{where}: unknown key {key!r}; it takes {', '.join(keys)}")
    return given


def _patterns(where: str, given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise ConfigError(f"{where} must be a list of patterns, such as 'get_*'")
    return tuple(given)


def _texts(where: str, given: object) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        raise ConfigError(f"{where} must be an object of texts")
    return given


def _text(where: str, given: object) -> str:
    if not isinstance(given, str):
        raise ConfigError(f"{where} must be a text")
    return given
