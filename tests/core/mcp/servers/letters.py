"""A server with a tool, a prompt, a resource and a template, as a program or as an object."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer


def letters() -> MCPServer:
    server = MCPServer("letters")

    @server.tool()
    def burn_letter(to: str) -> str:
        """Burn the letter to a person."""
        return f"burnt the one to {to}"

    @server.prompt()
    def greet() -> str:
        """Greet the person who wrote a letter."""
        return "Good day."

    @server.resource("note://a")
    def note() -> str:
        """A note about a letter."""
        return "the note"

    @server.resource("note://of/{name}")
    def note_of(name: str) -> str:
        """The notes about the letters of a person."""
        return f"the note of {name}"

    return server


if __name__ == "__main__":
    letters().run()
