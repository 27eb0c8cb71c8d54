"""Options of commands from the configuration, the environment and ``--set``. The last one wins.

An option has a key of section and name, such as ``search.limit``.
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
_OTHER_VARIABLES = frozenset({"GATEWAY_CACHE_DIR"})
"""Variables that are not options, although their names begin like options of a section."""
_SHORT_KEYS: Mapping[str, str] = {"usage": "usage.record", "on_change": "upstream.on_change"}
"""Full keys of options, keyed by short key."""
_TRUST_KEYS = frozenset((
    "upstream.on_change", "upstream.on_suspicion", "chat.confirm", "installation", "public_url",
    "programs.destructive", "programs.wrapper", "audit.record", "audit.on_failure",
    "audit.keep_days",
))  # fmt: skip
"""Options about trust, or about the page where users type their tokens. Like paths and options of
provisioning, they are never read from the file, because its authors could weaken them."""
_SECRET_KEYS = frozenset({"store", "host_key"})
"""Options that may contain a secret. Their value in the file must be a reference."""
_OWN_TABLES = frozenset({"catalog.kinds", "catalog.rules", "policies"})
"""Options with a table of their own in the file, outside ``options``."""


@cache
def option_table() -> Mapping[str, Any]:
    """Return the types of all options that can be set without Python, keyed by option."""
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
    """Return the options that the user set, keyed by option.

    *table* is the member ``options`` of the configuration.

    Raises:
        ConfigError: If a key is unknown, or a value has the wrong type or is out of range.
    """
    return dict(_read_setting(*setting) for setting in _set_values(table))


def _set_values(table: object) -> Iterator[tuple[str, str, object, bool]]:
    """Yield (place of the setting, key, value, whether the value is text)."""
    if not isinstance(table, Mapping):
        raise ConfigError("'options' must be an object")
    for section, values in table.items():
        is_section = isinstance(values, Mapping)
        for name, value in values.items() if is_section else [("", values)]:
            key = f"{section}.{name}" if is_section else _SHORT_KEYS.get(section, section)
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
    """Return the keys of the options, keyed by environment variable."""
    return {_variable(key): key for key in (*option_table(), *_SHORT_KEYS)}


def _variable(key: str) -> str:
    return _PREFIX + key.upper().replace(".", "_")


def mistyped_variables() -> Iterator[str]:
    """Yield a message for each environment variable that resembles an option."""
    names = _variables()
    sections = {key.partition(".")[0].upper() for key in option_table() if "." in key}
    starts = tuple(f"{_PREFIX}{section}_" for section in sections)
    for name in sorted(variable_names(_PREFIX) - _OTHER_VARIABLES - set(names)):
        if name.startswith(starts) and (guesses := near(name, names, limit=1)):
            yield f"{name} is not an option: did you mean {guesses[0]}?"


def _read_setting(where: str, key: str, raw: object, is_text: bool) -> tuple[str, object]:
    """Return the full key of an option, and its value. Messages name the place *where*."""
    key, types = _SHORT_KEYS.get(key, key), option_table()
    if key in _OWN_TABLES or (key == "plugins" and not is_text):
        table = key.rpartition(".")[2]
        raise ConfigError(f"{where}: set it in its own table of the file: {table!r}")
    if key not in types:
        guesses = near(key, types, limit=1)
        advice = f": did you mean {guesses[0]!r}?" if guesses else ""
        raise ConfigError(f"{where}: unknown option{advice}")
    if not is_text and key in _SECRET_KEYS:
        check_reference(raw, owner=where)
    if not is_text and (
        key in _TRUST_KEYS or key.endswith("_path") or key.startswith("provision.")
    ):
        raise ConfigError(
            f"{where}: set it by {_variable(key)} or --set; it is not read from a file"
        )
    try:
        return key, read_option(raw, types[key], is_text=is_text)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def apply_settings(options: S, values: Mapping[str, object], section: str = "") -> S:
    """Return *options* with *values* of *section* and of nested sections.

    Raises:
        ConfigError: If values contradict each other.
    """
    changes: dict[str, Any] = {}
    for name in (field.name for field in fields(options)):
        key = f"{section}.{name}".removeprefix(".")
        value = getattr(options, name)
        if isinstance(value, OptionObject):
            changes[name] = apply_settings(value, values, name)
        elif key in values:
            changes[name] = values[key]
    try:
        return replace(options, **changes)
    except ConfigError as error:
        raise ConfigError(f"{section}.{str(error).partition(': ')[2]}") from None
