"""Commands, one module per group. `gateway.cli.app` loads a module when its command is typed."""
