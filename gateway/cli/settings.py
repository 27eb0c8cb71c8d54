"""Options of commands: of the configuration, the environment and ``--set``; the last one wins.

One table has them all: every option of `Options` and of `ProvisionOptions` by its key, which is
the section and the option, such as ``search.limit``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

from gateway.cli.options import CHOSEN
from gateway.errors import ConfigError
from gateway.options import Options
from gateway.options.environment import variable_names, variables
from gateway.options.provision import ProvisionOptions
from gateway.options.validation import OptionObject, option_types, read_option
from gateway.runtime.secrets import check_reference
from gateway.runtime.text import near

S = TypeVar("S", bound=OptionObject)
_PREFIX = "GATEWAY_"
_OTHERS = frozenset({"GATEWAY_CACHE_DIR"})
"""Variables that are no options, though they begin like those of a section."""
_SHORT: Mapping[str, str] = {"usage": "usage.record", "on_change": "upstream.on_change"}
"""Short keys."""
_TRUST = frozenset((
    "upstream.on_change", "upstream.on_suspicion", "chat.confirm", "installation", "public_url",
    "programs.destructive", "programs.wrapper", "audit.record", "audit.on_failure",
    "audit.keep_days",
))  # fmt: skip
"""Options that decide what is trusted, or where users type their tokens. With paths and those of
provisioning they never come from the file: whoever can write that must not weaken them."""
_SECRETS = frozenset({"store", "host_key"})
"""Options to which a file may refer, and which it may not hold: the first says where approvals
are."""
_OWN_TABLES = frozenset({"catalog.kinds", "catalog.rules", "policies"})
"""Options that are tables of their own in the file."""


@cache
def option_table() -> Mapping[str, Any]:
    """Return the annotated type of every option that can be set without Python, by its key."""
    sections = {"": Options, "provision": ProvisionOptions}
    table: dict[str, Any] = {}
    while sections:
        section, owner = sections.popitem()
        for name, expected in option_types(owner).items():
            if isinstance(expected, type) and issubclass(expected, OptionObject):
                sections[name] = expected
            else:
                table[f"{section}.{name}".removeprefix(".")] = expected
    return {key: table[key] for key in sorted(table.keys() - _OWN_TABLES)}


def read_settings(table: object) -> Mapping[str, object]:
    """Return the options that are set, by key.

    Args:
        table: What the configuration has as ``options``: objects by section.

    Raises:
        ConfigError: A key is unknown, or a value is not of its type or outside its range.
    """
    return dict(_read(*each) for each in _set_values(table))


def _set_values(table: object) -> Iterator[tuple[str, str, object, bool]]:
    """Yield where a value is set, its key, the value, and whether it is a text; the last wins."""
    if not isinstance(table, Mapping):
        raise ConfigError("'options' must be an object")
    for section, values in table.items():
        is_section = isinstance(values, Mapping)
        for name, value in values.items() if is_section else [("", values)]:
            key = f"{section}.{name}" if is_section else _SHORT.get(section, section)
            yield f"options: {key}", key, value, False
    names = _variables()
    for name, text in sorted(variables(frozenset(names)).items()):
        yield name, names[name], text, True
    for item in CHOSEN.get():
        key, equals, text = item.partition("=")
        if not equals:
            raise ConfigError(f"--set takes KEY=VALUE, such as search.limit=8, got {item!r}")
        yield f"--set {key}", key, text, True


def _variables() -> Mapping[str, str]:
    """Return the key of each option by its environment variable."""
    return {_variable(key): key for key in (*option_table(), *_SHORT)}


def _variable(key: str) -> str:
    return _PREFIX + key.upper().replace(".", "_")


def mistyped_variables() -> Iterator[str]:
    """Yield what to say of each environment variable that begins like an option and is none."""
    names = _variables()
    sections = {key.partition(".")[0].upper() for key in option_table() if "." in key}
    starts = tuple(f"{_PREFIX}{section}_" for section in sections)
    for name in sorted(variable_names(_PREFIX) - _OTHERS - set(names)):
        if name.startswith(starts) and (guesses := near(name, names, limit=1)):
            yield f"{name} is no option: did you mean {guesses[0]}?"


def _read(where: str, key: str, raw: object, is_text: bool) -> tuple[str, object]:
    """Return an option's whole key, and its value."""
    key, types = _SHORT.get(key, key), option_table()
    if key in _OWN_TABLES or (key == "plugins" and not is_text):
        table = key.rpartition(".")[2]
        raise ConfigError(f"{where}: it is a table of its own in the file: {table!r}")
    if key not in types:
        guesses = near(key, types, limit=1)
        advice = f": did you mean {guesses[0]!r}?" if guesses else ""
        raise ConfigError(f"{where}: there is no such option{advice}")
    if not is_text and key in _SECRETS:
        check_reference(raw, owner=where)
    if not is_text and (key in _TRUST or key.endswith("_path") or key.startswith("provision.")):
        raise ConfigError(f"{where}: it is taken from {_variable(key)} or --set, not from a file")
    try:
        return key, read_option(raw, types[key], is_text=is_text)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def apply_settings(options: S, values: Mapping[str, object], section: str = "") -> S:
    """Return *options* with the *values* of its *section*, and of the sections in it.

    Raises:
        ConfigError: Values do not go together.
    """
    own: dict[str, Any] = {}
    for name in (field.name for field in fields(options)):
        key = f"{section}.{name}".removeprefix(".")
        value = getattr(options, name)
        if isinstance(value, OptionObject):
            own[name] = apply_settings(value, values, name)
        elif key in values:
            own[name] = values[key]
    try:
        return replace(options, **own)
    except ConfigError as error:
        raise ConfigError(f"{section}.{str(error).partition(': ')[2]}") from None
