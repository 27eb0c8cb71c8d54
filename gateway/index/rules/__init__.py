"""Rules that derive edges between tools from their names, arguments and descriptions."""
