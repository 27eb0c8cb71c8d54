"""`gateway plugins`: loaded and failed plugins."""

from __future__ import annotations

from gateway.cli import options
from gateway.cli.command import Output, command, command_group
from gateway.cli.session import command_options, read_optional
from gateway.cli.tables import table
from gateway.options.environment import resolved
from gateway.plugin_manager import load_plugins

app = command_group()


@command(app)
def plugins(*, config: options.Config = options.DEFAULT_CONFIG) -> Output:
    """List the plugins with their origin, hooks and load errors."""
    infos = load_plugins(resolved(command_options(read_optional(config))).plugins).infos
    view = table(infos, "name", "distribution", "version", "hooks", "error")
    return Output({"plugins": infos}, view if infos else "no plugin is loaded")
