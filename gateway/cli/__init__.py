"""The `gateway` command."""

from gateway.cli.app import main

__all__ = ["main"]
