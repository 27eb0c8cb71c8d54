"""Graph documents about well-known servers, which relate the tools of such a server."""
