"""The console: pages for people who run a gateway, made on the server."""
