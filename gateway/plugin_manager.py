"""Plugins of a gateway, from this package and from other installed packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pluggy

from gateway import hookspecs
from gateway.errors import ConfigError, Failed, attempt_call, missing_plugin
from gateway.runtime import PLUGIN_GROUP, VERSION
from gateway.types import Diagnostic

DEFAULT_PLUGINS: tuple[str, ...] = (
    "access",
    "bundled",
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
"""Plugins of this package: the modules ``gateway.plugins.NAME.plugin``. Their folders may be
deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """An installed plugin."""

    name: str
    distribution: str
    version: str
    hooks: tuple[str, ...] = ()
    """Sorted names of the hooks that the plugin implements."""
    error: str = ""
    """Reason why the plugin could not be loaded; empty if it was loaded."""

    @property
    def remedy(self) -> str:
        """Advice on how to fix `error`; empty if the plugin was loaded."""
        if not self.error:
            return ""
        return f"update or uninstall {self.distribution}, or leave it out by GATEWAY_PLUGINS"


class Plugins:
    """Loaded plugins. Immutable and thread-safe.

    Args:
        chosen: Names of plugins; None is all installed plugins.

    Raises:
        ConfigError: If a chosen plugin is not installed.
    """

    def __init__(self, chosen: Sequence[str] | None = None) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        points = installed()
        if unknown := sorted(set(chosen or ()) - points.keys()):
            raise ConfigError(
                f"the plugins {', '.join(unknown)} are not installed: install them, or remove them "
                f"from the option plugins; installed are {', '.join(sorted(points))}"
            )
        names = points if chosen is None else chosen
        self.infos: tuple[PluginInfo, ...] = tuple(
            self._load(name, points[name]) for name in sorted(names)
        )

    def _load(self, name: str, point: EntryPoint) -> PluginInfo:
        # The package's own plugins have no metadata, because a checkout may not be installed.
        owner, version = (
            (point.dist.name, point.dist.version) if point.dist else ("tool-gateway", VERSION)
        )
        info = PluginInfo(name=name, distribution=owner, version=version)
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
                detail=f"plugin {info.name}: {info.error}; {info.remedy}",
            )
            for info in self.infos
            if info.error
        )

    def require(self, name: str, user: str) -> None:
        """Raise a `ConfigError` if the plugin *name* is not loaded. The message names *user*."""
        if name not in {info.name for info in self.infos if not info.error}:
            raise missing_plugin(user, name)

    def tables(self, hook: str, **arguments: object) -> Mapping[str, Any]:
        """Call a hook of all plugins and merge the returned mappings.

        Raises:
            ConfigError: If two plugins return the same key.
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
        """Call a hook of all plugins and return all objects, sorted by ``order`` and ``name``."""
        lists: Iterable[Iterable[Any]] = getattr(self._manager.hook, hook)(**arguments)
        return sorted(
            (item for objects in lists for item in objects),
            key=lambda item: (item.order, item.name),
        )


@cache
def load_plugins(chosen: tuple[str, ...] | None) -> Plugins:
    """Return the plugins named *chosen*; None is all installed plugins. The result is cached."""
    return Plugins(chosen)


@cache
def own_plugins() -> frozenset[str]:
    """Return the names of the folders in ``gateway/plugins``."""
    folder = Path(__file__).with_name("plugins")
    return frozenset(module.name for module in iter_modules([str(folder)]))


@cache
def installed() -> Mapping[str, EntryPoint]:
    """Return the entry points of all installed plugins, keyed by name.

    Plugins of this package replace others of the same name.
    """
    foreign = {point.name: point for point in entry_points(group=PLUGIN_GROUP)}
    bundled = {
        name: EntryPoint(name, f"gateway.plugins.{name}.plugin", PLUGIN_GROUP)
        for name in DEFAULT_PLUGINS
        if name in own_plugins()
    }
    return foreign | bundled
