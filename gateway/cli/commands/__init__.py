"""The commands, one module a group. `gateway.cli.app` loads a module when its command is typed."""
