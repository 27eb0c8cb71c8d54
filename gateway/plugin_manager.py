"""The plugins of a gateway: ours, and those of installed distributions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, distribution, entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pluggy

from gateway import hookspecs
from gateway.errors import ConfigError, Failed, attempt_call, missing_plugin
from gateway.runtime import PLUGIN_GROUP
from gateway.types import Diagnostic

DEFAULT_PLUGINS: tuple[str, ...] = (
    "access",
    "graph_tools",
    "local",
    "openapi",
    "postgres",
    "programs",
    "quality",
    "rankings",
    "spelling",
    "usage",
)
"""The plugins of this distribution. Each is a module ``gateway.plugins.NAME.plugin``.

A folder that was deleted is a plugin that is not installed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """One plugin that was found."""

    name: str
    distribution: str
    version: str
    hooks: tuple[str, ...] = ()
    """Names of the hooks that it has, in alphabetical order."""
    error: str = ""
    """The reason why it could not be loaded; empty if it was."""

    @property
    def remedy(self) -> str:
        """What a person can do about the error; empty without one."""
        if not self.error:
            return ""
        return f"update or uninstall {self.distribution}, or leave it out by GATEWAY_PLUGINS"


class Plugins:
    """The loaded plugins. Immutable after it is made; safe from any thread.

    Args:
        chosen: The names of the plugins to load; None is all that are installed.

    Raises:
        ConfigError: One of *chosen* is not installed.
    """

    def __init__(self, chosen: Sequence[str] | None = None) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        found = installed()
        if unknown := sorted(set(chosen or ()) - found.keys()):
            raise ConfigError(
                f"the plugins {', '.join(unknown)} are not installed: install them, or remove them "
                f"from the option plugins; installed are {', '.join(sorted(found))}"
            )
        names = found if chosen is None else chosen
        self.infos: tuple[PluginInfo, ...] = tuple(
            self._load(name, found[name]) for name in sorted(names)
        )

    def _load(self, name: str, point: EntryPoint) -> PluginInfo:
        owner = point.dist or distribution("tool-gateway")
        info = PluginInfo(name=name, distribution=owner.name, version=owner.version)
        loaded = attempt_call(lambda: self._manager.register(point.load(), name))
        if isinstance(loaded, Failed):
            return replace(info, error=f"{type(loaded.error).__name__}: {loaded.error}")
        callers = self._manager.get_hookcallers(self._manager.get_plugin(name)) or ()
        return replace(info, hooks=tuple(sorted(caller.name for caller in callers)))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """One diagnostic for each plugin that could not be loaded."""
        return tuple(
            Diagnostic(
                stage="catalog",
                code="plugin_failed",
                detail=f"plugin {each.name}: {each.error}; {each.remedy}",
            )
            for each in self.infos
            if each.error
        )

    def require(self, name: str, user: str) -> None:
        """Raise a `ConfigError` if the plugin *name*, which *user* needs, is not loaded."""
        if name not in {each.name for each in self.infos if not each.error}:
            raise missing_plugin(user, name)

    def tables(self, hook: str, **arguments: object) -> Mapping[str, Any]:
        """Return one table of what all plugins return from *hook*, keyed by name.

        Raises:
            ConfigError: Two plugins give the same name.
        """
        merged: dict[str, Any] = {}
        for table in getattr(self._manager.hook, hook)(**arguments):
            if shared := sorted(merged.keys() & table.keys()):
                raise ConfigError(
                    f"two plugins give {hook} the name {shared[0]!r}: leave one of them out by the "
                    "option plugins"
                )
            merged |= table
        return merged

    def objects(self, hook: str, **arguments: object) -> list[Any]:
        """Return the objects of all plugins from *hook*, sorted by ``order`` and ``name``."""
        lists: Iterable[Iterable[Any]] = getattr(self._manager.hook, hook)(**arguments)
        return sorted(
            (each for objects in lists for each in objects),
            key=lambda each: (each.order, each.name),
        )


@cache
def load_plugins(chosen: tuple[str, ...] | None) -> Plugins:
    """Return the `Plugins` of *chosen*, which all gateways with the same choice share."""
    return Plugins(chosen)


@cache
def own_plugins() -> frozenset[str]:
    """Return the names of the packages in ``gateway/plugins`` that are installed."""
    folder = Path(__file__).with_name("plugins")
    return frozenset(each.name for each in iter_modules([str(folder)]))


@cache
def installed() -> Mapping[str, EntryPoint]:
    """Return the plugins that are installed, keyed by name; ours win over others of their name."""
    others = {point.name: point for point in entry_points(group=PLUGIN_GROUP)}
    own = {
        name: EntryPoint(name, f"gateway.plugins.{name}.plugin", PLUGIN_GROUP)
        for name in DEFAULT_PLUGINS
        if name in own_plugins()
    }
    return others | own
